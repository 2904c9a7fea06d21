"""Layout of the event band: the items in each lane and their x positions."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final, Literal, NamedTuple, get_args

from planner.gui.plot.ticks import clock_text
from planner.monitor.history import History, TimelineMark
from planner.monitor.readings.events import Event, EventKind
from planner.present.monitor.events import duration_text, event_title, told_once

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
_MOST_NAMED: Final = 3


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
    events = [
        event
        for event in history.events(scale.start, scale.end)
        if event.kind is not EventKind.GAP and (event.uuid in labels or not event.uuid)
    ]
    slowed = [event for event in events if event.kind is EventKind.SLOWED]
    slowed_cards = {event.uuid for event in slowed}
    rows = {uuid: row for row, uuid in enumerate(uuid for uuid in labels if uuid in slowed_cards)}
    spans = [_slowdown_item(event, scale, rows.get(event.uuid, 0), now) for event in slowed]
    verdicts = [_verdict_item(event, scale, now) for event in events if event.kind is EventKind.DIAGNOSIS]
    symbols = [_symbol_item(event, scale, symbol_width, labels) for event in events if event.kind in _SYMBOLS]
    return [
        *_merged_spans(spans),
        *_merged_symbols(symbols),
        *_combined_verdicts(verdicts, labels),
        *_mark_items(history, scale),
    ]


def lane_title(lane: Lane, items: Iterable[BandItem], labels: Mapping[str, str]) -> str:
    """Return the title of a lane; the lane of slowdowns names its cards if several are shown: `Slowed 0, 1`."""
    slowed = {event.uuid for item in items if item.lane == "Slowed" for event in item.events}
    if lane != "Slowed" or len(labels) < 2:
        return lane
    return f"{lane} {_cards_text(slowed, labels)}" if len(slowed) <= _MOST_NAMED else f"{lane} ({len(slowed)})"


def gap_spans(history: History, scale: TimeAxisScale) -> list[tuple[float, float]]:
    """Return the x positions of the start and end of each gap in the readings, and of the time before the first."""
    start = scale.end if history.start is None else history.start
    before = [(scale.start, start)] if start > scale.start else []
    gaps = ((gap.began, gap.ended) for gap in history.gaps(scale.start, scale.end))
    return [(scale.x(began), scale.x(ended)) for began, ended in (*before, *gaps)]


def item_lines(item: BandItem, history: History, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a text line for each event and mark that an item represents."""
    return _lines((*told_once(item.events), *(() if item.mark is None else (item.mark,))), history, labels)


def event_lines(
    history: History, start: float, end: float, labels: Mapping[str, str], latest: int | None = None
) -> tuple[str, ...]:
    """Return a text line for each event and mark from `start` to `end`, or for the `latest` only, oldest first."""
    found: list[tuple[float, Event | TimelineMark]] = [
        (event.began.monotonic_seconds, event) for event in told_once(history.events(start, end))
    ]
    found += [(mark.time, mark) for mark in history.marks if start <= mark.time <= end]
    found.sort(key=lambda pair: pair[0])
    if latest is None:
        return _lines((each for _, each in found), history, labels)
    # The same event of all cards is one line.
    recent = found[-latest * max(1, len(labels)) :]
    return _lines((each for _, each in recent), history, labels)[-latest:]


def _lines(found: Iterable[Event | TimelineMark], history: History, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a text line for each mark and event; the same event of several cards is one line."""
    cards: dict[tuple[str, str], list[str]] = {}
    for each in found:
        if isinstance(each, TimelineMark):
            cards[clock_text(history.wall_of(each.time)), each.text] = []
        else:
            named = cards.setdefault(_clock_and_words(each, history), [])
            if each.uuid:
                named.append(labels.get(each.uuid, each.uuid))
    return tuple(f"{clock}  {_cards_phrase(named, len(labels))}{words}" for (clock, words), named in cards.items())


def _clock_and_words(event: Event, history: History) -> tuple[str, str]:
    began = event.began.monotonic_seconds
    ended = (history.end or began) if event.ended is None else event.ended.monotonic_seconds
    ongoing = " so far" if event.ended is None else ""
    lasted = f", {duration_text(ended - began)}{ongoing}" if ended > began else ""
    return clock_text(history.wall_of(began)), f"{event_title(event)}{lasted}"


def _cards_phrase(labels: Sequence[str], cards: int) -> str:
    if len(labels) == cards > 1:
        return "all GPUs: "
    return f"GPU{'s' if len(labels) > 1 else ''} {', '.join(labels)}: " if labels else ""


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


def _symbol_item(event: Event, scale: TimeAxisScale, width: float, labels: Mapping[str, str]) -> BandItem:
    symbol, role = _SYMBOLS[event.kind]
    if len(labels) > 1 and event.uuid:
        card = labels[event.uuid]
        symbol, width = f"{symbol} {card}", width * (1 + len(card))
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


def _combined_verdicts(verdicts: list[BandItem], labels: Mapping[str, str]) -> list[BandItem]:
    """Return verdict items that do not overlap; simultaneous verdicts on several cards are combined into one item.

    A verdict that is not on all cards names its cards: `1: idle`.
    """
    borders = sorted({border for span in verdicts for border in (span.left, span.right)})
    pieces: list[BandItem] = []
    for left, right in pairwise(borders):
        current = [span for span in verdicts if span.left < right and span.right > left]
        if not current:
            continue
        piece = BandItem("Diagnosis", left, right, "accent", _all_events(current), _verdicts_text(current, labels))
        before = pieces[-1] if pieces else None
        if before is not None and before.text == piece.text and before.right == left:
            pieces[-1] = replace(before, right=right, events=tuple(dict.fromkeys((*before.events, *piece.events))))
        else:
            pieces.append(piece)
    return pieces


def _verdicts_text(spans: Iterable[BandItem], labels: Mapping[str, str]) -> str:
    cards: dict[str, set[str]] = {}
    for span in spans:
        cards.setdefault(span.text, set()).update(event.uuid for event in span.events)
    # The most common first; among equals the one that began first.
    commonest = sorted(cards.items(), key=lambda item: -len(item[1]))
    return ", ".join(
        text if len(named) == len(labels) else f"{_cards_text(named, labels)}: {text}" for text, named in commonest
    )


def _cards_text(uuids: Container[str], labels: Mapping[str, str]) -> str:
    return ", ".join(label for uuid, label in labels.items() if uuid in uuids)


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
