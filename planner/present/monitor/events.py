"""Events, alerts and faults of cards as text."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from planner.monitor.alerts import Alert, AlertKind
from planner.monitor.diagnosis.advice import SET_POWER_LIMIT
from planner.monitor.diagnosis.rules import RULES
from planner.monitor.readings.events import Event, EventKind
from planner.monitor.readings.faults import FAULTS, LINK_FAULTS, Fault, FaultKind, Severity
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.metrics import BY_NAME, CLOCK_REASONS
from planner.present import format as fmt
from planner.present.monitor.readings import fault_line

_CARD_EVENT_TITLES: Final = {
    EventKind.GAP: "no readings",
    EventKind.ADDED: "detected",
    EventKind.LOST: "no longer responds",
    EventKind.RETURNED: "responds again",
    EventKind.ASLEEP: "went to sleep",
}
_REASONS: Final = {reason.name: reason.title for reason in CLOCK_REASONS}
# Verdicts of one kind may have several titles, which differ only in the reason after the colon.
_VERDICTS: Final = {rule.kind.value: rule.title.partition(" (")[0] for rule in reversed(RULES)}


def event_title(event: Event) -> str:
    """Return what happened in an event as a phrase, without card and time: `Xid 79`, `driver 580.65`."""
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
        return FAULTS[FaultKind(what)].title.removeprefix("the GPU ")
    if kind is EventKind.DIAGNOSIS:
        return diagnosis_title(what)
    return _CARD_EVENT_TITLES.get(kind, what)


def told_once(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events without the change of state of each lost GPU whose fault, which lasts, is among them."""
    found = tuple(events)
    faulty = {event.uuid for event in found if event.kind is EventKind.FAULT and event.what == FaultKind.LOST}
    return tuple(event for event in found if event.kind is not EventKind.LOST or event.uuid not in faulty)


def diagnosis_title(kind: str) -> str:
    """Return the title of a kind of verdict, given by the kind's value: `input-bound`."""
    return _VERDICTS.get(kind, kind.replace("-", " "))


def duration_text(seconds: float) -> str:
    """Return a duration in hours, minutes and seconds: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `2 h`."""
    if seconds < 10:
        return fmt.quantity(seconds, "s")
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest}{fmt.THIN}s"
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min")) if hours else ((minutes, "min"), (rest, "s"))
    return " ".join(f"{number}{fmt.THIN}{unit}" for number, unit in parts if number)


def alert_sentence(alert: Alert) -> str:
    """Return an alert as a sentence without full stop: `Card 0 RTX 4090 is at 91 °C`."""
    device, seen = alert.device, alert.seen or 0.0
    card = "All GPUs" if device is None else f"GPU {device.index} {device.name.removeprefix('NVIDIA ')}"
    if alert.process is not None:
        host = alert.process.host
        name = f" ({host.name})" if host is not None else ""
        return f"{card}: process {alert.process.pid}{name} ended"
    if alert.fault is not None:
        return f"{card}: {alert.fault.description.title}"
    return {
        AlertKind.TEMPERATURE: f"{card} is at {seen:.0f}{fmt.THIN}°C",
        AlertKind.MEMORY: f"{card} uses {fmt.percent(seen)} of its memory",
        AlertKind.LOST: f"{card} is lost",
        AlertKind.IDLE: f"{card} is idle",
        AlertKind.XID: f"{card}: the driver reported Xid {seen:.0f}",
    }[alert.kind]


class XidGroup(NamedTuple):
    """Xid errors that ask for the same: a name in Prometheus' rules, the numbers, and what to do about them.

    `is_of_program` marks those of a program rather than of the card.
    """

    name: str
    numbers: tuple[int, ...]
    advice: str
    is_of_program: bool = False


