"""Framework overhead beyond the tensors: the GPU context, library workspaces, and the allocator's slack."""

from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.memory.result import Symbol, Term, TermPart
from planner.memory.terms import card_symbol, library_symbol, term
from planner.units import GIB, KIB, MIB

_CONTEXT_SOURCE: Final = (
    "measured with lazy loading: T4 141 MiB (fitcheck-llm README), RTX 6000 Ada 426 MiB (unslothai/unsloth-zoo#1053), "
    "H100 0.51 GiB (llm-d-planner logs); RTX PRO 6000 749 MiB with cuBLAS (ggml-org/llama.cpp#27953). Before PyTorch "
    "1.13 with CUDA 11.7 every kernel was loaded at the start (pytorch/pytorch#86509, #107667): 1,343 MiB "
    "(transformers, perf_train_gpu_one.md)"
)
_EAGER: Final = 1343 * MIB
"""Context of a version that loads every kernel at the start, which cards before Ada Lovelace may still run."""
_WORKSPACE_SOURCE: Final = (
    "pytorch aten/src/ATen/cuda/CublasHandlePool.cpp: 2 × 4096 + 8 × 16 KiB, 32 MiB on sm_90, for each thread's handle"
)
_SLACK_SOURCE: Final = (
    "Megatron-LM theoretical_memory_usage.py allows 5 % for fragmentation; at worst one hole of the largest tensor"
)
_SLACK_SHARE: Final = 0.05
_MOST_SLACK_SHARE: Final = 0.232
"""Largest published share: 18.02 GiB allocated and 22.2 reserved in one step (InternLM/xtuner, loss benchmark)."""
_SHORT_LIVED_ENDS: Final = 14 * MIB
"""Median of what open measurements hold beyond what is counted (`benchmarks/calibration.py` finds it again without each
source): mostly the ends of segments beside short-lived tensors, which depend on their order."""
_UNSPLIT_SOURCE: Final = (
    "c10/cuda/CUDACachingAllocator.cpp should_split: up to 1 MiB at the end of a segment stays with its last block; "
    "beside short-lived tensors 14 MiB, the median of published measurements"
)


class DeviceContext(NamedTuple):
    """Size in bytes of a CUDA or similar GPU context: likely size, and measured range per architecture."""

    bytes: int
    low: int
    high: int


MEASURED_CONTEXTS: Final = {
    "Turing": DeviceContext(141 * MIB, 141 * MIB, _EAGER),
    "Ada Lovelace": DeviceContext(426 * MIB, 287 * MIB, 667 * MIB),
    "Hopper": DeviceContext(522 * MIB, 426 * MIB, 749 * MIB),
    # 749 MiB less the 32 MiB workspace, which is counted separately.
    "Blackwell": DeviceContext(717 * MIB, 426 * MIB, 749 * MIB),
}
_UNKNOWN_CONTEXT: Final = DeviceContext(426 * MIB, 141 * MIB, 749 * MIB)
_OLDER_CONTEXT: Final = DeviceContext(426 * MIB, 141 * MIB, _EAGER)
_OLDER: Final = ("Kepler", "Maxwell", "Pascal", "Volta", "Ampere")


class FrameworkOverhead(NamedTuple):
    """Parts of the framework's overhead in bytes, with lower and upper bound of the sum.

    `unsplit` is what blocks of long-lived tensors hold beyond the tensors, and counts as allocated.
    """

    context: int
    workspace: int
    unsplit: int
    slack: int
    low: int
    high: int

    @property
    def total(self) -> int:
        """Return the expected overhead in bytes: context, workspace, unsplit blocks and slack."""
        return self.context + self.workspace + self.unsplit + self.slack


class FixedOverhead(NamedTuple):
    """Overhead independent of the workload: GPU context, and one cuBLAS workspace per thread."""

    context: DeviceContext
    workspace: int


def fixed_overhead(gpu: Gpu | None) -> FixedOverhead:
    """Return the workload-independent overhead of `gpu` in bytes, or of a typical CUDA card if None."""
    return FixedOverhead(_context_on(gpu), cublas_workspace_bytes(gpu))


def _context_on(gpu: Gpu | None) -> DeviceContext:
    """Return the size of the GPU context on `gpu`, or on a CUDA card of any age if None."""
    if gpu is None or gpu.architecture in _OLDER:
        return _OLDER_CONTEXT
    return MEASURED_CONTEXTS.get(gpu.architecture, _UNKNOWN_CONTEXT)


