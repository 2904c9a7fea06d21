"""Verdicts on GPUs, from the history of their readings."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from planner.monitor.diagnosis.card_window import WINDOW_SECONDS, CardWindow, read_window
from planner.monitor.diagnosis.health_rules import HEALTH_RULES
from planner.monitor.diagnosis.rule import DiagnosisRule, fitting_advice, shown_evidence
from planner.monitor.diagnosis.rules import WORKLOAD_RULES
from planner.monitor.diagnosis.time_series import TimeSeries, current_phase
from planner.monitor.diagnosis.verdict import OtherFinding, Verdict, VerdictKind
from planner.monitor.readings.faults import FAULTS, FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.protocols import DiagnosisSource
from planner.monitor.readings.reading import EXPLANATIONS, Cause

_MIN_SECONDS: Final = 20.0
_MIN_VALUES: Final = 5
# The later half of the window.
_LATER_SECONDS: Final = WINDOW_SECONDS / 2
_RECENT_SECONDS: Final = 30.0
_FULLY_USED_KINDS: Final = frozenset(
    {VerdictKind.COMPUTE_BOUND, VerdictKind.HEALTHY, VerdictKind.POWER_CAPPED, VerdictKind.MEMORY_BOUND}
)
_ALSO_REPORTED: Final = ("power_watts", "memory_used_bytes", "temperature_celsius")
_NOT_LOGGED_REASON: Final = "not in the recorded data"
_DISPLAYED_QUANTITIES: Final = (("memory_full_fraction", "last"), ("power_of_limit_fraction", "median"))


def diagnose_all(source: DiagnosisSource, at: float | None = None) -> Mapping[str, Verdict]:
    """Return the verdict on each GPU in the inventory, by UUID; see `diagnose`."""
    return {device.uuid: diagnose(source, device.uuid, at) for device in source.inventory.devices}


def diagnose(source: DiagnosisSource, uuid: str, at: float | None = None, seconds: float = WINDOW_SECONDS) -> Verdict:
    """Return the verdict on a GPU from readings in the `seconds` before `at` (monotonic; by default the last reading).

    Only the current processes are known, so an earlier `at` is diagnosed without processes.

    Raises:
        KeyError: If the inventory has no such GPU.
    """
    device = {device.uuid: device for device in source.inventory.devices}[uuid]
    end = source.end if at is None else at
    if device.state != "running":
        kind = FaultKind.LOST if device.state == "lost" else FaultKind.ASLEEP
        return _unread_card_verdict(VerdictKind(kind.value), kind, device.state, end or 0.0)
    if uuid in source.inventory.silent_uuids:
        return _unread_card_verdict(VerdictKind.UNKNOWN, FaultKind.CARD_NOT_ANSWERING, "no answer", end or 0.0)
    window = read_window(source, device, end or 0.0, seconds)
    verdict = diagnose_window(window, end or 0.0, _unknown_utilization_reason(source, device))
    return replace(verdict, unreported=_unreported_quantities(source, uuid))


def diagnose_window(window: CardWindow, at: float, unknown_reason: str = "") -> Verdict:
    """Return the verdict of the first rule that holds for the readings up to `at`, with all further problems."""
    utilization = window.quantity("use_fraction")
    phase = None if utilization is None else current_phase(utilization)
    now = window if phase is None else window.since(phase.start)
    # A wait that has not ended is not a rest yet, and would distort the statistics of the work before it.
    work = now if phase is None or phase.wait_start is None else now.until(phase.wait_start)
    is_long_enough = _is_long_enough_window(work)
    verdicts = [
        *_health_verdicts(now, at, only_instant=not is_long_enough),
        *([_workload_verdict(work, at)] if is_long_enough else []),
    ]
    first = (
        verdicts[0]
        if verdicts
        else _undecided_verdict(now, at, utilization, unknown_reason, is_long_enough=is_long_enough)
    )
    return _with_other_findings(first, verdicts[1:])


def _is_long_enough_window(work: CardWindow) -> bool:
    utilization = work.quantity("use_fraction")
    return utilization is not None and len(utilization.times) >= _MIN_VALUES and utilization.seconds >= _MIN_SECONDS


def _health_verdicts(now: CardWindow, at: float, *, only_instant: bool) -> Iterator[Verdict]:
    for rule in HEALTH_RULES:
        if rule.is_instant or not only_instant:
            yield from _verdict_if_holds(rule, now, at)


def _workload_verdict(work: CardWindow, at: float) -> Verdict:
    """Return the verdict on the current workload.

    If the window spans two workloads, neither bottleneck shows clearly; then the later half decides. A wait for data is
    over once the GPU was fully used for half a minute.
    """
    whole_window_verdict = _first_verdict(work, at)
    if whole_window_verdict.kind is VerdictKind.UNDER_USED:
        later = work.since(at - _LATER_SECONDS)
        return _first_verdict(later, at) if _is_long_enough_window(later) else whole_window_verdict
    if whole_window_verdict.kind is VerdictKind.INPUT_BOUND:
        recent = work.since(at - _RECENT_SECONDS)
        verdict = _first_verdict(recent, at) if _is_long_enough_window(recent) else whole_window_verdict
        return verdict if verdict.kind in _FULLY_USED_KINDS else whole_window_verdict
    return whole_window_verdict


def _first_verdict(work: CardWindow, at: float) -> Verdict:
    # The last rules hold whenever the utilization is known.
    return next(verdict for rule in WORKLOAD_RULES for verdict in _verdict_if_holds(rule, work, at))


def _verdict_if_holds(rule: DiagnosisRule, window: CardWindow, at: float) -> Iterator[Verdict]:
    evidence = rule.evidence(window)
    if evidence is not None:
        since, remedies = _start_seconds(window, at), fitting_advice(window, rule.advice)
        yield Verdict(rule.kind, rule.severity, rule.title, rule.sentence, since, at, evidence, remedies)


_SLOWED_KINDS: Final = frozenset({VerdictKind.THERMAL, VerdictKind.POWER_BRAKE})
# Lower clocks lengthen kernels and lower the power draw, from which these kinds are concluded.
_DISTORTED_BY_CLOCKS: Final = frozenset(
    {VerdictKind.MEMORY_BOUND, VerdictKind.COMPUTE_BOUND, VerdictKind.SYNC_BOUND, VerdictKind.POWER_CAPPED}
)


def _with_other_findings(first: Verdict, others: list[Verdict]) -> Verdict:
    is_slowed = not _SLOWED_KINDS.isdisjoint(verdict.kind for verdict in (first, *others))
    also = tuple(
        OtherFinding(other.kind, other.severity, other.title)
        for other in others
        if other.kind is not first.kind and not (is_slowed and other.kind in _DISTORTED_BY_CLOCKS)
    )
    return replace(first, also=also)


def _undecided_verdict(
    window: CardWindow, at: float, utilization: TimeSeries | None, reason: str, *, is_long_enough: bool
) -> Verdict:
    """Return the verdict on a GPU without a diagnosis: utilization unknown, too few readings, or no rule holds."""
    since = _start_seconds(window, at)
    if utilization is None or reason:
        sentence = f"Utilization is not known: {reason}. Only memory and power can be diagnosed."
        return Verdict(
            VerdictKind.UNKNOWN,
            "note",
            "utilization unknown",
            sentence,
            since,
            at,
            shown_evidence(window, _DISPLAYED_QUANTITIES),
        )
    assert not is_long_enough  # the last rules hold whenever the utilization is known
    sentence = f"A diagnosis needs {_MIN_SECONDS:.0f} seconds of steady work; {at - since:.0f} so far."
    return Verdict(VerdictKind.TOO_EARLY, "note", "too early to diagnose", sentence, since, at)


def _start_seconds(window: CardWindow, at: float) -> float:
    activity = window.quantity("use_fraction") or window.quantity("power_watts")
    return at if activity is None else activity.times[0]


def _unread_card_verdict(kind: VerdictKind, fault: FaultKind, title: str, at: float) -> Verdict:
    description = FAULTS[fault]
    sentence = f"{description.title[:1].upper()}{description.title[1:]}."
    return Verdict(kind, description.severity, title, sentence, at, at, advice=(description.advice,))


def _unknown_utilization_reason(source: DiagnosisSource, device: Device) -> str:
    """Return why a GPU's utilization is unknown now; empty if the utilization is known."""
    reading = source.latest.reading(device.uuid, "utilization_fraction")
    # In MIG mode, what the engine was active for stands in for it.
    if reading.value is not None or source.latest.reading(device.uuid, "graphics_active_fraction").value is not None:
        return ""
    cause = reading.cause or Cause.NOT_YET
    is_otherwise_reported = any(len(source.series(device.uuid, name).times) > 1 for name in _ALSO_REPORTED)
    # Another program's log holds only the quantities that were requested.
    return _NOT_LOGGED_REASON if cause is Cause.NOT_YET and is_otherwise_reported else EXPLANATIONS[cause]


# Quantities that most rules rest on, each of which some vendors' drivers do not report.
_JUDGED: Final = (
    "utilization_fraction",
    "memory_used_bytes",
    "memory_controller_fraction",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
    "clock_reasons",
    "pcie_receive_bytes_per_s",
)


def _unreported_quantities(source: DiagnosisSource, uuid: str) -> tuple[str, ...]:
    readings = source.latest.readings(uuid)
    return tuple(name for name in _JUDGED if name in readings and readings[name].cause is Cause.NOT_SUPPORTED)
