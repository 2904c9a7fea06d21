"""What the band of events shows where; arithmetic only."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from planner.gui.monitor.plots.clock_ticks import clock_text
from planner.monitor.events import Event, EventKind
from planner.monitor.history import History, Mark
from planner.present.happenings import event_title, lasting

Lane = Literal["Slowed", "Events", "Diagnosis", "Marks"]
LANES: Final[tuple[Lane, ...]] = ("Slowed", "Events", "Diagnosis", "Marks")

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


class Place(NamedTuple):
    """Where a time lies on the band: `left` is the start's place, `per_second` the pixels of a second."""

    start: float
    end: float
    left: float
    per_second: float

    def x(self, time: float) -> float:
        """Return the horizontal place of a time, kept within the span."""
        return self.left + (min(max(time, self.start), self.end) - self.start) * self.per_second


@dataclass(frozen=True, slots=True)
class Shape:
    """A span or a sign in a lane: from `left` to `right`, in the row `row` of as many as the lane has.

    `words` tell all about it; `is_hatched` sets what comes of heat apart from what comes of power.
    """

    lane: Lane
    left: float
    right: float
    role: str
    words: tuple[str, ...]
    text: str = ""
    row: int = 0
    is_hatched: bool = False
    mark: Mark | None = None


def shapes_of(history: History, place: Place, labels: Mapping[str, str], sign_width: float) -> list[Shape]:
    """Return what is to be drawn; `labels` are the shown cards, events of others are left out.

    Signs that would lie on each other become one that tells how many.
    """
    now = place.end if history.end is None else history.end
    events = [
        event
        for event in history.events(place.start, place.end)
        if event.kind is not EventKind.GAP and (event.uuid in labels or not event.uuid)
    ]
    words = {event.key: _words(event, labels, now, history.wall_of) for event in events}
    spans = [_slowed(event, place, words[event.key], labels, now) for event in events if event.kind is EventKind.SLOWED]
    found = [_verdict(event, place, words[event.key], now) for event in events if event.kind is EventKind.DIAGNOSIS]
    signs = [_sign(event, place, words[event.key], sign_width) for event in events if event.kind in _SIGNS]
    marks = [_flag(mark, place, history.wall_of) for mark in history.marks if place.start <= mark.time <= place.end]
    return [*spans, *_clustered(signs), *found, *marks]


def gaps_of(history: History, place: Place) -> list[tuple[float, float]]:
    """Return from where to where nothing was read."""
    return [(place.x(gap.began), place.x(gap.ended)) for gap in history.gaps(place.start, place.end)]


def event_rows(history: History, start: float, end: float, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each event and mark, in the order of their times."""
    now = end if history.end is None else history.end
    lines = [
        (event.began.monotonic_seconds, _words(event, labels, now, history.wall_of))
        for event in history.events(start, end)
    ]
    lines += [(mark.time, _mark_words(mark, history.wall_of)) for mark in history.marks if start <= mark.time <= end]
    return tuple(words for _, words in sorted(lines))


def _words(event: Event, labels: Mapping[str, str], now: float, wall_of: Callable[[float], float]) -> str:
    began = event.began.monotonic_seconds
    ended = now if event.ended is None else event.ended.monotonic_seconds
    card = f"card {labels.get(event.uuid, event.uuid)}: " if event.uuid else ""
    lasted = f", {lasting(ended - began)}" if ended > began else ""
    goes_on = " so far" if event.ended is None else ""
    return f"{clock_text(wall_of(began))}  {card}{event_title(event)}{lasted}{goes_on}"


def _mark_words(mark: Mark, wall_of: Callable[[float], float]) -> str:
    return f"{clock_text(wall_of(mark.time))}  {mark.text}"


def _ends(event: Event, place: Place, now: float) -> tuple[float, float]:
    left = place.x(event.began.monotonic_seconds)
    right = place.x(now if event.ended is None else event.ended.monotonic_seconds)
    return left, max(right, left + 1)


def _slowed(event: Event, place: Place, words: str, labels: Mapping[str, str], now: float) -> Shape:
    row = list(labels).index(event.uuid) if event.uuid in labels else 0
    role = _ROLES.get(event.what, "muted")
    return Shape("Slowed", *_ends(event, place, now), role, (words,), row=row, is_hatched="thermal" in event.what)


def _verdict(event: Event, place: Place, words: str, now: float) -> Shape:
    return Shape("Diagnosis", *_ends(event, place, now), "accent", (words,), text=event_title(event))


def _sign(event: Event, place: Place, words: str, width: float) -> Shape:
    sign, role = _SIGNS[event.kind]
    middle = place.x(event.began.monotonic_seconds)
    return Shape("Events", middle - width / 2, middle + width / 2, role, (words,), text=sign)


def _flag(mark: Mark, place: Place, wall_of: Callable[[float], float]) -> Shape:
    left = place.x(mark.time)
    return Shape("Marks", left, left + 1, "accent", (_mark_words(mark, wall_of),), text=mark.text, mark=mark)


def _clustered(signs: Iterable[Shape]) -> list[Shape]:
    """Return the signs, those that touch as one; the worst of them gives its colour."""
    clusters: list[list[Shape]] = []
    for sign in sorted(signs, key=lambda sign: sign.left):
        if clusters and sign.left < clusters[-1][0].right:
            clusters[-1].append(sign)
        else:
            clusters.append([sign])
    return [cluster[0] if len(cluster) == 1 else _joined(cluster) for cluster in clusters]


def _joined(cluster: list[Shape]) -> Shape:
    worst = min(cluster, key=lambda sign: ("bad", "warn", "ok", "muted").index(sign.role))
    signs = {sign.text for sign in cluster}
    text = signs.pop() if len(signs) == 1 else worst.text if worst.role == "bad" else "…"
    words = tuple(line for sign in cluster for line in sign.words)
    return Shape("Events", cluster[0].left, cluster[0].right, worst.role, words, text=text)
