"""What the state of an optimizer takes for one tensor."""

from math import prod
from typing import Final

from planner.models.architecture import Role, Tensor
from planner.units import ceil_div

Trained = tuple[tuple[Tensor, int], ...]
"""Trained tensors, each with its number."""

GALORE_RANK: Final = 128
"""The rank that transformers' Trainer gives GaLore unless told otherwise."""
BLOCK: Final = 256
"""Elements that share a scale in the 8-bit states of bitsandbytes."""
_SMALL_TENSOR: Final = 4096
_MATRIX_ROLES: Final[tuple[Role, ...]] = ("linear", "router")


def parameters_in(trained: Trained) -> int:
    """Return the number of elements of `trained` tensors."""
    return sum(tensor.size * number for tensor, number in trained)


def in_8_bits(tensor: Tensor) -> bool:
    """Return whether bitsandbytes keeps the state of `tensor` in 8 bits: small tensors and embeddings stay in fp32."""
    return tensor.size >= _SMALL_TENSOR and tensor.role != "embedding"


def eight_bit_bytes(tensor: Tensor) -> int:
    """Return one 8-bit state of `tensor`, with a scale in fp32 for each block."""
    return tensor.size + 4 * ceil_div(tensor.size, BLOCK)


def factored_bytes(tensor: Tensor, size: int) -> int:
    """Return Adafactor's sums over rows and over columns, one pair for each matrix."""
    rows, columns = tensor.shape[-2], tensor.shape[-1]
    return prod(tensor.shape[:-2]) * (rows + columns) * size


def galore_projection_elements(tensor: Tensor, size: int) -> int:
    """Return the elements of GaLore's projection that stay alive.

    In fp32 the projection is a view into the singular vectors, which keeps all of them.
    """
    smaller = min(tensor.shape)
    return smaller * smaller if size == 4 else smaller * galore_rank(tensor)


def galore_rank(tensor: Tensor) -> int:
    """Return the rank that GaLore projects the gradient of `tensor` to."""
    return min(GALORE_RANK, *tensor.shape)


def projected_elements(tensor: Tensor, _size: int) -> int:
    """Return the elements of the gradient of `tensor` after GaLore's projection."""
    return max(tensor.shape) * galore_rank(tensor)


def galore_bytes(tensor: Tensor, size: int) -> int:
    """Return GaLore's projection of `tensor` and both moments of what is projected."""
    return size * (galore_projection_elements(tensor, size) + 2 * projected_elements(tensor, size))


def is_matrix(tensor: Tensor) -> bool:
    """Return whether Muon and GaLore take `tensor`: a matrix inside the network, no embedding and no head."""
    return tensor.role in _MATRIX_ROLES and len(tensor.shape) == 2
