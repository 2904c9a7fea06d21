"""What the caching allocator takes from the card to serve a recorded run, and the line where it runs out."""

from planner.trace.allocator import RunOut, replay
from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.recording import Recording, Span
from planner.trace.result import OutOfMemory, Reservation


def reservation(recording: Recording, settings: AllocatorSettings, capacity_bytes: int | None = None) -> Reservation:
    """Return what a card that leaves `capacity_bytes` to the allocator would have to give.

    Where they are not enough, the figures are what the whole run takes of a card without an end, beside the
    allocation that failed.
    """
    limited = replay(recording.allocations, settings, capacity_bytes)
    whole = replay(recording.allocations, settings) if limited.out_of_memory else limited
    return Reservation(
        settings=settings.text,
        reserved_bytes=whole.reserved_bytes,
        allocated_bytes=whole.allocated_bytes,
        largest_free_block_bytes=whole.largest_free_block_bytes,
        segments=whole.segments,
        fragmentation_fraction=whole.fragmentation_fraction,
        out_of_memory=None if limited.out_of_memory is None else _explain(recording, limited.out_of_memory),
    )


def _explain(recording: Recording, failed: RunOut) -> OutOfMemory:
    allocations, span = recording.allocations, _span_at(recording.spans, failed.time)
    return OutOfMemory(
        time=failed.time,
        step=span.step,
        phase=span.name,
        bytes=failed.bytes,
        allocated_bytes=failed.allocated_bytes,
        reserved_bytes=failed.reserved_bytes,
        operator=recording.operators[allocations.operator[failed.index]],
        module=recording.module_paths[allocations.module[failed.index]],
        line=recording.lines[allocations.line[failed.index]],
    )


def _span_at(spans: tuple[Span, ...], time: int) -> Span:
    """Return the phase that `time` lies in; what lies between two phases counts to the one before."""
    before = [span for span in spans if span.start <= time]
    return before[-1] if before else Span(name="load", step=0, start=0, end=time + 1)
