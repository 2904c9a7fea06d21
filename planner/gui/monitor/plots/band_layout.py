"""Layout of the band of events: the items of each lane and their positions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final, Literal, NamedTuple, get_args

from planner.gui.plot.ticks import clock_text
from planner.monitor.history import History, TimelineMark
from planner.monitor.readings.events import Event, EventKind
from planner.present.monitor.events import duration_text, event_title

Lane = Literal["Slowed", "Events", "Diagnosis", "Marks"]
LANES: Final[tuple[Lane, ...]] = get_args(Lane)

_ROLES: Final = {
    "power-cap": "warn",
    "sync-boost": "muted",
    "power-brake": "series-5",
    "hardware-slowdown": "bad",
    "software-thermal": "bad",
    "hardware-thermal": "bad",
}
_SIGNS: Final = {
    EventKind.XID: ("X", "bad"),
    EventKind.ECC: ("E", "bad"),
    EventKind.LOST: ("!", "bad"),
    EventKind.FAULT: ("!", "warn"),
    EventKind.RETURNED: ("↑", "ok"),
    EventKind.ADDED: ("↑", "ok"),
    EventKind.ASLEEP: ("z", "muted"),
    EventKind.DRIVER_CHANGED: ("D", "warn"),
    EventKind.PROCESS_STARTED: ("+", "ok"),
    EventKind.PROCESS_ENDED: ("−", "muted"),
}


_NEAR: Final = 2.0


class TimeScale(NamedTuple):
    """Conversion of times to x positions: `left` is the position of `start`, `per_second` the pixels per second."""

    start: float
    end: float
    left: float
    per_second: float

    def x(self, time: float) -> float:
        """Return the x position of a time, clamped to the span."""
        return self.left + (min(max(time, self.start), self.end) - self.start) * self.per_second


@dataclass(frozen=True, slots=True)
class BandItem:
    """A span or a symbol in a lane, from `left` to `right`, in the card's row of the lane.

    It represents `events` or `mark`; hatched spans are thermal slowdowns.
    """

    lane: Lane
    left: float
    right: float
    role: str
    events: tuple[Event, ...] = ()
    text: str = ""
    row: int = 0
    is_hatched: bool = False
    mark: TimelineMark | None = None


def band_items(history: History, scale: TimeScale, labels: Mapping[str, str], sign_width: float) -> list[BandItem]:
    """Return the items to draw; events of cards that are not in `labels` are omitted.

    Spans and symbols that would touch are merged.
    """
    now = scale.end if history.end is None else history.end
    rows = {uuid: row for row, uuid in enumerate(labels)}
    events = [
        event
        for event in history.events(scale.start, scale.end)
        if event.kind is not EventKind.GAP and (event.uuid in labels or not event.uuid)
    ]
    spans = [_slowed(event, scale, rows.get(event.uuid, 0), now) for event in events if event.kind is EventKind.SLOWED]
    verdicts = [_verdict(event, scale, now) for event in events if event.kind is EventKind.DIAGNOSIS]
    signs = [_sign(event, scale, sign_width) for event in events if event.kind in _SIGNS]
    return [*_merged(spans), *_clustered(signs), *_without_overlap(verdicts), *_flags(history, scale)]


def gap_spans(history: History, scale: TimeScale) -> list[tuple[float, float]]:
    """Return the x positions of the start and end of each gap in the readings."""
    return [(scale.x(gap.began), scale.x(gap.ended)) for gap in history.gaps(scale.start, scale.end)]


def item_lines(item: BandItem, history: History, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each event and mark that an item represents."""
    marks = () if item.mark is None else (_mark_line(item.mark, history),)
    return (*(_event_line(event, history, labels) for event in item.events), *marks)


