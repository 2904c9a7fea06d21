"""Parts of an estimate that memory counters show: PyTorch's allocated or reserved bytes, or nvidia-smi's total."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.chance import ByteInterval
from planner.memory.overhead import fixed_overhead
from planner.memory.result import MemoryResult

ALLOCATED: Final = "allocated"
RESERVED: Final = "reserved"
PROCESS: Final = "process"
_SLACK: Final = "allocator slack"


def counter_of(metric: str) -> str:
    """Return the memory counter that a row's `metric` names; unknown names mean allocated bytes."""
    if metric.startswith("nvidia-smi"):
        return PROCESS
    return RESERVED if metric.startswith("max_memory_reserved") else ALLOCATED


def counted(counter: str, result: MemoryResult, gpu: Gpu | None = None) -> ByteInterval:
    """Return the bytes of `result` on `gpu` that `counter` shows, with the interval of what it shows.

    Allocated bytes have no context and no slack, whose ranges do not count then; reserved bytes have no context.
    """
    overhead = result.term("framework_overhead")
    if counter == PROCESS or overhead is None:
        return ByteInterval(result.low_bytes, result.total_bytes, result.high_bytes)
    context = fixed_overhead(gpu).context
    slack = next(part.bytes for part in overhead.parts if part.name == _SLACK)
    inside = overhead.bytes - context.bytes - slack
    low = result.low_bytes - overhead.low_bytes + inside
    high = result.high_bytes - overhead.high_bytes + inside
    if counter == ALLOCATED:
        return ByteInterval(low, result.allocated_bytes, high)
    return ByteInterval(low, result.reserved_bytes, high + overhead.high_bytes - context.high - inside)
