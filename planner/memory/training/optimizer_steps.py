"""What an optimizer works with while it steps, beside its states."""

from functools import lru_cache
from typing import Final

from planner.memory.result import Term
from planner.memory.terms import checked, library, model, number_format, term
from planner.memory.training.optimizer_bytes import (
    Trained,
    galore_projection_elements,
    galore_rank,
    is_matrix,
    parameters_in,
)
from planner.memory.training.preconditioned import (
    SHAMPOO_SOURCE,
    SOAP_SOURCE,
    shampoo_scratch,
    soap_scratch,
    widest_block,
)
from planner.models.architecture import Tensor
from planner.workload.optimizers import Optimizer, OptimizerStep

_BF16: Final = 2
_FP32: Final = 4
_NORM_BLOCK: Final = 512
"""Bytes of a number of its own in PyTorch's allocator, which hands out multiples of it."""
_SOURCES: Final[dict[str, str]] = {
    "foreach": "torch.optim _multi_tensor_adamw: torch._foreach_sqrt of all second moments at once",
    "adamw": "torch.optim _single_tensor_adamw: the root of one second moment, and its quotient",
    "adagrad-foreach": "torch.optim _multi_tensor_adagrad: the roots of all sums, and all quotients",
    "root": "torch.optim _single_tensor_rmsprop and _single_tensor_adagrad: the root of one tensor's squares",
    "adafactor-transformers": "transformers 5.23 optimization.Adafactor.step: squared gradient and update in fp32; of "
    "16 bits fp32 copies of gradient and parameter, too",
    "adafactor": "torch.optim Adafactor: the variance is multiplied out from its rows and columns",
    "muon": "torch.optim._muon: the update, its bf16 copy, and the products of Newton and Schulz",
    "galore": "galore_torch: the singular value decomposition of one gradient, in fp32",
}


@lru_cache(maxsize=256)
def step_term(trained: Trained, optimizer: Optimizer, step: OptimizerStep, parameter_bytes: int) -> Term | None:
    """Return what the step holds at the most beside parameters, gradients and states, none where it is nothing.

    **Formula**: one copy of all trained parameters where one call updates all of them (`foreach`), two with Adagrad;
    where a loop updates one after the other, what the largest needs: 2 · n · w with Adam, n · w with Adafactor, RMSprop
    and Adagrad; with Muon n · w for the update, and in bf16 the matrix, its next iterate and two squares of its smaller
    side. Fused kernels need nothing.
    """
    if step == "fused" or optimizer in ("sgd", "sgd-momentum") or not trained:
        return None
    if optimizer == "soap":
        return _soap(trained)
    if optimizer == "shampoo":
        return _shampoo(trained, parameter_bytes)
    total = parameters_in(trained) * parameter_bytes
    symbols = (
        model("P_t", parameters_in(trained), "trained parameters"),
        number_format("w", parameter_bytes, "bytes per element, as the parameters"),
    )
    if step == "foreach" and optimizer == "adagrad":
        return checked("temporaries", 2 * total, "2 × P_t × w", symbols, _SOURCES["adagrad-foreach"])
    if step == "foreach":
        name = "adafactor" if optimizer == "adafactor" else "foreach"
        return checked("temporaries", total, "P_t × w", symbols, _SOURCES[name])
    most = max((tensor for tensor, _ in trained), key=lambda tensor: _of_one(tensor, optimizer, parameter_bytes))
    formula, source = _FORMULAS[optimizer]
    shown = (*symbols[1:], model("n", most.size, "elements of the tensor that needs most"))
    if optimizer == "adafactor-transformers":
        shown = (shown[1], library("c", 2 if parameter_bytes == _FP32 else 4, "fp32 copies of it"))
    return checked("temporaries", _of_one(most, optimizer, parameter_bytes), formula, shown, source)


