"""Layout of the event band: the items in each lane and their x positions."""

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

_SLOWDOWN_COLOR_ROLES: Final = {
    "power-cap": "warn",
    "sync-boost": "muted",
    "power-brake": "series-5",
    "hardware-slowdown": "bad",
    "software-thermal": "bad",
    "hardware-thermal": "bad",
}
_SYMBOLS: Final = {
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


_NEAR_PIXELS: Final = 2.0


class TimeAxisScale(NamedTuple):
    """Scale of the time axis: the time `start` (monotonic seconds) is at the x position `left` (pixels)."""

    start: float
    end: float
    left: float
    pixels_per_second: float

    def x(self, time: float) -> float:
        """Return the x position of a time, limited to the positions of `start` and `end`."""
        return self.left + (min(max(time, self.start), self.end) - self.start) * self.pixels_per_second


@dataclass(frozen=True, slots=True)
class BandItem:
    """A span or a symbol in a lane, from x position `left` to `right`, in the row of a card.

    The item represents `events` or `mark`; hatched spans are thermal slowdowns.
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


def band_items(
    history: History, scale: TimeAxisScale, labels: Mapping[str, str], symbol_width: float
) -> list[BandItem]:
    """Return the items of the event band; events of cards that are not in `labels` are omitted.

    Spans and symbols that would touch are merged.
    """
    now = scale.end if history.end is None else history.end
    rows = {uuid: row for row, uuid in enumerate(labels)}
    events = [
        event
        for event in history.events(scale.start, scale.end)
        if event.kind is not EventKind.GAP and (event.uuid in labels or not event.uuid)
    ]
    spans = [
        _slowdown_item(event, scale, rows.get(event.uuid, 0), now) for event in events if event.kind is EventKind.SLOWED
    ]
    verdicts = [_verdict_item(event, scale, now) for event in events if event.kind is EventKind.DIAGNOSIS]
    symbols = [_symbol_item(event, scale, symbol_width) for event in events if event.kind in _SYMBOLS]
    return [
        *_merged_spans(spans),
        *_merged_symbols(symbols),
        *_combined_verdicts(verdicts),
        *_mark_items(history, scale),
    ]


def gap_spans(history: History, scale: TimeAxisScale) -> list[tuple[float, float]]:
    """Return the x positions of the start and end of each gap in the readings."""
    return [(scale.x(gap.began), scale.x(gap.ended)) for gap in history.gaps(scale.start, scale.end)]


def item_lines(item: BandItem, history: History, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a text line for each event and mark that an item represents."""
    marks = () if item.mark is None else (_mark_line(item.mark, history),)
    return (*(_event_line(event, history, labels) for event in item.events), *marks)


def event_lines(history: History, start: float, end: float, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a text line for each event and mark from `start` to `end`, in chronological order."""
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


def _span_positions(event: Event, scale: TimeAxisScale, now: float) -> tuple[float, float]:
    left = scale.x(event.began.monotonic_seconds)
    right = scale.x(now if event.ended is None else event.ended.monotonic_seconds)
    return left, max(right, left + 1)


def _slowdown_item(event: Event, scale: TimeAxisScale, row: int, now: float) -> BandItem:
    role = _SLOWDOWN_COLOR_ROLES.get(event.what, "muted")
    return BandItem(
        "Slowed", *_span_positions(event, scale, now), role, (event,), row=row, is_hatched="thermal" in event.what
    )


def _verdict_item(event: Event, scale: TimeAxisScale, now: float) -> BandItem:
    return BandItem("Diagnosis", *_span_positions(event, scale, now), "accent", (event,), text=event_title(event))


def _symbol_item(event: Event, scale: TimeAxisScale, width: float) -> BandItem:
    symbol, role = _SYMBOLS[event.kind]
    middle = scale.x(event.began.monotonic_seconds)
    return BandItem("Events", middle - width / 2, middle + width / 2, role, (event,), text=symbol)


def _mark_items(history: History, scale: TimeAxisScale) -> list[BandItem]:
    """Return an item for each mark; the item ends at the next mark, so that texts do not overlap."""
    marks = [mark for mark in history.marks if scale.start <= mark.time <= scale.end]
    ends = [*(scale.x(mark.time) for mark in marks[1:]), scale.x(scale.end)]
    marked_ends = zip(marks, ends, strict=False)
    return [
        BandItem("Marks", scale.x(mark.time), end, "accent", text=mark.text, mark=mark) for mark, end in marked_ends
    ]


def _merged_spans(spans: Iterable[BandItem]) -> list[BandItem]:
    """Merge adjacent spans of the same color and row, since a card may reach a limit many times."""
    ordered = sorted(spans, key=lambda span: (span.row, span.role, span.is_hatched, span.left))
    merged = []
    for _, members in groupby(ordered, key=lambda span: (span.row, span.role, span.is_hatched)):
        for run in _adjacent_groups(list(members), _NEAR_PIXELS):
            right = max(span.right for span in run)
            events = _all_events(run)
            merged.append(run[0] if len(run) == 1 else replace(run[0], right=right, events=events))
    return merged


def _combined_verdicts(verdicts: list[BandItem]) -> list[BandItem]:
    """Return verdict items that do not overlap; simultaneous verdicts on several cards are combined into one item."""
    borders = sorted({border for span in verdicts for border in (span.left, span.right)})
    pieces: list[BandItem] = []
    for left, right in pairwise(borders):
        current = [span for span in verdicts if span.left < right and span.right > left]
        if not current:
            continue
        # The most common first; among equals the one that began first.
        texts = Counter(span.text for span in current)
        piece = BandItem("Diagnosis", left, right, "accent", _all_events(current), ", ".join(dict(texts.most_common())))
        before = pieces[-1] if pieces else None
        if before is not None and before.text == piece.text and before.right == left:
            pieces[-1] = replace(before, right=right, events=tuple(dict.fromkeys((*before.events, *piece.events))))
        else:
            pieces.append(piece)
    return pieces


def _all_events(items: Iterable[BandItem]) -> tuple[Event, ...]:
    return tuple(event for item in items for event in item.events)


def _merged_symbols(symbols: Iterable[BandItem]) -> list[BandItem]:
    """Merge symbols that touch; the most severe symbol determines the color."""
    runs = _adjacent_groups(sorted(symbols, key=lambda symbol: symbol.left), 0.0)
    return [run[0] if len(run) == 1 else _joined_symbol(run) for run in runs]


def _adjacent_groups(items: list[BandItem], gap_pixels: float) -> list[list[BandItem]]:
    """Split items, ordered from left to right, into groups separated by gaps of at least `gap_pixels`."""
    runs: list[list[BandItem]] = []
    for item in items:
        if runs and item.left < runs[-1][-1].right + gap_pixels:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _joined_symbol(symbols: list[BandItem]) -> BandItem:
    worst = min(symbols, key=lambda symbol: ("bad", "warn", "ok", "muted").index(symbol.role))
    texts = {symbol.text for symbol in symbols}
    text = texts.pop() if len(texts) == 1 else worst.text if worst.role == "bad" else "…"
    events = _all_events(symbols)
    return BandItem("Events", symbols[0].left, symbols[-1].right, worst.role, events, text=text)
