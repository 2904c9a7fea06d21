"""What optimizers keep between steps: each by rules for the tensors that are trained."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.result import Part, Symbol, Term
from planner.memory.terms import library, model, number_format, term
from planner.memory.training.optimizer_bytes import (
    BLOCK,
    GALORE_RANK,
    Trained,
    eight_bit_bytes,
    factored_bytes,
    galore_bytes,
    galore_projection_elements,
    in_8_bits,
    is_matrix,
    parameters_in,
    projected_elements,
)
from planner.memory.training.preconditioned import SHAMPOO_SOURCE, SOAP_SOURCE, shampoo_factors, soap_squares
from planner.models.architecture import Tensor
from planner.workload.optimizers import Optimizer

PAGED_FROM: Final = 100_000
"""Elements from which bitsandbytes' paged optimizers keep states in memory that the driver moves to RAM."""

_TORCH_SOURCE: Final = "torch.optim: state tensors are made with zeros_like(parameter)"
_ADAFACTOR_SOURCE: Final = "torch.optim.Adafactor: row_var and col_var of matrices, variance of vectors"
_TRANSFORMERS_SOURCE: Final = (
    "transformers 5.23 optimization.Adafactor: exp_avg_sq_row, exp_avg_sq_col and the root mean square of each tensor"
)
_MUON_SOURCE: Final = "torch.optim.Muon: momentum_buffer, for matrices only; AdamW has the rest"
_BNB_SOURCE: Final = "bitsandbytes optim/optimizer.py: block-wise 8-bit states, min_8bit_size 4096, blocks of 256"
_BNB_32_SOURCE: Final = "bitsandbytes optim/optimizer.py: states of 32-bit optimizers are torch.float32"
_TRAINER_SOURCE: Final = "transformers Trainer registers every nn.Embedding for 32-bit states under 8-bit optimizers"
_PAGED_SOURCE: Final = "bitsandbytes optim/optimizer.py, get_state_buffer: cudaMallocManaged from 1e5 elements on"
_GALORE_SOURCE: Final = "galore_torch: GaLoreProjector.get_orthogonal_matrix, AdamW.step"


class _Rule(NamedTuple):
    """What is kept of the tensors of one kind: what it is called, as a formula, and its bytes for one tensor."""

    name: str
    formula: str
    source: str
    bytes_of: Callable[[Tensor, int], int]


class _Recipe(NamedTuple):
    """An optimizer: its formula, the symbols in it, and which rule a tensor falls under."""

    formula: str
    symbols: Callable[[Trained, int], tuple[Symbol, ...]]
    rule_of: Callable[[Tensor], _Rule]
    paged: bool = False


@lru_cache(maxsize=256)
def optimizer_term(trained: Trained, optimizer: Optimizer, parameter_bytes: int) -> Term | None:
    """Return the memory of the optimizer's state for `trained` tensors of `parameter_bytes` an element.

    None for plain SGD, which keeps nothing.

    **Formula**: momentum P · w; AdamW 2 · P · w; 8-bit AdamW 2 · (1 + 4/256) for tensors of at least 4,096 elements,
    8 bytes for smaller ones and for embeddings, and half of it for Lion; bitsandbytes' 32-bit states 4 bytes each;
    Adafactor (rows + columns) · w; Muon one momentum for matrices, AdamW for the rest; GaLore two moments of the
    gradient's projection to rank r, and the projection; SOAP and Shampoo squares of the sides that they precondition.

    **Assumes** for paged optimizers that their states are on the card, which holds while nothing else needs the room.
    """
    if optimizer == "sgd" or not trained:
        return None
    settings = _RECIPES[optimizer]
    kept: dict[_Rule, int] = {}
    in_pages = 0
    for tensor, number in trained:
        rule = settings.rule_of(tensor)
        count_bytes = number * rule.bytes_of(tensor, parameter_bytes)
        kept[rule] = kept.get(rule, 0) + count_bytes
        in_pages += count_bytes if settings.paged and tensor.size >= PAGED_FROM else 0
    parts = tuple(
        Part(name=rule.name, bytes=count, formula=rule.formula, source=rule.source) for rule, count in kept.items()
    )
    total = sum(kept.values())
    sources = [*dict.fromkeys(part.source for part in parts), *([_PAGED_SOURCE] if settings.paged else [])]
    return term(
        "optimizer_states",
        total,
        settings.formula,
        settings.symbols(trained, parameter_bytes),
        "; ".join(sources),
        certainty="assumed" if in_pages else "exact",
        low_bytes=total - in_pages,
        parts=parts if len(parts) > 1 else (),
    )