def framework_overhead(
    fixed: FixedOverhead, dynamic_bytes: int, largest_tensor_bytes: int, threads: int = 1, unsplit_bytes: int = 0
) -> FrameworkOverhead:
    """Return the overhead of a run that allocates `dynamic_bytes` of short-lived tensors, from a card's `fixed` part.

    **Formula**: context + cuBLAS workspace of each thread + ends of segments that stay with blocks + f · D, where D is
    what is allocated and freed in each step. The backward pass runs in a separate thread.

    **Source**: contexts as measured by others for four families; the workspace from PyTorch's source; 5 % slack from
    Megatron-LM. The context of other families is assumed to lie in the range of those four. The slack is at most
    0.232 · D, or a hole as large as the largest tensor.
    """
    ends = unsplit_bytes + (_SHORT_LIVED_ENDS if dynamic_bytes else 0)
    hole = max(int(dynamic_bytes * _MOST_SLACK_SHARE), min(largest_tensor_bytes, GIB))
    return overhead_with_slack(fixed, int(dynamic_bytes * _SLACK_SHARE), hole, threads, ends)


def overhead_with_slack(
    fixed: FixedOverhead, slack_bytes: int, most_slack_bytes: int, threads: int = 1, unsplit_bytes: int = 0
) -> FrameworkOverhead:
    """Return the overhead of a card with `fixed` part and `slack_bytes` that the allocator holds unused.

    The slack ranges from zero to `most_slack_bytes`.
    """
    context, workspace = fixed.context, threads * fixed.workspace
    hole = max(slack_bytes, most_slack_bytes)
    return FrameworkOverhead(
        context.bytes,
        workspace,
        unsplit_bytes,
        slack_bytes,
        context.low + workspace + unsplit_bytes,
        context.high + workspace + unsplit_bytes + hole,
    )


def overhead_term(overhead: FrameworkOverhead, dynamic_bytes: int) -> Term:
    """Return `overhead` as a memory term with its parts; the slack is a share of `dynamic_bytes`."""
    symbols = (
        library_symbol("f", _SLACK_SHARE, "share of short-lived memory that the allocator cannot reuse immediately"),
        library_symbol("D", dynamic_bytes, "bytes of short-lived tensors, allocated and freed in each step"),
    )
    return write_overhead(overhead, "f × D", symbols, _SLACK_SOURCE)


def write_overhead(overhead: FrameworkOverhead, slack_formula: str, symbols: tuple[Symbol, ...], source: str) -> Term:
    """Return `overhead` as a memory term with its parts, the slack with `slack_formula`, `symbols` and `source`."""
    return term(
        "framework_overhead",
        overhead.total,
        f"C + W + U + {slack_formula}" if overhead.unsplit else f"C + W + {slack_formula}",
        (
            *_fixed_symbols(overhead.context, overhead.workspace),
            *([_unsplit_symbol(overhead.unsplit)] if overhead.unsplit else ()),
            *symbols,
        ),
        f"{_CONTEXT_SOURCE}; {_WORKSPACE_SOURCE}; {source}",
        certainty="assumed",
        low_bytes=overhead.low,
        high_bytes=overhead.high,
        parts=(
            *_fixed_parts(overhead.context, overhead.workspace),
            *([_unsplit_part(overhead.unsplit)] if overhead.unsplit else ()),
            TermPart(name="allocator slack", bytes=overhead.slack, formula=slack_formula, source=source),
        ),
    )


def _fixed_symbols(context_bytes: int, workspace_bytes: int) -> tuple[Symbol, ...]:
    """Return the formula symbols for the bytes of GPU context and cuBLAS workspaces."""
    return (
        card_symbol("C", context_bytes, "bytes of the GPU context"),
        library_symbol("W", workspace_bytes, "bytes of the cuBLAS workspaces"),
    )


def _unsplit_symbol(unsplit_bytes: int) -> Symbol:
    return library_symbol("U", unsplit_bytes, "bytes that blocks hold beyond their tensors")


def _unsplit_part(unsplit_bytes: int) -> TermPart:
    return TermPart(
        name="allocator fragmentation (within blocks)", bytes=unsplit_bytes, formula="U", source=_UNSPLIT_SOURCE
    )


def _fixed_parts(context_bytes: int, workspace_bytes: int) -> tuple[TermPart, ...]:
    """Return GPU context and cuBLAS workspaces as parts of the overhead term."""
    return (
        TermPart(name="GPU context (CUDA or HIP)", bytes=context_bytes, formula="C", source=_CONTEXT_SOURCE),
        TermPart(name="cuBLAS workspace", bytes=workspace_bytes, formula="W", source=_WORKSPACE_SOURCE),
    )


def cublas_workspace_bytes(gpu: Gpu | None) -> int:
    """Return the size in bytes of PyTorch's cuBLAS workspace per stream: 32 MiB from compute capability 9.0 on."""
    major = (gpu.compute_capability or "").split(".")[0] if gpu and gpu.vendor == "NVIDIA" else ""
    large = gpu is not None and (gpu.vendor == "AMD" or (major.isdigit() and int(major) >= 9))
    return 32 * MIB if large else 2 * 4096 * KIB + 8 * 16 * KIB