_FORMULAS: Final[dict[Optimizer, tuple[str, str]]] = {
    "adamw": ("2 × n × w", _SOURCES["adamw"]),
    "adam": ("2 × n × w", _SOURCES["adamw"]),
    "nadam": ("2 × n × w", _SOURCES["adamw"]),
    "rmsprop": ("n × w", _SOURCES["root"]),
    "adagrad": ("n × w", _SOURCES["root"]),
    "adafactor-transformers": ("n × 4 × c", _SOURCES["adafactor-transformers"]),
    "adafactor": ("n × w", _SOURCES["adafactor"]),
    "muon": ("n × w + 2 × (2 × n + 2 × k × k)", _SOURCES["muon"]),
    "galore-adamw": ("4 × (2 × n + U + V) + n × w", _SOURCES["galore"]),
}


def _of_one(tensor: Tensor, optimizer: Optimizer, size: int) -> int:
    if optimizer in ("adamw", "adam", "nadam"):
        return 2 * tensor.size * size
    if optimizer in ("adafactor", "rmsprop", "adagrad"):
        return tensor.size * size
    if optimizer == "adafactor-transformers":
        return tensor.size * _FP32 * (2 if size == _FP32 else 4)
    if not is_matrix(tensor):
        return 0
    return _newton_schulz(tensor, size) if optimizer == "muon" else _galore(tensor, size)


def _soap(trained: Trained) -> Term:
    usual, anew = (max(held) for held in zip(*(soap_scratch(tensor) for tensor, _ in trained), strict=True))
    return term(
        "temporaries",
        anew,
        "4 × (4 × m × n + m² + 7 × n²)",
        (library("m, n", "sides", "of the tensor that needs most, n the wider one up to 10,000"),),
        f"{SOAP_SOURCE}; every tenth step decomposes anew",
        certainty="assumed",
        low_bytes=usual,
    )


def _shampoo(trained: Trained, size: int) -> Term:
    parameters = parameters_in(trained)
    return term(
        "temporaries",
        shampoo_scratch([tensor for tensor, _ in trained], parameters, size),
        "2 × P_t × w + 7 × d² × 4",
        (
            model("P_t", parameters, "trained parameters"),
            number_format("w", size, "bytes per element, as the parameters"),
            model("d", widest_block([tensor for tensor, _ in trained]), "side of the widest block"),
        ),
        SHAMPOO_SOURCE,
        certainty="assumed",
        low_bytes=parameters * size,
    )


def _newton_schulz(tensor: Tensor, size: int) -> int:
    """Return the update and, in bf16, its iterates and the squares that two of its products make.

    An update in bf16 is its own first iterate.
    """
    square = min(tensor.shape) ** 2
    update = tensor.size * size if size != _BF16 else 0
    iterate = tensor.size * _BF16
    held = tensor.size * _BF16 if size == _BF16 else 0
    return update + max(iterate + 3 * square * _BF16, 2 * iterate + held + 2 * square * _BF16)


def _galore(tensor: Tensor, size: int) -> int:
    """Return the larger of a decomposition (copies of the gradient, both sides) and an update projected back."""
    smaller, larger = min(tensor.shape), max(tensor.shape)
    copies = tensor.size * _FP32 * (1 if size == _FP32 else 2)
    decomposed = (
        copies
        + _FP32 * (smaller * smaller + larger * smaller)
        - galore_projection_elements(tensor, size) * (size if size == _FP32 else 0)
    )
    projected = 2 * tensor.size * size + 3 * larger * galore_rank(tensor) * size
    return max(decomposed, projected)


@lru_cache(maxsize=256)
def clipping_term(trained: Trained) -> Term:
    """Return the norms of all gradients: a number for each tensor, and one for all of them.

    **Source**: `torch.nn.utils.clip_grad_norm_`, which scales the gradients in place; each number takes a block of the
    allocator.
    """
    tensors = sum(number for _, number in trained)
    return checked(
        "temporaries",
        (tensors + 1) * _NORM_BLOCK,
        "(G + 1) × 512",
        (model("G", tensors, "trained tensors, each with the norm of its gradient"),),
        "torch.nn.utils.clip_grad_norm_; blocks of PyTorch's allocator are multiples of 512 bytes",
    )