_MOMENTUM: Final = _Rule("momentum", "P × w", _TORCH_SOURCE, lambda tensor, size: size * tensor.size)
_MOMENTS: Final = _Rule("moments", "2 × P × w", _TORCH_SOURCE, lambda tensor, size: 2 * size * tensor.size)
_MOMENTS_8_BIT: Final = _Rule(
    "8-bit moments", "Q × 2 × (1 + 4 / B)", _BNB_SOURCE, lambda tensor, _: 2 * eight_bit_bytes(tensor)
)
_MOMENTS_KEPT: Final = _Rule(
    "32-bit moments of embeddings and small tensors", "(P − Q) × 8", _TRAINER_SOURCE, lambda tensor, _: 8 * tensor.size
)
_MOMENTS_32_BIT: Final = _Rule("32-bit moments", "P × 8", _BNB_32_SOURCE, lambda tensor, _: 8 * tensor.size)
_LION: Final = _Rule("32-bit momentum", "P × 4", _BNB_32_SOURCE, lambda tensor, _: 4 * tensor.size)
_LION_8_BIT: Final = _Rule("8-bit momentum", "Q × (1 + 4 / B)", _BNB_SOURCE, lambda tensor, _: eight_bit_bytes(tensor))
_LION_KEPT: Final = _Rule(
    "32-bit momentum of embeddings and small tensors", "(P − Q) × 4", _TRAINER_SOURCE, lambda tensor, _: 4 * tensor.size
)
_FACTORED: Final = _Rule("rows and columns", "S × w", _ADAFACTOR_SOURCE, factored_bytes)
_VARIANCE: Final = _Rule("variances of vectors", "v × w", _ADAFACTOR_SOURCE, lambda tensor, size: size * tensor.size)
_FACTORED_32_BIT: Final = _Rule(
    "rows and columns in fp32",
    "S × 4 + 4 × G_m",
    _TRANSFORMERS_SOURCE,
    lambda tensor, _: factored_bytes(tensor, 4) + 4,
)
_VARIANCE_32_BIT: Final = _Rule(
    "variances of vectors in fp32",
    "v × 4 + 4 × G_v",
    _TRANSFORMERS_SOURCE,
    lambda tensor, _: 4 * tensor.size + 4,
)
_SQUARES: Final = _Rule("mean of squares", "P × w", _TORCH_SOURCE, lambda tensor, size: size * tensor.size)
_PRECONDITIONED: Final = _Rule(
    "moments, preconditioners and their bases",
    "2 × P × w + 8 × D",
    SOAP_SOURCE,
    lambda tensor, size: 2 * size * tensor.size + 8 * soap_squares(tensor),
)
_IN_BLOCKS: Final = _Rule(
    "filtered gradients, factors and their roots",
    "P × w + 4 × D",
    SHAMPOO_SOURCE,
    lambda tensor, size: size * tensor.size + 4 * shampoo_factors(tensor),
)
_MUON: Final = _Rule("momentum of matrices", "M × w", _MUON_SOURCE, lambda tensor, size: size * tensor.size)
_BESIDE_MUON: Final = _Rule(
    "AdamW of the rest", "2 × (P − M) × w", _MUON_SOURCE, lambda tensor, size: 2 * size * tensor.size
)
_GALORE: Final = _Rule("projections and projected moments", "(p + 2 × m) × w", _GALORE_SOURCE, galore_bytes)
_BESIDE_GALORE: Final = _Rule(
    "moments of the rest", "2 × (P − M) × w", _GALORE_SOURCE, lambda tensor, size: 2 * size * tensor.size
)


def _trained_symbol(trained: Trained) -> Symbol:
    return model("P", parameters_in(trained), "trained parameters")


def _as_parameters(kept: str) -> Callable[[Trained, int], tuple[Symbol, ...]]:
    return lambda trained, size: (
        _trained_symbol(trained),
        number_format("w", size, f"bytes per element of {kept}, as the parameters"),
    )


def _eight_bit_symbols(trained: Trained, _size: int) -> tuple[Symbol, ...]:
    quantised = sum(tensor.size * number for tensor, number in trained if in_8_bits(tensor))
    return (
        _trained_symbol(trained),
        model("Q", quantised, "parameters in tensors of at least 4,096 elements, embeddings excepted"),
        library("B", BLOCK, "elements that share one fp32 scale"),
    )


def _matrix_symbols(trained: Trained, size: int) -> tuple[Symbol, ...]:
    matrices = sum(tensor.size * number for tensor, number in trained if is_matrix(tensor))
    return (*_as_parameters("the states")(trained, size), model("M", matrices, "parameters of its matrices"))


def _galore_symbols(trained: Trained, size: int) -> tuple[Symbol, ...]:
    return (
        *_matrix_symbols(trained, size),
        model("p", _sum(trained, galore_projection_elements, size), "elements of projectors, squares where w is 4"),
        model("m", _sum(trained, projected_elements), f"elements of gradients projected to rank {GALORE_RANK} at most"),
    )


def _sum(trained: Trained, elements_of: Callable[[Tensor, int], int], size: int = 1) -> int:
    """Return what `elements_of` finds in the matrices that GaLore takes, together."""
    return sum(number * elements_of(tensor, size) for tensor, number in trained if is_matrix(tensor))


