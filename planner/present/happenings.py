"""What happened, as people read it."""

from typing import Final

from planner.monitor.diagnosis.rules import RULES
from planner.monitor.readings.clock_reasons import CLOCK_REASONS
from planner.monitor.readings.events import Event, EventKind
from planner.monitor.readings.faults import FAULTS, FaultKind
from planner.monitor.readings.metrics import BY_NAME
from planner.present import format as fmt

_TITLES: Final = {
    EventKind.GAP: "no readings",
    EventKind.ADDED: "found",
    EventKind.LOST: "does not answer any more",
    EventKind.RETURNED: "answers again",
    EventKind.ASLEEP: "fell asleep",
}
_REASONS: Final = {reason.name: reason.title for reason in CLOCK_REASONS}
# A kind of verdict may have several titles, which differ in the reason after the colon.
_VERDICTS: Final = {rule.kind.value: rule.title.partition(":")[0] for rule in reversed(RULES)}


def event_title(event: Event) -> str:
    """Return what happened, without the card and the time."""
    kind, what, number = event.kind, event.what, event.number
    if kind is EventKind.XID:
        return f"Xid {number}"
    if kind is EventKind.SLOWED:
        return _REASONS.get(what, what)
    if kind is EventKind.ECC:
        return f"{BY_NAME[what].title.lower()}: {number} more"
    if kind in (EventKind.PROCESS_STARTED, EventKind.PROCESS_ENDED):
        return f"process {number}{f' ({what})' if what else ''} {'started' if 'started' in kind else 'ended'}"
    if kind is EventKind.DRIVER_CHANGED:
        return f"driver {what}"
    if kind is EventKind.FAULT:
        return FAULTS[FaultKind(what)].title
    if kind is EventKind.DIAGNOSIS:
        return _VERDICTS.get(what, what.replace("-", " "))
    return _TITLES.get(kind, what)


def lasting(seconds: float) -> str:
    """Return how long something took: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return fmt.quantity(seconds, "s")
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest}{fmt.THIN}s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}{fmt.THIN}min {rest}{fmt.THIN}s"
    return f"{hours}{fmt.THIN}h {minutes}{fmt.THIN}min"
