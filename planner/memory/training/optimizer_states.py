"""Memory of optimizer states, such as Adam's moments, for the trained tensors."""

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import prod
from typing import Final

from planner.memory.result import Symbol, Term, TermPart
from planner.memory.terms import format_symbol, library_symbol, model_symbol, term
from planner.models.architecture import Role, Tensor
from planner.units import ceil_div
from planner.workload.optimizers import OPTIMIZERS, Optimizer, OptimizerState, StateQuantity, StateTensors, StateUnit

Trained = tuple[tuple[Tensor, int], ...]
"""Trained tensors, each with the number of its copies."""

PAGED_FROM: Final = 100_000
"""Minimum elements of a tensor whose states bitsandbytes' paged optimizers keep in pageable (unified) memory."""
GALORE_RANK: Final = 128
"""Default GaLore rank in transformers' Trainer."""
_PAGED_SOURCE: Final = "bitsandbytes optim/optimizer.py, get_state_buffer: cudaMallocManaged from 1e5 elements on"
_BLOCK: Final = 256
"""Elements per scale in the 8-bit optimizer states of bitsandbytes."""
_SMALL_TENSOR: Final = 4096
_INNER_ROLES: Final[tuple[Role, ...]] = ("linear", "router")
_LARGEST_SOAP_SIDE: Final = 10_000
_SHAMPOO_BLOCK: Final = 1_024


@lru_cache(maxsize=256)
def optimizer_term(trained: Trained, optimizer: Optimizer, parameter_bytes: int) -> Term | None:
    """Return the memory of the optimizer states for `trained` tensors of `parameter_bytes` per element.

    None for plain SGD, which has no state.

    **Formula**: momentum P · w; AdamW 2 · P · w; 8-bit AdamW 2 · (1 + 4/256) for tensors of at least 4,096 elements,
    8 bytes for smaller ones and for embeddings, and half of it for Lion; bitsandbytes' 32-bit states 4 bytes each;
    Adafactor (rows + columns) · w; Muon one momentum for matrices, AdamW for the rest; GaLore two moments of the
    gradient's projection to rank r, and the projection; SOAP and Shampoo squares of the sides that they precondition.

    **Assumes** for paged optimizers that their states are on the card, which holds while nothing else needs the room.
    """
    kind = OPTIMIZERS[optimizer]
    if not kind.states or not trained:
        return None
    kept: dict[OptimizerState, int] = {}
    in_pages = 0
    for tensor, number in trained:
        state = next(state for state in kind.states if _SELECTS[state.tensors](tensor))
        count_bytes = number * _state_bytes(state, tensor, parameter_bytes)
        kept[state] = kept.get(state, 0) + count_bytes
        in_pages += count_bytes if kind.paged and tensor.size >= PAGED_FROM else 0
    parts = tuple(
        TermPart(name=state.name, bytes=count, formula=state.formula, source=state.source)
        for state, count in kept.items()
    )
    total = sum(kept.values())
    sources = [*dict.fromkeys(part.source for part in parts), *([_PAGED_SOURCE] if kind.paged else [])]
    return term(
        "optimizer_states",
        total,
        kind.formula,
        tuple(_SYMBOLS[quantity](trained, parameter_bytes) for quantity in kind.symbols),
        "; ".join(sources),
        certainty="assumed" if in_pages else "exact",
        low_bytes=total - in_pages,
        parts=parts if len(parts) > 1 else (),
    )


def _state_bytes(state: OptimizerState, tensor: Tensor, parameter_bytes: int) -> int:
    """Return the bytes of one optimizer state for `tensor`."""
    return sum(
        [
            count * _UNITS[unit](tensor, parameter_bytes) * (each or parameter_bytes)
            for count, unit, each in state.amounts
        ]
    )


def parameter_count(trained: Trained) -> int:
    """Return the total number of elements in the `trained` tensors."""
    return sum(tensor.size * number for tensor, number in trained)


def is_inner_matrix(tensor: Tensor) -> bool:
    """Return whether Muon and GaLore update `tensor`: a matrix that is neither embedding nor head."""
    return tensor.role in _INNER_ROLES and len(tensor.shape) == 2


def _has_8_bit_state(tensor: Tensor) -> bool:
    """Return whether bitsandbytes keeps an 8-bit state for `tensor`; small tensors and embeddings stay in fp32."""
    return tensor.size >= _SMALL_TENSOR and tensor.role != "embedding"


def _is_matrix(tensor: Tensor) -> bool:
    """Return whether `tensor` has two dimensions or more."""
    return len(tensor.shape) > 1


def _is_vector(tensor: Tensor) -> bool:
    """Return whether `tensor` has at most one dimension."""
    return len(tensor.shape) < 2


def _rows_and_columns(tensor: Tensor) -> int:
    """Return rows plus columns, summed over all matrices of `tensor`."""
    return prod(tensor.shape[:-2]) * (tensor.shape[-2] + tensor.shape[-1])


def galore_projection_elements(tensor: Tensor, parameter_bytes: int) -> int:
    """Return the number of elements that GaLore's projection matrix for `tensor` keeps alive.

    In fp32 the projection is a view into the singular vectors, which keeps all of them.
    """
    smaller = min(tensor.shape)
    return smaller * smaller if parameter_bytes == 4 else smaller * galore_rank(tensor)


def galore_rank(tensor: Tensor) -> int:
    """Return the rank to which GaLore projects the gradient of `tensor`."""
    return min(GALORE_RANK, *tensor.shape)


