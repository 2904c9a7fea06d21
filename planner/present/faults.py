"""What is wrong, as a state with a name: of which card, since when, what was seen, and what to do."""

from dataclasses import dataclass
from datetime import datetime

from planner.monitor.readings.faults import Fault, Severity
from planner.monitor.readings.latest import Latest
from planner.present.monitor import fault_line

_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class FaultView:
    """One fault in words; `since` is a clock time with how long ago that is."""

    title: str
    since: str
    advice: str
    severity: Severity

    @property
    def as_text(self) -> str:
        """Return it as a sentence or two."""
        return f"{self.title}, {self.since}. {self.advice}".strip()


def fault_views(latest: Latest, now_wall_seconds: float) -> tuple[FaultView, ...]:
    """Return what is wrong now, the worst first, and among equals the oldest."""
    found = sorted(latest.inventory.faults, key=lambda fault: (_ORDER.index(fault.about.severity), fault.since_seconds))
    return tuple(_view(fault, latest, now_wall_seconds) for fault in found)


def _view(fault: Fault, latest: Latest, now: float) -> FaultView:
    line = fault_line(fault, latest)
    since = f"since {clock(fault.since_seconds)} ({elapsed(max(0.0, now - fault.since_seconds))})"
    return FaultView(f"{line[:1].upper()}{line[1:]}", since, fault.about.advice, fault.about.severity)


def clock(wall_seconds: float) -> str:
    """Return the local time of day: `14:03:09`."""
    return f"{datetime.fromtimestamp(wall_seconds).astimezone():%H:%M:%S}"


def elapsed(seconds: float) -> str:
    """Return a span in its two largest units: `8 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`."""
    whole = int(seconds)
    for name, unit, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
