"""Parts of an estimate that memory counters show: PyTorch's allocated or reserved bytes, or nvidia-smi's total."""

from typing import Final

from planner.memory.chance import ByteInterval
from planner.memory.result import MemoryResult

ALLOCATED: Final = "allocated"
RESERVED: Final = "reserved"
PROCESS: Final = "process"


def counter_of(metric: str) -> str:
    """Return the memory counter that a row's `metric` names; unknown names mean allocated bytes."""
    if metric.startswith("nvidia-smi"):
        return PROCESS
    return RESERVED if metric.startswith("max_memory_reserved") else ALLOCATED


def counted(counter: str, result: MemoryResult) -> ByteInterval:
    """Return the bytes of `result` that `counter` shows, with the interval of the total need.

    What a counter leaves out, the context and the allocator's slack, is taken to be as expected: the ends are as far
    away as those by which the verdict is found.
    """
    shown = {PROCESS: result.total_bytes, RESERVED: result.reserved_bytes, ALLOCATED: result.allocated_bytes}[counter]
    left_out = result.total_bytes - shown
    return ByteInterval(result.low_bytes - left_out, shown, result.high_bytes - left_out)
