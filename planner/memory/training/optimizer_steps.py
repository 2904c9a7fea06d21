"""Temporary memory of an optimizer while it updates the parameters."""

from collections.abc import Callable
from typing import Final, NamedTuple

from planner.memory.result import Term
from planner.memory.terms import format_symbol, library_symbol, measured_term, model_symbol, term
from planner.memory.training.optimizer_states import (
    Trained,
    galore_projection_elements,
    galore_rank,
    is_inner_matrix,
    longest_block_side,
    optimizer_term,
    parameter_count,
    soap_sides,
)
from planner.models.architecture import Tensor
from planner.workload.optimizers import OPTIMIZERS, Optimizer, OptimizerStep, StepWorkspace, WorkspaceKind

_BF16: Final = 2
_FP32: Final = 4
_NORM_BLOCK: Final = 512
"""Bytes of the smallest block in PyTorch's allocator, which a single number takes."""


class OptimizerTerms(NamedTuple):
    """Memory of an optimizer: its states, its step's temporaries, both None if there are none, and clipping's."""

    states: Term | None
    step: Term | None
    clipping: Term


def optimizer_terms(
    trained: Trained, optimizer: Optimizer, step: OptimizerStep | None, parameter_bytes: int
) -> OptimizerTerms:
    """Return the memory of an optimizer of `trained` tensors, by default with fused steps.

    Cached, since it does not depend on the batch.
    """
    return OptimizerTerms(
        optimizer_term(trained, optimizer, parameter_bytes),
        step_term(trained, optimizer, step or "fused", parameter_bytes),
        clipping_term(trained),
    )


def step_term(trained: Trained, optimizer: Optimizer, step: OptimizerStep, parameter_bytes: int) -> Term | None:
    """Return the peak temporary memory of the optimizer's step, None if the step needs none.

    **Formula**: copies of all trained parameters where one call updates all of them (`foreach`); where a loop updates
    one after the other, what the largest needs: 2 · n · w with Adam, n · w with Adafactor, RMSprop and Adagrad; with
    Muon n · w for the update, and in bf16 the matrix, its next iterate and two squares of its smaller side. Fused
    kernels need nothing.
    """
    kind = OPTIMIZERS[optimizer]
    workings = {"fused": None, "foreach": kind.foreach, "loop": kind.loop}[step]
    return _TERM_BUILDERS[workings.kind](trained, workings, parameter_bytes) if workings and trained else None


def _all_copies_term(trained: Trained, workings: StepWorkspace, parameter_bytes: int) -> Term:
    """Return the memory of temporary copies of all trained parameters (`foreach` implementation)."""
    parameters = parameter_count(trained)
    symbols = (
        model_symbol("P_t", parameters, "trained parameters"),
        format_symbol("w", parameter_bytes, "bytes per element, in the parameters' format"),
    )
    held = workings.copies * parameters * parameter_bytes
    return measured_term("temporaries", held, workings.formula, symbols, workings.source)


def _largest_workspace_term(trained: Trained, workings: StepWorkspace, parameter_bytes: int) -> Term:
    """Return the memory of the largest temporary workspace that any trained tensor needs."""
    in_fp32 = workings.kind == "fp32-copies"
    copies, width = (_fp32_copy_count(parameter_bytes), _FP32) if in_fp32 else (workings.copies, parameter_bytes)
    own = _MATRIX_WORKSPACES.get(workings.kind)

    def tensor_workspace_bytes(tensor: Tensor) -> int:
        """Return the temporary bytes that the step needs for one tensor."""
        if own is None:
            return copies * tensor.size * width
        return own(tensor, parameter_bytes) if is_inner_matrix(tensor) else 0

    most = max([tensor for tensor, _ in trained], key=tensor_workspace_bytes)
    elements = model_symbol("n", most.size, "elements of the tensor that needs most workspace")
    shown = (format_symbol("w", parameter_bytes, "bytes per element, in the parameters' format"), elements)
    if in_fp32:
        shown = (elements, library_symbol("c", copies, "number of fp32 copies of the tensor"))
    return measured_term("temporaries", tensor_workspace_bytes(most), workings.formula, shown, workings.source)


def _fp32_copy_count(parameter_bytes: int) -> int:
    """Return the number of fp32 copies that transformers' Adafactor makes of a tensor, by its bytes per element."""
    return 2 if parameter_bytes == _FP32 else 4


def _soap_workspace_term(trained: Trained, workings: StepWorkspace, _parameter_bytes: int) -> Term:
    """Return the memory of SOAP's largest workspace, for a step that recomputes its bases."""
    usual, anew = (max(held) for held in zip(*(soap_step_bytes(tensor) for tensor, _ in trained), strict=True))
    sides = library_symbol(
        "m, n", "sides", "sides of the tensor that needs most workspace; n is the longer one, at most 10,000"
    )
    return term("temporaries", anew, workings.formula, (sides,), workings.source, certainty="assumed", low_bytes=usual)


