"""Bounds on the peak of a run that depends on unknown values, from traces that assume other values."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from planner.errors import PlannerError
from planner.trace.analysis.live_memory import live_memory
from planner.trace.facts import TraceDifference
from planner.trace.recording import TraceRecording
from planner.trace.request import AssumedValue, TraceRequest
from planner.trace.run import TraceLimits, trace
from planner.trace.worker.fake_tensors.assumptions import MOST_ROUNDS

_PARALLEL_TRACES: Final = 2
_MAX_CONDITIONS: Final = 8
"""Most conditions that are turned around one at a time."""
_MAX_TOLD: Final = 4
_NO_BOUNDS: Final = "No trace with other values succeeded, so how far the peak may be off is not known."
_SHORTEST_SECONDS: Final = 30.0
_TIMES_AS_LONG: Final = 10
"""How many times as long as the first trace one with other values may take; a loop may not end with them."""


def with_bounds(recording: TraceRecording, assumed: tuple[str, ...], conditions: Mapping[str, bool]) -> TraceRecording:
    """Return `recording`, in which `assumed` was assumed, with the bounds of its peak unless no other value matters.

    Values that end in an error do not occur in a run that works, so they bound nothing; a note says if all do. Where
    `conditions` depend on numbers, as in an adaptive solver, a trace with drawn values is returned instead, unless the
    user gave some or it fails: a small network decides there as it does in a real run.
    """
    request = recording.request
    limits = TraceLimits(seconds=max(_SHORTEST_SECONDS, _TIMES_AS_LONG * recording.seconds))
    typical = live_memory(recording.allocations).totals
    with ThreadPoolExecutor(_PARALLEL_TRACES) as pool:
        is_drawn = conditions and not request.assume
        drawn = pool.submit(_traced, request.evolve(unknown_values="drawn"), limits) if is_drawn else None
        traces = pool.map(lambda other: _traced(other, limits), _other_requests(request, conditions))
        levels = [live_memory(found.allocations).totals for found in traces if found is not None]
    if drawn is not None and (found := drawn.result()) is not None:
        recording = found.evolve(request=request)
        levels.append(live_memory(recording.allocations).totals)
    told = " ".join(assumed[:_MAX_TOLD]) + (f" And {len(assumed) - _MAX_TOLD} more." if assumed[_MAX_TOLD:] else "")
    if not levels:
        return recording.evolve(notes=(*recording.notes, f"{told} {_NO_BOUNDS}"))
    low, high = _peak_bounds([typical, *levels])
    if low == high:
        return recording
    difference = TraceDifference(
        name="values that depend on the data",
        explanation=f"{told} The bounds are the peaks with other values; set values with --assume",
        source=f"{len(levels)} more traces: most and fewest selected, numbers that fall slowly, each condition turned "
        f"around, drawn numbers, loops of up to {MOST_ROUNDS} rounds",
        bytes=max(live_memory(recording.allocations).totals) - low,
        low_bytes=0,
        high_bytes=high - low,
    )
    return recording.evolve(differences=(*recording.differences, difference))


def _peak_bounds(levels: list[tuple[int, ...]]) -> tuple[int, int]:
    """Return the least and the largest possible peak by the live bytes of several traces, typical values first.

    Where the traces have the same events, the live bytes at each event are linear in what is selected: they lie between
    the least and the most of all traces, and the peak is at least the largest of the least.
    """
    alike = [found for found in levels if len(found) == len(levels[0])]
    peaks = [max(found) for found in levels]
    return min(max(map(min, zip(*alike, strict=True))), *peaks), max(peaks)


def _other_requests(request: TraceRequest, conditions: Mapping[str, bool]) -> Iterator[TraceRequest]:
    """Yield the request with other unknown values, then with one condition after the other turned around."""
    yield request.evolve(unknown_values="fewest")
    yield request.evolve(unknown_values="most")
    if conditions:
        yield request.evolve(unknown_values="slowest")
    for line, first in list(conditions.items())[:_MAX_CONDITIONS]:
        turned = AssumedValue(name=line, value=0 if first else MOST_ROUNDS)
        yield request.evolve(unknown_values="slowest", assume=(*request.assume, turned))


def _traced(request: TraceRequest, limits: TraceLimits) -> TraceRecording | None:
    """Return `request` traced in a process of its own, as modules keep what they made; None if the trace fails."""
    try:
        return trace(request, limits)
    except PlannerError:
        return None
