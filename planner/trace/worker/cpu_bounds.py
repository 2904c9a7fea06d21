"""What the formulas of the CPU's kernels leave out, with its bounds."""

from collections.abc import Iterator
from typing import Final

import torch

from planner.trace.recording import Difference
from planner.trace.request import TraceRequest
from planner.units import KIB, MIB

_HALF: Final = ("bf16", "fp16")
_CONVOLUTION_SCRATCH: Final = 2355 * KIB
"""The most that a convolution in half precision was seen to hold beside the formulas: one with a stride, forward."""
_PRODUCT_SCRATCH: Final = MIB
"""The most by which the formula of a product in half precision was seen to miss."""
_CHECKED_ON: Final = ("AVX512", "AVX2")


def differences(request: TraceRequest, operators: tuple[str, ...]) -> Iterator[Difference]:
    """Yield what a trace with the CPU's operators may miss, by the operators that ran.

    **Source**: `benchmarks/real_peaks.py --operators` and `benchmarks/trace_accuracy.py`, which put kernels and whole
    runs beside the profiler's events.
    """
    names = {name.partition(".")[0] for name in operators}
    half = request.autocast in _HALF or request.dtype in _HALF
    if half and names & {"aten::convolution", "aten::convolution_backward"}:
        yield _scratch("oneDNN's scratch memory for convolutions in half precision", _CONVOLUTION_SCRATCH)
    if half and names & {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}:
        yield _scratch("oneDNN's blocks of matrices in half precision", _PRODUCT_SCRATCH, low=-_PRODUCT_SCRATCH)
    if torch.backends.cpu.get_cpu_capability() not in _CHECKED_ON:
        yield Difference(
            name="this processor's kernels",
            explanation="layouts and scratch memory were checked on processors with AVX2 and AVX-512 only",
            source="benchmarks/trace_accuracy.py",
        )


def _scratch(name: str, most: int, low: int = 0) -> Difference:
    return Difference(
        name=name,
        explanation="no dispatcher sees it; taken as the formulas say, and at most as much off as was measured",
        source="measured with the profiler: benchmarks/real_peaks.py --operators",
        low_bytes=low,
        high_bytes=most,
    )
