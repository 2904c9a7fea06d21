"""What the caching allocator takes from the card to serve a recorded run, and the line where it runs out."""

from planner.trace.allocator.replay import RunOut, replay
from planner.trace.allocator.settings import DEFAULTS, AllocatorSettings
from planner.trace.analysis.course import maker_of, span_at
from planner.trace.recording import Recording
from planner.trace.result import OutOfMemory, Reservation


def reservation(
    recording: Recording, settings: AllocatorSettings = DEFAULTS, capacity_bytes: int | None = None
) -> Reservation:
    """Return what the run takes of a card that leaves `capacity_bytes` to the allocator, up to where it runs out."""
    replayed = replay(recording.allocations, settings, capacity_bytes)
    failed = replayed.out_of_memory
    return Reservation(
        settings=settings.text,
        reserved_bytes=replayed.reserved_bytes,
        allocated_bytes=replayed.allocated_bytes,
        largest_free_block_bytes=replayed.largest_free_block_bytes,
        segments=replayed.segments,
        fragmentation_fraction=replayed.fragmentation_fraction,
        out_of_memory=None if failed is None else _explain(recording, failed),
    )


def _explain(recording: Recording, failed: RunOut) -> OutOfMemory:
    span, maker = span_at(recording.spans, failed.time), maker_of(recording, failed.index)
    return OutOfMemory(
        time=failed.time,
        step=span.step,
        phase=span.name,
        bytes=failed.bytes,
        allocated_bytes=failed.allocated_bytes,
        reserved_bytes=failed.reserved_bytes,
        operator=maker.operator,
        module=maker.module,
        line=maker.line,
    )
