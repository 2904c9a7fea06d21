"""Parts of an estimate that memory counters show: PyTorch's allocated or reserved bytes, or nvidia-smi's total.

Allocated bytes and the context are what PyTorch counts, and what nvidia-smi shows beyond the reserved bytes.
"""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.chance import ByteInterval
from planner.memory.overhead import DeviceContext, fixed_overhead
from planner.memory.result import MemoryResult

ALLOCATED: Final = "allocated"
RESERVED: Final = "reserved"
PROCESS: Final = "process"
WITH_CONTEXT: Final = "context and allocated"
_SLACK: Final = "allocator slack"


def counter_of(metric: str) -> str:
    """Return the memory counter that a row's `metric` names; unknown names mean allocated bytes."""
    if metric.startswith("nvidia-smi"):
        return PROCESS
    if "+ context" in metric:
        return WITH_CONTEXT
    return RESERVED if metric.startswith("max_memory_reserved") else ALLOCATED


def counted(
    counter: str, result: MemoryResult, gpu: Gpu | None = None, known: DeviceContext | None = None
) -> ByteInterval:
    """Return the bytes of `result` on `gpu` that `counter` shows, with the interval of what it shows.

    Allocated bytes have no context and no slack, whose ranges do not count then; reserved bytes have no context. The
    context is the `known` one where the version that ran had another.
    """
    overhead, assumed = result.term("framework_overhead"), fixed_overhead(gpu).context
    context = assumed if known is None else known
    if counter == PROCESS or overhead is None:
        return ByteInterval(
            result.low_bytes + context.low - assumed.low,
            result.total_bytes + context.bytes - assumed.bytes,
            result.high_bytes + context.high - assumed.high,
        )
    slack = next(part.bytes for part in overhead.parts if part.name == _SLACK)
    inside = overhead.bytes - assumed.bytes - slack
    low = result.low_bytes - overhead.low_bytes + inside
    high = result.high_bytes - overhead.high_bytes + inside
    if counter == RESERVED:
        return ByteInterval(low, result.reserved_bytes, high + overhead.high_bytes - assumed.high - inside)
    beside = context if counter == WITH_CONTEXT else DeviceContext(0, 0, 0)
    return ByteInterval(low + beside.low, result.allocated_bytes + beside.bytes, high + beside.high)
