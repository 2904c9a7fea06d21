"""What optimizers with preconditioners keep and work with: SOAP, and Shampoo in blocks."""

from itertools import product
from math import prod
from typing import Final

from planner.models.architecture import Tensor

SOAP_SOURCE: Final = "nikhilvyas/SOAP soap.py (a1e5535, 2024-12): init_preconditioner, max_precond_dim 10000"
SHAMPOO_SOURCE: Final = (
    "facebookresearch/optimizers DistributedShampoo (f606606, 2026-08) by default: RootInvShampooPreconditionerConfig, "
    "blocks of 1,024, factors packed as triangles in fp32"
)
_FP32: Final = 4
_LARGEST_SOAP_SIDE: Final = 10_000
_SHAMPOO_BLOCK: Final = 1_024


def soap_squares(tensor: Tensor) -> int:
    """Return the elements of one square for each side that SOAP preconditions: of matrices, up to 10,000 wide."""
    return sum(side * side for side in _soap_sides(tensor))


def soap_scratch(tensor: Tensor) -> tuple[int, int]:
    """Return what a step of SOAP holds beside gradient and states: as usual, and where the bases are made anew.

    **Formula** for m ≤ n: max(6 · m · n + m², 4 · m · n + m² + n²) elements between; 4 · m · n + m² + 7 · n² at most
    in every tenth step, with the QR decomposition.

    **Source**: `SOAP.step`, counted allocation by allocation on the CPU; what cuSOLVER works with is not in it.
    """
    squares = sorted(side * side for side in _soap_sides(tensor))
    larger = squares[-1] if squares else 0
    smaller = squares[0] if len(squares) > 1 else 0
    usual = max(6 * tensor.size + smaller, 4 * tensor.size + larger + smaller) if squares else 4 * tensor.size
    anew = 4 * tensor.size + smaller + 7 * larger
    return _FP32 * usual, _FP32 * max(usual, anew)


def _soap_sides(tensor: Tensor) -> list[int]:
    return [side for side in tensor.shape if side <= _LARGEST_SOAP_SIDE] if len(tensor.shape) > 1 else []


def shampoo_factors(tensor: Tensor) -> int:
    """Return the elements of all factors of `tensor`, and of their inverse roots: two triangles for each side.

    **Formula**: Σ over blocks of at most 1,024 a side of d · (d + 1); neighbouring sides are one where they fit.
    """
    pieces = [_pieces(side) for side in _merged(tensor.shape)]
    return sum(
        prod(number for _, number in block) * sum(side * (side + 1) for side, _ in block) for block in product(*pieces)
    )


def shampoo_scratch(tensors: list[Tensor], parameters: int, size: int) -> int:
    """Return what a step of Shampoo holds: all gradients filtered and preconditioned, and one eigendecomposition.

    **Formula**: 2 · P · w + 7 · d² · 4, d being the widest block.

    **Source**: `DistributedShampoo.step`, counted allocation by allocation on the CPU.
    """
    widest = widest_block(tensors)
    return 2 * parameters * size + 7 * widest * widest * _FP32


def widest_block(tensors: list[Tensor]) -> int:
    """Return the longest side of the blocks that Shampoo cuts `tensors` into."""
    return max(min(max(_merged(tensor.shape)), _SHAMPOO_BLOCK) for tensor in tensors)


def _pieces(side: int) -> list[tuple[int, int]]:
    """Return the sizes that `side` is cut into, each with its number."""
    found = [(min(side, _SHAMPOO_BLOCK), max(side // _SHAMPOO_BLOCK, 1))]
    rest = side - found[0][0] * found[0][1]
    return [*found, (rest, 1)] if rest else found


def _merged(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with neighbours made one, from the last on, where they are no wider than a block together.

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
