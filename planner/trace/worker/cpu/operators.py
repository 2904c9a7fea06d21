"""This machine's CPU while a run is traced for it: what its kernels hold, and by how much that may differ."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final

import torch

from planner.trace.recording import TraceDifference
from planner.trace.worker.cpu.convolutions import is_half, vector_units
from planner.trace.worker.cpu.kernels import hidden_bytes
from planner.units import KIB, MIB

_aten: Final = torch.ops.aten
_TILES_ERRORS_BYTES: Final = (-320 * KIB, 2355 * KIB)
"""Bounds of what a half-precision convolution holds beside the formulas, on a CPU with matrix tiles.

They are the largest errors of 60 random shapes. With tiles, oneDNN takes `brgemm_convolution`, or a kernel of
`jit_avx512_core_amx`, by an estimate of its efficiency for each way of blocking (`est_eff` in its
jit_brgemm_conv_utils.cpp), and whether the input is copied padded follows from that; a formula would have to repeat
this choice, and needs a CPU with tiles to be checked.
"""
_VECTORS_ERRORS_BYTES: Final = (-417 * KIB, 256 * KIB)
"""The same on a CPU without: a weight's gradient of few channels and one image, and a transposed one of uneven width.

**Source**: largest errors of `benchmarks/half_convolutions.py`.
"""
_PRODUCT_SCRATCH_BYTES: Final = MIB
"""Largest measured error of the formula for a half-precision matrix product."""
_CONVOLUTIONS: Final = frozenset((_aten.convolution.default, _aten.convolution_backward.default))
_PRODUCTS: Final = frozenset(
    (
        *(_aten.mm.default, _aten.addmm.default, _aten.bmm.default, _aten.baddbmm.default),
        *(_aten._native_multi_head_attention.default, _aten._transformer_encoder_layer_fwd.default),
        _aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    )
)
_IN_BLOCKS: Final = _CONVOLUTIONS | _PRODUCTS
_CHECKED_CAPABILITIES: Final = ("AVX512", "AVX2")


class CpuOperators(AbstractContextManager["CpuOperators"]):
    """Context that watches the CPU's operators: `note` receives what may differ on exit, `tell` what is not checked."""

    def __init__(self, note: Callable[[TraceDifference], None], tell: Callable[[str], None]) -> None:
        self._note = note
        self._in_half_precision = set[Any]()
        if torch.backends.cpu.get_cpu_capability() not in _CHECKED_CAPABILITIES:
            tell("Layouts and scratch memory were checked only on CPUs with AVX2 and AVX-512, not on one like this.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for difference in self._differences():
            self._note(difference)

    def hidden_bytes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        """Return the maximum bytes held by the CPU's kernel of `func` in addition to its inputs and `result`."""
        if func in _IN_BLOCKS and is_half(args[0]):
            self._in_half_precision.add(func)
        return hidden_bytes(func, args, kwargs, result)

    def _differences(self) -> Iterator[TraceDifference]:
        """Yield by how much the formulas for kernels in half precision may be off.

        **Source**: `benchmarks/real_peaks.py --operators`, `benchmarks/half_convolutions.py` and
        `benchmarks/trace_accuracy.py`, which compare kernels and whole runs with the profiler's events.
        """
        if self._in_half_precision & _CONVOLUTIONS:
            low_bytes, high_bytes = _TILES_ERRORS_BYTES if vector_units().has_tiles else _VECTORS_ERRORS_BYTES
            yield _scratch_difference(
                "oneDNN's scratch memory for convolutions in half precision", low_bytes, high_bytes
            )
        if self._in_half_precision & _PRODUCTS:
            name = "oneDNN's blocks of matrices in half precision"
            yield _scratch_difference(name, -_PRODUCT_SCRATCH_BYTES, _PRODUCT_SCRATCH_BYTES)


def _scratch_difference(name: str, low_bytes: int, high_bytes: int) -> TraceDifference:
    """Return a difference for memory that is computed by a formula, with its largest measured errors as bounds."""
    return TraceDifference(
        name=name,
        explanation="invisible to the dispatcher; computed by formula, with the largest measured error as bound",
        source="measured with the profiler: benchmarks/real_peaks.py --operators",
        low_bytes=low_bytes,
        high_bytes=high_bytes,
    )