def event_lines(history: History, start: float, end: float, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each event and mark in chronological order."""
    events = history.events(start, end)
    lines = [(event.began.monotonic_seconds, _event_line(event, history, labels)) for event in events]
    lines += [(mark.time, _mark_line(mark, history)) for mark in history.marks if start <= mark.time <= end]
    return tuple(line for _, line in sorted(lines))


def _event_line(event: Event, history: History, labels: Mapping[str, str]) -> str:
    began = event.began.monotonic_seconds
    ended = (history.end or began) if event.ended is None else event.ended.monotonic_seconds
    card = f"card {labels.get(event.uuid, event.uuid)}: " if event.uuid else ""
    lasted = f", {duration_text(ended - began)}" if ended > began else ""

    ongoing = " so far" if event.ended is None else ""
    return f"{clock_text(history.wall_of(began))}  {card}{event_title(event)}{lasted}{ongoing}"


def _mark_line(mark: TimelineMark, history: History) -> str:
    return f"{clock_text(history.wall_of(mark.time))}  {mark.text}"


def _ends(event: Event, scale: TimeScale, now: float) -> tuple[float, float]:
    left = scale.x(event.began.monotonic_seconds)
    right = scale.x(now if event.ended is None else event.ended.monotonic_seconds)
    return left, max(right, left + 1)


def _slowed(event: Event, scale: TimeScale, row: int, now: float) -> BandItem:
    role = _ROLES.get(event.what, "muted")
    return BandItem("Slowed", *_ends(event, scale, now), role, (event,), row=row, is_hatched="thermal" in event.what)


def _verdict(event: Event, scale: TimeScale, now: float) -> BandItem:
    return BandItem("Diagnosis", *_ends(event, scale, now), "accent", (event,), text=event_title(event))


def _sign(event: Event, scale: TimeScale, width: float) -> BandItem:
    sign, role = _SIGNS[event.kind]
    middle = scale.x(event.began.monotonic_seconds)
    return BandItem("Events", middle - width / 2, middle + width / 2, role, (event,), text=sign)


def _flags(history: History, scale: TimeScale) -> list[BandItem]:
    """Return the marks; each extends to the next one, which limits its text."""
    marks = [mark for mark in history.marks if scale.start <= mark.time <= scale.end]
    ends = [*(scale.x(mark.time) for mark in marks[1:]), scale.x(scale.end)]
    flags = zip(marks, ends, strict=False)
    return [BandItem("Marks", scale.x(mark.time), end, "accent", text=mark.text, mark=mark) for mark, end in flags]


def _merged(spans: Iterable[BandItem]) -> list[BandItem]:
    """Merge adjacent spans of the same kind and row, since a limit may be reached many times."""
    ordered = sorted(spans, key=lambda span: (span.row, span.role, span.is_hatched, span.left))
    merged = []
    for _, members in groupby(ordered, key=lambda span: (span.row, span.role, span.is_hatched)):
        for run in _runs(list(members), _NEAR):
            right = max(span.right for span in run)
            events = _events_of(run)
            merged.append(run[0] if len(run) == 1 else replace(run[0], right=right, events=events))
    return merged


def _without_overlap(verdicts: list[BandItem]) -> list[BandItem]:
    """Divide the verdicts on all cards into pieces that do not overlap; a piece combines simultaneous verdicts."""
    borders = sorted({border for span in verdicts for border in (span.left, span.right)})
    pieces: list[BandItem] = []
    for left, right in pairwise(borders):
        current = [span for span in verdicts if span.left < right and span.right > left]
        if not current:
            continue
        # The most common first; among equals the one that began first.
        texts = Counter(span.text for span in current)
        piece = BandItem("Diagnosis", left, right, "accent", _events_of(current), ", ".join(dict(texts.most_common())))
        before = pieces[-1] if pieces else None
        if before is not None and before.text == piece.text and before.right == left:
            pieces[-1] = replace(before, right=right, events=tuple(dict.fromkeys((*before.events, *piece.events))))
        else:
            pieces.append(piece)
    return pieces


def _events_of(shapes: Iterable[BandItem]) -> tuple[Event, ...]:
    return tuple(event for shape in shapes for event in shape.events)


def _clustered(signs: Iterable[BandItem]) -> list[BandItem]:
    """Merge symbols that touch; the worst of them determines the color."""
    runs = _runs(sorted(signs, key=lambda sign: sign.left), 0.0)
    return [run[0] if len(run) == 1 else _joined(run) for run in runs]


def _runs(shapes: list[BandItem], room: float) -> list[list[BandItem]]:
    """Split items, ordered from left to right, where the gap between two is at least `room`."""
    runs: list[list[BandItem]] = []
    for shape in shapes:
        if runs and shape.left < runs[-1][-1].right + room:
            runs[-1].append(shape)
        else:
            runs.append([shape])
    return runs


def _joined(signs: list[BandItem]) -> BandItem:
    worst = min(signs, key=lambda sign: ("bad", "warn", "ok", "muted").index(sign.role))
    texts = {sign.text for sign in signs}
    text = texts.pop() if len(texts) == 1 else worst.text if worst.role == "bad" else "…"
    events = _events_of(signs)
    return BandItem("Events", signs[0].left, signs[-1].right, worst.role, events, text=text)
