"""How live bytes go up and down over a recording, and what is alive at a moment."""

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from planner.trace.recording import NEVER_FREED, Allocations, Recording, Span


class Course(NamedTuple):
    """The live bytes after each event, in order, as columns.

    A place in the columns is a moment. Place 0 is before the first event: nothing is alive yet. `makers` holds the
    allocation that was made last, counted as in the recording, or None if there is none so far.
    """

    times: tuple[int, ...]
    totals: tuple[int, ...]
    makers: tuple[int | None, ...]

    def highest(self, start: int, end: int) -> int:
        """Return the place of the most live bytes among the events from `start` up to, but without, `end`.

        It is the earliest of equals, and what went before if nothing happened between them.
        """
        first, last = bisect_left(self.times, start), bisect_left(self.times, end)
        if first >= last:
            return max(first - 1, 0)
        return max(range(first, last), key=self.totals.__getitem__)

    def peak(self) -> int:
        """Return the place of the most live bytes of all."""
        return max(range(len(self.totals)), key=self.totals.__getitem__)


# A recording of a million allocations takes seconds, and is judged anew for every card that is looked at.
@lru_cache(maxsize=2)
def course_of(allocations: Allocations) -> Course:
    """Return the course of live bytes of `allocations`."""
    made = zip(allocations.made, allocations.bytes, range(len(allocations.bytes)), strict=True)
    freed = zip(allocations.freed, allocations.bytes, strict=True)
    events: list[tuple[int, int, int | None]] = [
        *made,
        *((time, -size, None) for time, size in freed if time != NEVER_FREED),
    ]
    events.sort(key=itemgetter(0))
    makers: list[int | None] = [None]
    for _, _, made_now in events:
        makers.append(makers[-1] if made_now is None else made_now)
    return Course(
        times=(-1, *(event[0] for event in events)),
        totals=tuple(accumulate((event[1] for event in events), initial=0)),
        makers=tuple(makers),
    )


def alive_at(allocations: Allocations, time: int) -> list[int]:
    """Return the allocations that are alive right after the event at `time`."""
    return [
        number
        for number, (made, freed) in enumerate(zip(allocations.made, allocations.freed, strict=True))
        if made <= time and not NEVER_FREED < freed <= time
    ]


def span_at(spans: tuple[Span, ...], time: int) -> Span:
    """Return the phase that `time` is in: the last that has begun, else the first."""
    return spans[max(bisect_right(spans, time, key=lambda span: span.start) - 1, 0)]


class Maker(NamedTuple):
    """What made an allocation; empty texts where there is none."""

    operator: str = ""
    module: str = ""
    line: str = ""

    def __str__(self) -> str:
        """Return `aten.mm in layers.0 at model.py:12`, without the file's folders."""
        within = f" in {self.module}" if self.module else ""
        place = re.split(r"[/\\]", self.line)[-1]
        return f"{self.operator}{within}{f' at {place}' if place else ''}"


def maker_of(recording: Recording, number: int | None) -> Maker:
    """Return what made the allocation called `number`."""
    if number is None:
        return Maker()
    columns = recording.allocations
    return Maker(
        recording.operators[columns.operator[number]],
        recording.module_paths[columns.module[number]],
        recording.lines[columns.line[number]],
    )