def projected_gradient_elements(tensor: Tensor, _parameter_bytes: int) -> int:
    """Return the number of elements of a gradient after GaLore's projection."""
    return max(tensor.shape) * galore_rank(tensor)


def soap_square_elements(tensor: Tensor) -> int:
    """Return the elements of SOAP's square matrices for `tensor`: one matrix per preconditioned side."""
    return sum(side * side for side in soap_sides(tensor))


def soap_sides(tensor: Tensor) -> list[int]:
    """Return the sides of `tensor` that SOAP preconditions: sides of up to 10,000 elements."""
    return [side for side in tensor.shape if side <= _LARGEST_SOAP_SIDE] if len(tensor.shape) > 1 else []


def shampoo_factor_elements(tensor: Tensor) -> int:
    """Return the elements of Shampoo's factors of `tensor` and of their inverse roots.

    **Formula**: Σ over blocks of at most 1,024 a side of d · (d + 1); neighbouring sides are one where they fit.
    """
    pieces = [_block_sizes(side) for side in _merged_shape(tensor.shape)]
    return sum(
        prod(number for _, number in block) * sum(side * (side + 1) for side, _ in block) for block in product(*pieces)
    )


def longest_block_side(tensors: list[Tensor]) -> int:
    """Return the longest side of any block into which Shampoo splits `tensors`."""
    return max(min(max(_merged_shape(tensor.shape)), _SHAMPOO_BLOCK) for tensor in tensors)


def _block_sizes(side: int) -> list[tuple[int, int]]:
    """Return the lengths of the blocks into which Shampoo cuts `side`, each with its count."""
    found = [(min(side, _SHAMPOO_BLOCK), max(side // _SHAMPOO_BLOCK, 1))]
    rest = side - found[0][0] * found[0][1]
    return [*found, (rest, 1)] if rest else found


def _merged_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with adjacent dimensions merged, from the last on, while their product fits in a block.

    **Source**: `distributed_shampoo.utils.shampoo_utils.merge_small_dims`.
    """
    sides = [side for side in reversed(shape) if side != 1] or [1]
    merged = [sides[0]]
    for side in sides[1:]:
        if merged[-1] * side <= _SHAMPOO_BLOCK:
            merged[-1] *= side
        else:
            merged.append(side)
    return tuple(reversed(merged))


_SELECTS: Final[dict[StateTensors, Callable[[Tensor], bool]]] = {
    "all": lambda _: True,
    "quantised": _has_8_bit_state,
    "matrices": _is_matrix,
    "inner-matrices": is_inner_matrix,
}
"""Predicates by kind of state: whether the optimizer keeps such a state for a tensor."""
_UNITS: Final[dict[StateUnit, Callable[[Tensor, int], int]]] = {
    "element": lambda tensor, _: tensor.size,
    "scale": lambda tensor, _: ceil_div(tensor.size, _BLOCK),
    "tensor": lambda _tensor, _: 1,
    "row-or-column": lambda tensor, _: _rows_and_columns(tensor),
    "square": lambda tensor, _: soap_square_elements(tensor),
    "triangle": lambda tensor, _: shampoo_factor_elements(tensor),
    "projector": galore_projection_elements,
    "projected": projected_gradient_elements,
}
"""Functions that return how many units (elements, scales, squares, …) the state of a tensor has."""


_SymbolBuilder = Callable[[Trained, int], Symbol]
"""Function that returns a formula symbol for trained tensors and their bytes per element."""


def _total_symbol_builder(
    letter: str, meaning: str, unit: StateUnit = "element", is_selected: Callable[[Tensor], bool] = lambda _: True
) -> _SymbolBuilder:
    """Return a builder of the symbol `letter` for a total number of units of the trained tensors with `is_selected`."""
    return lambda trained, size: model_symbol(
        letter, sum(number * _UNITS[unit](tensor, size) for tensor, number in trained if is_selected(tensor)), meaning
    )


_SYMBOLS: Final[dict[StateQuantity, _SymbolBuilder]] = {
    "parameters": _total_symbol_builder("P", "trained parameters"),
    "width": lambda _, size: format_symbol("w", size, "bytes per element of the states, as in the parameters"),
    "quantised": _total_symbol_builder(
        "Q", "parameters in tensors of at least 4,096 elements, embeddings excepted", is_selected=_has_8_bit_state
    ),
    "scale-block": lambda _trained, _: library_symbol("B", _BLOCK, "number of elements that share one fp32 scale"),
    "inner-matrices": _total_symbol_builder(
        "M", "parameters of matrices updated by this optimizer", is_selected=is_inner_matrix
    ),
    "projectors": _total_symbol_builder(
        "p", "elements of projection matrices, square ones where w is 4", "projector", is_inner_matrix
    ),
    "projected": _total_symbol_builder(
        "m", f"elements of gradients projected to rank {GALORE_RANK} at most", "projected", is_inner_matrix
    ),
    "rows-and-columns": _total_symbol_builder(
        "S", "rows plus columns, summed over all trained matrices", "row-or-column", _is_matrix
    ),
    "vectors": _total_symbol_builder("v", "elements of all trained vectors", is_selected=_is_vector),
    "matrix-count": _total_symbol_builder("G_m", "trained matrices", "tensor", _is_matrix),
    "vector-count": _total_symbol_builder("G_v", "trained vectors", "tensor", _is_vector),
    "squares": _total_symbol_builder("D", "Σ d² of the sides that have a preconditioner", "square"),
    "triangles": _total_symbol_builder("D", "Σ d × (d + 1) of the sides of all blocks", "triangle"),
}
"""Functions that build the symbols in formulas of optimizer states."""
