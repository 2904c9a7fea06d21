"""Time of matrix products as engines run them: single ones, and those of one layer's routed experts."""

from math import ceil, exp, sqrt
from typing import Final, NamedTuple

from planner.performance.kernels.gpu_figures import GpuFigures, combined_seconds

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


def matmul_seconds(curve: ProductCurve, shape: ProductShape, gpu: GpuFigures) -> float:
    """Return the seconds of one matrix product.

    **Formula**: launch + (t_products^q + t_bytes^q)^(1/q) + inputs · rows · inner ÷ bandwidth. t_products is the best
    over block shapes and splits of ⌈blocks · splits ÷ multiprocessors⌉ waves, each as long as one block takes on one
    multiprocessor at its share of the rate; t_bytes reads from L2 what fits into it.

    **Source**: NVIDIA, Matrix Multiplication Background User's Guide (tile and wave quantisation); parameters fitted
    to ai-dynamo/aiconfigurator@095f58a.

    **Assumes** that libraries choose the fastest of a few block shapes.
    """
    steady = 2 * gpu.multiprocessors / (gpu.ops_per_s * curve.matrix)
    products = 1e9
    for rows, columns in _TILES:
        blocks = ceil(shape.rows / rows) * ceil(shape.columns / columns)
        block = rows * columns * (1 + curve.edge * (64 / rows + 64 / columns)) * steady
        for parts in _SPLITS:
            waves = ceil(blocks * parts / gpu.multiprocessors)
            merge = gpu.cycles_seconds(curve.merge) * (parts > 1)
            products = min(products, waves * (shape.inner / parts + curve.prologue * 100) * block + merge)
    weights = shape.columns * shape.inner * shape.weight_bytes
    moved = weights + shape.rows * shape.inner * shape.input_bytes + 2 * shape.rows * shape.columns
    missed = 1 / (1 + (curve.held * gpu.cache_bytes / moved) ** 4)
    cached = gpu.port_bytes_per_s * gpu.multiprocessors * curve.cache
    read = moved * (missed / (gpu.bytes_per_s * curve.memory) + (1 - missed) / cached)
    passes = curve.inputs * shape.rows * shape.inner / gpu.bytes_per_s
    return gpu.cycles_seconds(curve.launch) + combined_seconds(curve.overlap, products, read) + passes


class ExpertShape(NamedTuple):
    """Sizes of a layer of routed experts on one GPU.

    `tokens` of the whole group are routed to `chosen` of `experts` each, which `cards` share; an expert has `matrices`
    (3 if gated) of `hidden` × `width`, the width on this GPU, with `weight_bytes` an element. `skewed` is 1 if a few
    experts get most tokens, 0 if all get as many.
    """

    tokens: float
    hidden: float
    width: float
    experts: float
    chosen: float
    cards: float
    matrices: float
    weight_bytes: float
    skewed: float


class ExpertCurve(NamedTuple):
    """Fitted parameters of routed experts.

    `launch` thousand clock cycles; `matrix` share of the dense rate with many rows for each expert, `few` rows (in 32)
    below which it falls and `fall` how steeply; `memory` share of the bandwidth, `overlap` of both; `moved` passes over
    inputs and results; `even` and `even_growth` how much more than the mean the fullest GPU gets if tokens are spread
    evenly, `uneven` and `uneven_growth` if not; `expert` the launch of each expert in tens of cycles; `prologue` inner
    steps (hundreds); `cache` share of the bandwidth of the L2 cache; `unit` share of that between one multiprocessor
    and the cache; `spread` and `clustered` how fast experts are touched with the number of rows.
    """

    launch: float
    matrix: float
    memory: float
    few: float
    fall: float
    overlap: float
    moved: float
    even: float
    uneven: float
    even_growth: float
    uneven_growth: float
    expert: float
    prologue: float
    cache: float
    unit: float
    spread: float
    clustered: float


def experts_seconds(curve: ExpertCurve, shape: ExpertShape, gpu: GpuFigures) -> float:
    """Return the seconds of a layer's routed experts on the fullest of the GPUs that share them.

    **Formula**: launch + (t_products^q + t_bytes^q + t_alone^q)^(1/q) + passes over the rows + launches of experts; the
    touched experts are E · (1 − e^(−rows ÷ E)), and products with few rows for each reach less of the rate.

    **Source**: grouped products of NVIDIA/cutlass; parameters fitted to ai-dynamo/aiconfigurator@095f58a, whose tokens
    are spread evenly, or by a power law with the fullest GPU measured.

    **Assumes** that a GPU computes no token more than once for each of its experts.
    """
    skew, even, held = shape.skewed, 1 - shape.skewed, shape.experts / shape.cards
    growth = float(shape.cards ** (curve.even_growth * even + curve.uneven_growth * skew))
    fuller = (curve.even * 0.8 * even + curve.uneven * 4 * skew) * growth / sqrt(held)
    rows = shape.tokens * shape.chosen / shape.cards * (1 + (shape.cards > 1) * fuller)
    rows = min(rows, shape.tokens * min(shape.chosen, held))
    reach = curve.spread * even + curve.clustered * skew
    touched = min(held * (1 - exp(-rows / held * reach)), rows)
    weights = shape.matrices * shape.hidden * shape.width
    each = rows / touched
    slower = float(((each + curve.few * 32) / each) ** curve.fall) * (1 + curve.prologue * 100 / shape.hidden)
    products = 2 * rows * weights / (gpu.ops_per_s * curve.matrix) * slower
    read = touched * weights * shape.weight_bytes
    missed = 1 / (1 + (gpu.cache_bytes / read) ** 4)
    cached = gpu.port_bytes_per_s * gpu.multiprocessors * curve.cache
    read = read * (missed / (gpu.bytes_per_s * curve.memory) + (1 - missed) / cached)
    strip = 128 * shape.weight_bytes / (gpu.port_bytes_per_s * curve.unit)
    alone = (shape.hidden + shape.width) * strip * min(touched, 1.0)
    passes = curve.moved * rows * (4 * shape.hidden + 2 * shape.matrices * shape.width) / gpu.bytes_per_s
    kernels = combined_seconds(curve.overlap, products, read, alone)
    return gpu.cycles_seconds(curve.launch + held * curve.expert * 1e-2) + kernels + passes
