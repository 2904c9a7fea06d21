"""Time of a matrix product as engines run it."""

from math import ceil
from typing import Final, NamedTuple

from planner.performance.kernels.card import KernelCard, combined_seconds

_TILES: Final = ((64.0, 64.0), (64.0, 128.0), (128.0, 128.0), (128.0, 256.0), (256.0, 128.0), (64.0, 256.0))
"""Rows and columns of the blocks of a result that one multiprocessor computes (NVIDIA/cutlass, default tile shapes)."""
_SPLITS: Final = (1.0, 2.0, 4.0, 8.0)
"""Parts into which the inner size is split so that more multiprocessors work on a small result."""


class ProductShape(NamedTuple):
    """Sizes of (rows × inner) times (inner × columns), with the bytes of an element of weights and inputs."""

    rows: float
    columns: float
    inner: float
    weight_bytes: float
    input_bytes: float


class ProductCurve(NamedTuple):
    """Fitted parameters of matrix products.

    `launch` thousand clock cycles to start it; `matrix` share of the dense rate that an endless block reaches, `edge`
    how much less small blocks reach, `prologue` the inner steps (hundreds) that filling and emptying the pipeline cost;
    `memory` share of the bandwidth, `cache` share of the bandwidth of the L2 cache, `held` the share of it that weights
    occupy; `overlap` how well reading and multiplying overlap; `merge` thousand cycles to sum split parts; `inputs`
    passes over the inputs to quantise or rearrange them.
    """

    launch: float
    matrix: float
    edge: float
    prologue: float
    memory: float
    cache: float
    overlap: float
    merge: float
    inputs: float
    held: float


def matmul_seconds(curve: ProductCurve, shape: ProductShape, card: KernelCard) -> float:
    """Return the seconds of one matrix product.

    **Formula**: launch + (t_products^q + t_bytes^q)^(1/q) + inputs · rows · inner ÷ bandwidth. t_products is the best
    over block shapes and splits of ⌈blocks · splits ÷ multiprocessors⌉ waves, each as long as one block takes on one
    multiprocessor at its share of the rate; t_bytes reads from L2 what fits into it.

    **Source**: NVIDIA, Matrix Multiplication Background User's Guide (tile and wave quantisation); parameters fitted
    to ai-dynamo/aiconfigurator@095f58a.

    **Assumes** that libraries choose the fastest of a few block shapes.
    """
    steady = 2 * card.multiprocessors / (card.ops_per_s * curve.matrix)
    products = 1e9
    for rows, columns in _TILES:
        blocks = ceil(shape.rows / rows) * ceil(shape.columns / columns)
        block = rows * columns * (1 + curve.edge * (64 / rows + 64 / columns)) * steady
        for parts in _SPLITS:
            waves = ceil(blocks * parts / card.multiprocessors)
            merge = card.cycles_seconds(curve.merge) * (parts > 1)
            products = min(products, waves * (shape.inner / parts + curve.prologue * 100) * block + merge)
    weights = shape.columns * shape.inner * shape.weight_bytes
    moved = weights + shape.rows * shape.inner * shape.input_bytes + 2 * shape.rows * shape.columns
    missed = 1 / (1 + (curve.held * card.cache_bytes / moved) ** 4)
    cached = card.port_bytes_per_s * card.multiprocessors * curve.cache
    read = moved * (missed / (card.bytes_per_s * curve.memory) + (1 - missed) / cached)
    passes = curve.inputs * shape.rows * shape.inner / card.bytes_per_s
    return card.cycles_seconds(curve.launch) + combined_seconds(curve.overlap, products, read) + passes