def _shampoo_workspace_term(trained: Trained, workings: StepWorkspace, parameter_bytes: int) -> Term:
    """Return the memory of Shampoo's workspace: filtered, preconditioned gradients, one eigendecomposition.

    **Formula**: 2 · P · w + 7 · d² · 4, d being the widest block.

    **Source**: `DistributedShampoo.step`, counted allocation by allocation on the CPU.
    """
    parameters, widest = parameter_count(trained), longest_block_side([tensor for tensor, _ in trained])
    return term(
        "temporaries",
        workings.copies * parameters * parameter_bytes + 7 * widest * widest * _FP32,
        workings.formula,
        (
            model_symbol("P_t", parameters, "trained parameters"),
            format_symbol("w", parameter_bytes, "bytes per element, in the parameters' format"),
            model_symbol("d", widest, "side of the widest preconditioner block"),
        ),
        workings.source,
        certainty="assumed",
        low_bytes=parameters * parameter_bytes,
    )


def soap_step_bytes(tensor: Tensor) -> tuple[int, int]:
    """Return the temporary bytes of a SOAP step: of a normal step, and of a step that recomputes the bases.

    **Formula** for m ≤ n: max(6 · m · n + m², 4 · m · n + m² + n²) elements between; 4 · m · n + m² + 7 · n² at most
    in every tenth step, which computes a QR decomposition.

    **Source**: `SOAP.step`, counted allocation by allocation on the CPU; cuSOLVER's workspace is not included.
    """
    squares = sorted(side * side for side in soap_sides(tensor))
    larger = squares[-1] if squares else 0
    smaller = squares[0] if len(squares) > 1 else 0
    usual = max(6 * tensor.size + smaller, 4 * tensor.size + larger + smaller) if squares else 4 * tensor.size
    anew = 4 * tensor.size + smaller + 7 * larger
    return _FP32 * usual, _FP32 * max(usual, anew)


def _newton_schulz_bytes(tensor: Tensor, parameter_bytes: int) -> int:
    """Return the peak bytes of Muon's Newton-Schulz iteration for one matrix.

    An update in bf16 is its own first iterate.
    """
    square = min(tensor.shape) ** 2
    update = tensor.size * parameter_bytes if parameter_bytes != _BF16 else 0
    iterate = tensor.size * _BF16
    held = tensor.size * _BF16 if parameter_bytes == _BF16 else 0
    return update + max(iterate + 3 * square * _BF16, 2 * iterate + held + 2 * square * _BF16)


def _galore_workspace_bytes(tensor: Tensor, parameter_bytes: int) -> int:
    """Return the peak bytes of GaLore's step for one matrix: decomposition, or update projected back."""
    smaller, larger = min(tensor.shape), max(tensor.shape)
    copies = tensor.size * _FP32 * (1 if parameter_bytes == _FP32 else 2)
    decomposed = (
        copies
        + _FP32 * (smaller * smaller + larger * smaller)
        - galore_projection_elements(tensor, parameter_bytes) * (parameter_bytes if parameter_bytes == _FP32 else 0)
    )
    projected = 2 * tensor.size * parameter_bytes + 3 * larger * galore_rank(tensor) * parameter_bytes
    return max(decomposed, projected)


_MATRIX_WORKSPACES: Final[dict[WorkspaceKind, Callable[[Tensor, int], int]]] = {
    "newton-schulz": _newton_schulz_bytes,
    "decomposition": _galore_workspace_bytes,
}
_TERM_BUILDERS: Final[dict[WorkspaceKind, Callable[[Trained, StepWorkspace, int], Term]]] = {
    "copies-of-all": _all_copies_term,
    "copies": _largest_workspace_term,
    "fp32-copies": _largest_workspace_term,
    "newton-schulz": _largest_workspace_term,
    "decomposition": _largest_workspace_term,
    "bases": _soap_workspace_term,
    "blocks": _shampoo_workspace_term,
}
"""Functions that build the memory term for each kind of workspace."""


def clipping_term(trained: Trained) -> Term:
    """Return the memory of gradient norms for clipping: one number per tensor, and one for the total norm.

    **Source**: `torch.nn.utils.clip_grad_norm_`, which scales the gradients in place; each number takes a block of the
    allocator.
    """
    tensors = sum(number for _, number in trained)
    return measured_term(
        "temporaries",
        (tensors + 1) * _NORM_BLOCK,
        "(G + 1) × 512",
        (model_symbol("G", tensors, "trained tensors, each with one gradient norm"),),
        "torch.nn.utils.clip_grad_norm_; blocks of PyTorch's allocator are multiples of 512 bytes",
    )
