"""From history to a verdict a card."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from planner.monitor.diagnosis.rule import Rule, told
from planner.monitor.diagnosis.rules import OF_WORK
from planner.monitor.diagnosis.stretch import Stretch, phase_of
from planner.monitor.diagnosis.troubles import TROUBLES
from planner.monitor.diagnosis.verdict import Also, Evidence, Kind, Verdict
from planner.monitor.diagnosis.window import SECONDS, Window, look
from planner.monitor.readings.faults import FAULTS, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.protocols import Past
from planner.monitor.readings.reading import EXPLANATIONS, Cause

_LEAST_SECONDS: Final = 20.0
_LEAST_VALUES: Final = 5
# Of what is looked at, the later half.
_LATER_SECONDS: Final = SECONDS / 2
_TOLD_ELSE: Final = ("power_watts", "memory_used_bytes", "temperature_celsius")
_LEFT_OUT: Final = "it is not among what was read"
_SEEN: Final = (("memory_full_fraction", "last"), ("power_of_limit_fraction", "median"))


def diagnose_all(past: Past, at: float | None = None, seconds: float = SECONDS) -> Mapping[str, Verdict]:
    """Return the verdict on each card of the inventory, by its UUID; see `diagnose`."""
    return {device.uuid: diagnose(past, device.uuid, at, seconds) for device in past.inventory.devices}


def diagnose(past: Past, uuid: str, at: float | None = None, seconds: float = SECONDS) -> Verdict:
    """Return what holds back a card, from the `seconds` before `at` (monotonic; by default the last reading).

    What is known of processes is of now; they are left out where `at` lies further back.

    Raises:
        KeyError: If the inventory has no such card.
    """
    device = _device(past.inventory, uuid)
    end = past.end if at is None else at
    if device.state != "running":
        return _absent(device, end or 0.0)
    window = look(past, device, end or 0.0, seconds)
    return judge(window, end or 0.0, _why_unknown(past, device))


def judge(window: Window, at: float, why_unknown: str = "") -> Verdict:
    """Return the verdict on what was seen up to `at`: the first rule that holds, and what else is wrong."""
    use = window.quantity("use_fraction")
    phase = None if use is None else phase_of(use)
    now = window if phase is None else window.since(phase.start)
    # A wait that is not over says nothing of the work before it, and is no rest yet.
    work = now if phase is None or phase.wait_start is None else now.until(phase.wait_start)
    is_enough = _is_enough(work)
    found = [*_troubles(now, at, only_of_moment=not is_enough), *([_of_work(work, at)] if is_enough else [])]
    first = found[0] if found else _nothing_found(now, at, use, why_unknown, is_enough=is_enough)
    return _with_others(first, found[1:])


def _is_enough(work: Window) -> bool:
    seen = work.quantity("use_fraction")
    return seen is not None and len(seen.times) >= _LEAST_VALUES and seen.seconds >= _LEAST_SECONDS


def _troubles(now: Window, at: float, *, only_of_moment: bool) -> Iterator[Verdict]:
    """Yield what is wrong whatever the card does."""
    for rule in TROUBLES:
        if rule.is_of_moment or not only_of_moment:
            yield from _held(rule, now, at)


def _of_work(work: Window, at: float) -> Verdict:
    """Return what holds of the work.

    Where two works were looked at together, what each of them suffers from does not show; the later one is told then.
    """
    whole, later = _first(work, at), work.since(at - _LATER_SECONDS)
    return _first(later, at) if whole.kind is Kind.UNDER_USED and _is_enough(later) else whole


def _first(work: Window, at: float) -> Verdict:
    # The last rules hold of whatever is known.
    return next(verdict for rule in OF_WORK for verdict in _held(rule, work, at))


def _held(rule: Rule, window: Window, at: float) -> Iterator[Verdict]:
    """Yield the verdict of a rule if it holds."""
    evidence = rule.evidence(window)
    if evidence is not None:
        yield _verdict(rule, evidence, _begin(window, at), at)


def _verdict(rule: Rule, evidence: tuple[Evidence, ...], since: float, at: float) -> Verdict:
    return Verdict(rule.kind, rule.severity, rule.title, rule.sentence, since, at, evidence, rule.advice)


def _with_others(first: Verdict, others: list[Verdict]) -> Verdict:
    also = tuple(Also(other.kind, other.severity, other.title) for other in others if other.kind is not first.kind)
    return replace(first, also=also)


def _nothing_found(window: Window, at: float, use: Stretch | None, why: str, *, is_enough: bool) -> Verdict:
    since = _begin(window, at)
    if use is None or why:
        sentence = f"How much it works is not known: {why}. Memory and power are all that can be judged."
        return Verdict(Kind.UNKNOWN, "note", "cannot be judged", sentence, since, at, told(window, _SEEN))
    assert not is_enough  # the last rules hold of whatever is known
    sentence = f"A verdict takes {_LEAST_SECONDS:.0f} seconds of the same work; so far there are {at - since:.0f}."
    return Verdict(Kind.TOO_EARLY, "note", "too early to say", sentence, since, at)


def _begin(window: Window, at: float) -> float:
    use = window.quantity("use_fraction") or window.quantity("power_watts")
    return at if use is None else use.times[0]


def _absent(device: Device, at: float) -> Verdict:
    kind = FaultKind.LOST if device.state == "lost" else FaultKind.ASLEEP
    about = FAULTS[kind]
    sentence = f"{about.title[:1].upper()}{about.title[1:]}."
    return Verdict(Kind(kind.value), about.severity, device.state, sentence, at, at, advice=(about.advice,))


def _why_unknown(past: Past, device: Device) -> str:
    """Return why it is not known how much a card works now; empty where it is."""
    reading = past.latest.reading(device.uuid, "utilization_fraction")
    if reading.value is not None:
        return ""
    cause = reading.cause or Cause.NOT_YET
    is_told_else = any(len(past.series(device.uuid, name).times) > 1 for name in _TOLD_ELSE)
    # A log of another program has what its writer asked for.
    return _LEFT_OUT if cause is Cause.NOT_YET and is_told_else else EXPLANATIONS[cause]


def _device(inventory: Inventory, uuid: str) -> Device:
    found = next((device for device in inventory.devices if device.uuid == uuid), None)
    if found is None:
        raise KeyError(uuid)
    return found
