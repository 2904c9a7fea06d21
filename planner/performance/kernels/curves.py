"""Fitted curves of kernels in the catalog, and the curve that applies to a GPU."""

import json
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final, Literal, NamedTuple

from planner.errors import CatalogError
from planner.hardware.gpu import Gpu
from planner.paths import catalog_dir
from planner.performance.efficiency import family_of

Kernel = Literal[
    "product",
    "attention-read",
    "attention-write",
    "attention-write-single",
    "latent-read",
    "latent-write",
    "experts",
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
]
"""Kernels with curves; `attention-write-single` is the attention of a new token whose heads do not share keys."""
CurveOrigin = Literal["own table", "family", "same instructions", "all cards"]
"""Origin of a curve: measured on the GPU, on its family, on GPUs with the same matrix instructions, or on all."""
_FAMILY_FILES: Final = {"Hopper PCIe": "Hopper SXM"}
ALL_CARDS: Final = "all-cards"
WARP_LEVEL: Final = "warp-level-cards"
_WARP_LEVEL_MAJORS: Final = ("7", "8", "12")
"""Major compute capabilities of GPUs whose kernels multiply by the instruction of one warp (`mma.sync`).

**Source**: NVIDIA/cutlass README (`sm_90a` has warp-group products, `sm_100a` products by tensor memory; neither is in
`sm_120`); Dao-AILab/flash-attention README (FlashAttention-2 for Ampere and Ada, 3 for Hopper)."""


class KernelCurve(NamedTuple):
    """A fitted curve: its kernel, engine, number format and implementation, its parameters, and how well it fits.

    `head_sizes` are those of attention for which the engine uses this implementation. `median_error` and `error_90` are
    relative errors on `rows` measurements to which it was not fitted; of a family or of all GPUs they are errors on
    GPUs that were left out.
    """

    kernel: str
    engine: str
    format: str
    implementation: str
    head_sizes: tuple[int, ...]
    rows: int
    median_error: float
    error_90: float
    parameters: tuple[float, ...]


class ApplicableCurve(NamedTuple):
    """The curve that applies to a GPU, and where it was measured."""

    curve: KernelCurve
    origin: CurveOrigin


class KernelTime(NamedTuple):
    """Seconds of one kernel, with a range that holds nine of ten measurements, and the origin of its curve."""

    seconds: float
    low_seconds: float
    high_seconds: float
    origin: CurveOrigin

    @classmethod
    def within(cls, seconds: float, found: ApplicableCurve) -> "KernelTime":
        """Return `seconds` with the range of the curve `found`."""
        factor = 1 + found.curve.error_90
        return cls(seconds, seconds / factor, seconds * factor, found.origin)


@lru_cache(maxsize=4096)
def find_curve(gpu: Gpu, kernel: Kernel, engine: str, number_format: str, head_size: int = 0) -> ApplicableCurve | None:
    """Return the curve of `kernel` that applies to `gpu`, or None if no GPU was measured in this format.

    It is the curve of the GPU itself, of its family, of GPUs with the same matrix instructions or of all GPUs, of
    `engine` before other engines, and of the implementation with the right head size and the most measurements.
    """
    for same_engine in (True, False):
        for origin, name in _files(gpu):
            fitting = [
                curve
                for curve in curves_of(name)
                if (curve.kernel, curve.format) == (kernel, number_format)
                and (curve.engine == engine or not same_engine)
                and curve.rows
            ]
            if fitting:
                return ApplicableCurve(
                    max(fitting, key=lambda curve: (head_size in curve.head_sizes, curve.rows)), origin
                )
    return None


def _files(gpu: Gpu) -> Iterator[tuple[CurveOrigin, str]]:
    """Return the names of the catalog files that can apply to `gpu`, nearest first."""
    yield "own table", gpu.id
    family = family_of(gpu)
    yield "family", file_name(_FAMILY_FILES.get(family, family))
    if multiplies_by_warp(gpu):
        yield "same instructions", WARP_LEVEL
    yield "all cards", ALL_CARDS


def multiplies_by_warp(gpu: Gpu) -> bool:
    """Return whether the fastest matrix instruction of `gpu` is that of one warp, so that it runs the same kernels."""
    return (gpu.compute_capability or "").partition(".")[0] in _WARP_LEVEL_MAJORS


def file_name(family: str) -> str:
    """Return the name of the file with the curves of a family of GPUs."""
    return f"family-{family.lower().replace(' ', '-')}"


@cache
def curves_of(name: str) -> tuple[KernelCurve, ...]:
    """Return the curves in the catalog file `name`; none if there is no such file.

    Raises:
        CatalogError: If the file is not as `benchmarks/kernel_fit.py` writes it.
    """
    path = catalog_dir() / "kernels" / f"{name}.json"
    if not path.exists():
        return ()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return tuple(
            KernelCurve(kernel, engine, kind, name, tuple(sizes), rows, middle, high, tuple(parameters))
            for kernel, engine, kind, name, sizes, rows, middle, high, parameters in found["curves"]
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise CatalogError(
            path, "", "curves", "is not a table of curves", hint="Write it anew with benchmarks/kernel_fit.py."
        ) from error