XID_GROUPS: Final = (
    XidGroup(
        "Program",
        (13, 31, 43, 45),
        "Usually an error of the program on the GPU: check it with compute-sanitizer, and the GPU with another one.",
        is_of_program=True,
    ),
    XidGroup(
        "Memory",
        (48, 63, 64, 92, 94, 95),
        "Memory errors: end the programs, reset the GPU (nvidia-smi --gpu-reset), and have it replaced if they recur.",
    ),
    XidGroup(
        "NvLink", (74,), "An NVLink error: check nvidia-smi nvlink --errorcounters, and the bridge or the switch."
    ),
    XidGroup(
        "OffTheBus",
        (79,),
        "The GPU fell off the bus: check its power, its slot and dmesg; only a reboot brings it back.",
    ),
    XidGroup(
        "Gsp", (119, 120), "The GPU's own processor (GSP) failed: reset the GPU or reboot, and update the driver."
    ),
)
"""The commonest Xid errors. **Source** NVIDIA, "Xid Errors"."""
OTHER_XID_ADVICE: Final = "Look the number up in NVIDIA's list of Xid errors, and check dmesg."
_ALERT_ADVICE: Final = {
    AlertKind.TEMPERATURE: f"Check fans, air flow and dust, or lower the power limit: {SET_POWER_LIMIT}",
    AlertKind.MEMORY: "Reduce the batch size or the context before a program runs out of memory.",
    AlertKind.IDLE: "End what holds the GPU, or give the GPU to another job.",
    AlertKind.PROCESS_ENDED: "Check whether it ended well.",
    AlertKind.LOST: FAULTS[FaultKind.LOST].advice,
}


def alert_advice(alert: Alert) -> str:
    """Return what to do about an alert, as one or two sentences."""
    if alert.kind is AlertKind.XID:
        return next((group.advice for group in XID_GROUPS if alert.seen in group.numbers), OTHER_XID_ADVICE)
    if alert.fault is not None:
        return alert.fault.description.advice
    return _ALERT_ADVICE[alert.kind]


def alert_object(alert: Alert, machine: str, wall_seconds: float) -> dict[str, Any]:
    """Return an alert as JSON values, with the name of its machine and its time in seconds since 1970."""
    device, sentence = alert.device, alert_sentence(alert)
    return {
        "kind": alert.kind.value,
        "machine": machine,
        "title": f"{machine}: {sentence}" if machine else sentence,
        "advice": alert_advice(alert),
        "at": datetime.fromtimestamp(wall_seconds, UTC).isoformat(timespec="seconds"),
        "uuid": None if device is None else device.uuid,
        "name": None if device is None else device.name,
        "index": None if device is None else device.index,
        "seen": alert.seen,
        "pid": None if alert.process is None else alert.process.pid,
    }


_SEVERITY_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class FaultView:
    """A fault as texts; `since` is the time of day at which the fault began, with the elapsed time."""

    title: str
    since: str
    advice: str
    severity: Severity

    @property
    def as_text(self) -> str:
        """Return the fault with its advice as one or two sentences."""
        return f"{self.title}, {self.since}. {self.advice}".strip()


def fault_views(latest: Latest, now_wall_seconds: float, *, below_headline: bool = False) -> tuple[FaultView, ...]:
    """Return the current faults as texts, the most severe first, then the oldest.

    With `below_headline`, the headline says why another machine is not connected, and what to do: of such a fault only
    what was observed is left to say.
    """
    sorted_faults = sorted(
        latest.inventory.faults,
        key=lambda fault: (_SEVERITY_ORDER.index(fault.description.severity), fault.since_seconds),
    )
    views = (_fault_view(fault, latest, now_wall_seconds) for fault in sorted_faults)
    return tuple(
        replace(view, title=fault.detail.removesuffix("."), advice="")
        if below_headline and fault.kind in LINK_FAULTS and fault.detail
        else view
        for fault, view in zip(sorted_faults, views, strict=True)
    )


def _fault_view(fault: Fault, latest: Latest, now: float) -> FaultView:
    line = fault_line(fault, latest)
    since = f"since {clock_time(fault.since_seconds)} ({elapsed_text(max(0.0, now - fault.since_seconds))})"
    return FaultView(fmt.capitalized(line), since, fault.description.advice, fault.description.severity)


def clock_time(wall_seconds: float) -> str:
    """Return the local time of day for seconds since 1970: `14:03:09`."""
    return f"{datetime.fromtimestamp(wall_seconds).astimezone():%H:%M:%S}"


def elapsed_text(seconds: float) -> str:
    """Return an elapsed time in its two largest units: `8 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`."""
    whole = int(seconds)
    for name, unit, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
