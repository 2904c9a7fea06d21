"""What a counter that somebody read shows of an estimate: PyTorch's allocated or reserved bytes, or nvidia-smi's."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.chance import Interval
from planner.memory.overhead import framework_overhead
from planner.memory.result import MemoryResult

ALLOCATED: Final = "allocated"
RESERVED: Final = "reserved"
PROCESS: Final = "process"


def counter_of(metric: str) -> str:
    """Return which counter a row's `metric` is: what no source names is taken for the allocated bytes."""
    if metric.startswith("nvidia-smi"):
        return PROCESS
    return RESERVED if metric.startswith("max_memory_reserved") else ALLOCATED


def counted(counter: str, result: MemoryResult, gpu: Gpu | None) -> Interval:
    """Return what `counter` shows of `result` on `gpu`: reserved is without the context, allocated without slack."""
    if counter == PROCESS:
        return Interval(result.low_bytes, result.total_bytes, result.high_bytes)
    context = framework_overhead(gpu, 0, 0, threads=0)
    if counter == RESERVED:
        return Interval(result.low_bytes - context.low, result.reserved_bytes, max(result.high_bytes - context.high, 0))
    overhead = next(term for term in result.terms if term.name == "framework_overhead")
    workspace = next(part.bytes for part in overhead.parts if part.name == "cuBLAS workspace")
    high = result.high_bytes - overhead.high_bytes + workspace
    return Interval(result.low_bytes - context.low, result.allocated_bytes, high)