def _factored_symbols(trained: Trained, size: int) -> tuple[Symbol, ...]:
    return (
        *_as_parameters("the sums")(trained, size),
        *_rows_and_columns(trained),
    )


def _rows_and_columns(trained: Trained) -> tuple[Symbol, Symbol]:
    sums = sum(number * factored_bytes(tensor, 1) for tensor, number in trained if len(tensor.shape) > 1)
    vectors = sum(number * tensor.size for tensor, number in trained if len(tensor.shape) < 2)
    return model("S", sums, "rows and columns of all matrices"), model("v", vectors, "elements of vectors")


def _preconditioners(
    elements_of: Callable[[Tensor], int], meaning: str
) -> Callable[[Trained, int], tuple[Symbol, ...]]:
    def symbols(trained: Trained, size: int) -> tuple[Symbol, ...]:
        elements = sum(number * elements_of(tensor) for tensor, number in trained)
        return (*_as_parameters("the moments")(trained, size), model("D", elements, meaning))

    return symbols


def _only_trained(trained: Trained, _size: int) -> tuple[Symbol, ...]:
    return (_trained_symbol(trained),)


def _adamw_8bit(*, paged: bool) -> _Recipe:
    return _Recipe(
        "Q × 2 × (1 + 4 / B) + (P − Q) × 8",
        _eight_bit_symbols,
        lambda tensor: _MOMENTS_8_BIT if in_8_bits(tensor) else _MOMENTS_KEPT,
        paged,
    )


def _lion_8bit(*, paged: bool) -> _Recipe:
    return _Recipe(
        "Q × (1 + 4 / B) + (P − Q) × 4",
        _eight_bit_symbols,
        lambda tensor: _LION_8_BIT if in_8_bits(tensor) else _LION_KEPT,
        paged,
    )


_RECIPES: Final[dict[Optimizer, _Recipe]] = {
    "sgd-momentum": _Recipe("P × w", _as_parameters("momentum"), lambda _: _MOMENTUM),
    "adamw": _Recipe("2 × P × w", _as_parameters("first and second moment"), lambda _: _MOMENTS),
    "adamw-8bit": _adamw_8bit(paged=False),
    "paged-adamw-8bit": _adamw_8bit(paged=True),
    "adamw-32bit-bnb": _Recipe("P × 8", _only_trained, lambda _: _MOMENTS_32_BIT),
    "paged-adamw-32bit": _Recipe("P × 8", _only_trained, lambda _: _MOMENTS_32_BIT, paged=True),
    "adafactor": _Recipe(
        "S × w + v × w",
        _factored_symbols,
        lambda tensor: _FACTORED if len(tensor.shape) > 1 else _VARIANCE,
    ),
    "adam": _Recipe("2 × P × w", _as_parameters("first and second moment"), lambda _: _MOMENTS),
    "nadam": _Recipe("2 × P × w", _as_parameters("first and second moment"), lambda _: _MOMENTS),
    "rmsprop": _Recipe("P × w", _as_parameters("the mean of squares"), lambda _: _SQUARES),
    "adagrad": _Recipe("P × w", _as_parameters("the sum of squares"), lambda _: _SQUARES),
    "adafactor-transformers": _Recipe(
        "S × 4 + v × 4 + 4 × (G_m + G_v)",
        lambda trained, _: (
            *_rows_and_columns(trained),
            model("G_m", sum(number for tensor, number in trained if len(tensor.shape) > 1), "trained matrices"),
            model("G_v", sum(number for tensor, number in trained if len(tensor.shape) < 2), "trained vectors"),
        ),
        lambda tensor: _FACTORED_32_BIT if len(tensor.shape) > 1 else _VARIANCE_32_BIT,
    ),
    "lion": _Recipe("P × 4", _only_trained, lambda _: _LION),
    "lion-8bit": _lion_8bit(paged=False),
    "paged-lion": _Recipe("P × 4", _only_trained, lambda _: _LION, paged=True),
    "paged-lion-8bit": _lion_8bit(paged=True),
    "soap": _Recipe(
        "2 × P × w + 8 × D",
        _preconditioners(soap_squares, "Σ d² of the sides that have a preconditioner"),
        lambda _: _PRECONDITIONED,
    ),
    "shampoo": _Recipe(
        "P × w + 4 × D",
        _preconditioners(shampoo_factors, "Σ d × (d + 1) of the sides of all blocks"),
        lambda _: _IN_BLOCKS,
    ),
    "muon": _Recipe(
        "M × w + 2 × (P − M) × w", _matrix_symbols, lambda tensor: _MUON if is_matrix(tensor) else _BESIDE_MUON
    ),
    "galore-adamw": _Recipe(
        "(p + 2 × m) × w + 2 × (P − M) × w",
        _galore_symbols,
        lambda tensor: _GALORE if is_matrix(tensor) else _BESIDE_GALORE,
    ),
}
