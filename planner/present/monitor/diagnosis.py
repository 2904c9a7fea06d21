"""Diagnoses of cards as text: the verdict, the evidence with its thresholds and their sources, and the advice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from planner.monitor.diagnosis.card_window import HOST_PREFIX
from planner.monitor.diagnosis.checklist import ChecklistResult, ItemStatus
from planner.monitor.diagnosis.verdict import Evidence, Verdict, VerdictKind, VerdictSeverity
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME
from planner.present import format as fmt
from planner.present.monitor.events import duration_text
from planner.present.monitor.readings import card_numbers_text, common_card_name

Tone = Literal["", "muted", "ok", "warn", "bad"]

_TONES: Final[dict[VerdictSeverity, Tone]] = {"error": "bad", "warning": "warn", "note": "muted", "good": "ok"}
# Evidence that is too obvious to show.
_UNSAID: Final = ("is_in_use", "is_graphics_only")
_SILENT: Final = (VerdictKind.TOO_EARLY, VerdictKind.LOST, VerdictKind.ASLEEP)
_DERIVED: Final = {
    "use_fraction": "Utilization",
    "memory_full_fraction": "Memory in use",
    "memory_left_bytes": "Free memory",
    "memory_long_fraction": "Memory in use over ten minutes",
    "memory_long_seconds": "Observed time",
    "power_of_limit_fraction": "Power relative to its limit",
    "clock_of_most_fraction": "SM clock relative to its maximum",
    "pcie_bytes_per_s": "PCIe traffic, both directions",
    "pcie_of_link_fraction": "PCIe traffic relative to the link's bandwidth",
    "media_fraction": "Encoder or decoder utilization",
    "starved_by_cpu": "CPU over 90 % while the GPU is under 10 %",
    "starved_by_disk": "I/O wait over 50 % while the GPU is under 10 %",
    "waiting_cores": "Cores in I/O wait",
    "slowed_by_heat": "Thermal throttling",
    "slowed_by_supply": "Throttled by the power supply",
    "slowed_by_card": "Throttled by the hardware",
    "held_by_power_limit": "At the power limit under load",
    "held_memory_bytes": "Memory used by processes",
    "busiest_process_cores": "CPU cores used by the busiest process",
    "is_in_use": "Programs that use the GPU",
    "is_graphics_only": "Only programs that draw",
    "peer_distance": "Distance between the GPU's utilization histogram and the busiest GPU's",
    "peer_lag": "Utilization behind the busiest GPU's by",
    "power_beyond_peers_fraction": "Power, relative to its limit, beyond that of the job's other GPUs by",
    "power_behind_peers_fraction": "Power, relative to its limit, behind that of the job's other GPUs by",
    "job_least_use_fraction": "Lowest utilization of the job's GPUs in the last half minute",
    "job_most_power_fraction": "Highest power of the job's GPUs, relative to its limit, in the last half minute",
    "job_most_memory_controller_fraction": "Highest memory controller use of the job's GPUs in the last half minute",
    "job_cpu_fraction": "CPU",
    "memory_without_graphics_bytes": "Memory that no graphics program holds",
    "memory_hour_bytes": "Memory in use over the last hour",
    "memory_hour_seconds": "Observed time",
    "pcie_of_unknown_link_bytes_per_s": "PCIe traffic of the busier direction",
}
_STATISTICS: Final = {
    "mean": "on average",
    "p5": "at the 5th percentile",
    "p25": "at the 25th percentile",
    "median": "as the median",
    "p95": "at the 95th percentile",
    "most": "at most",
    "last": "now",
    "share": "of the time",
    "lately": "of the last half minute",
    "growth": "of steady growth",
    "unending growth": "of steady growth that does not level off",
    "swings": "drops from over 70 to under 30 %",
}
_SIGNS: Final = {">=": "≥", "<=": "≤", ">": ">", "<": "<"}
_SHARES: Final = (("_fraction", "_lag"), ("starved_", "slowed_", "held_by"))
_UNITS: Final = (
    ("_bytes_per_s", "GB/s", 1e9),
    ("_watts", "W", 1.0),
    ("_celsius", "°C", 1.0),
    ("_mhz", "MHz", 1.0),
    ("_seconds", "s", 1.0),
)
_SHELL_SIGNS: Final[dict[VerdictSeverity, str]] = {"error": "✗", "warning": "!", "note": "·", "good": "✓"}
_STANDINGS: Final[dict[ItemStatus, str]] = {
    "done": "✓ looks fine",
    "to-do": "worth trying",
    "unknown": "not measured here",
}


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """Evidence as texts: a quantity, its observed value and, if there is one, the threshold with its source."""

    quantity: str
    seen: str
    threshold: str = ""
    source: str = ""

    @property
    def as_text(self) -> str:
        """Return the evidence as one line."""
        line = f"{self.quantity}: {self.seen}"
        return f"{line} ({self.threshold}; {self.source})" if self.threshold else line


@dataclass(frozen=True, slots=True)
class DiagnosisView:
    """A diagnosis as texts: title, sentence, tone (color); duration, evidence and advice, also joined as `details`."""

    title: str = ""
    sentence: str = ""
    tone: Tone = ""
    details: str = ""
    lasted: str = ""
    evidence: tuple[EvidenceRow, ...] = ()
    advice: tuple[str, ...] = ()
    unreported: str = ""


def diagnosis_view(verdict: Verdict) -> DiagnosisView:
    """Return the texts that display a verdict."""
    title = fmt.capitalized(verdict.title)
    return DiagnosisView(
        title,
        verdict_sentence(verdict),
        severity_tone(verdict),
        verdict_details(verdict),
        duration_text(max(0.0, verdict.at - verdict.since)),
        tuple(evidence_row(evidence) for evidence in verdict.evidence if evidence.metric not in _UNSAID),
        verdict.advice,
        unreported_text(verdict),
    )


def severity_tone(verdict: Verdict) -> Tone:
    """Return the tone (color) for the severity of a verdict."""
    return _TONES[verdict.severity]


def verdict_sentence(verdict: Verdict) -> str:
    """Return a verdict as sentences: its title, what it means, and further problems of the card."""
    # What is fine on a card with a problem would read as one more problem.
    is_fine = verdict.severity in ("note", "good")
    also = fmt.listing(tuple(other.title for other in verdict.also if is_fine or other.severity != "good"))
    title = fmt.capitalized(verdict.title)
    return f"{title}. {verdict.sentence}" + (f" Also: {also}." if also else "")


def verdict_details(verdict: Verdict) -> str:
    """Return the evidence and the advice of a verdict, one per line; the most promising advice comes first."""
    lines = [f"• {evidence_row(evidence).as_text}" for evidence in verdict.evidence if evidence.metric not in _UNSAID]
    if lines:
        lines.insert(0, f"For {duration_text(max(0.0, verdict.at - verdict.since))}; observed in the last minutes:")
    if unreported := unreported_text(verdict):
        lines.append(f"• {unreported}")
    if verdict.advice:
        lines += ["", "What to try, most likely first:"] if lines else ["What to try, most likely first:"]
        lines += [f"{number}. {sentence}" for number, sentence in enumerate(verdict.advice, start=1)]
    return "\n".join(lines)


def unreported_text(verdict: Verdict) -> str:
    """Return what a card's driver does not report, so that the verdict says nothing of it; empty if there is none."""
    titles = ", ".join(quantity_title(name) for name in verdict.unreported)
    return f"Not reported by this driver, so not judged: {titles}." if titles else ""


class VerdictLine(NamedTuple):
    """A line about a verdict, with its tone."""

    text: str
    tone: Tone


def verdict_lines(verdicts: Mapping[str, Verdict], devices: tuple[Device, ...]) -> tuple[VerdictLine, ...]:
    """Return a line for each notable verdict, followed by the first advice if it is a problem; equal cards share it."""
    same: dict[tuple[str, str], list[Device]] = {}
    for device in devices:
        verdict = verdicts.get(device.uuid)
        if verdict is not None and verdict.kind not in _SILENT:
            same.setdefault((_SHELL_SIGNS[verdict.severity], verdict_sentence(verdict)), []).append(device)
    lines = []
    for (sign, sentence), cards in same.items():
        verdict = verdicts[cards[0].uuid]
        name = common_card_name(cards) if len(cards) == len(devices) > 1 else card_numbers_text(cards)
        lines.append(VerdictLine(f"{sign} {name}: {sentence}", severity_tone(verdict)))
        if verdict.severity in ("error", "warning") and verdict.advice:
            lines.append(VerdictLine(f"    {verdict.advice[0]}", ""))
    return tuple(lines)


def evidence_row(evidence: Evidence) -> EvidenceRow:
    """Return the texts of `evidence`: quantity, observed value, threshold and the threshold's source."""
    seen = _quantity_text(evidence.metric, evidence.statistic, evidence.seen)
    title, seen = quantity_title(evidence.metric), f"{seen} {_STATISTICS[evidence.statistic]}"
    condition = evidence.condition
    if condition is None:
        return EvidenceRow(title, seen)
    threshold = _quantity_text(condition.metric, condition.statistic, condition.threshold)
    kind = "heuristic: " if condition.source.is_heuristic else ""
    return EvidenceRow(title, seen, f"{_SIGNS[condition.sign]} {threshold}", f"{kind}{condition.source.text}")


def quantity_title(name: str) -> str:
    """Return the displayed title of a quantity that diagnoses use as evidence."""
    if name in _DERIVED:
        return _DERIVED[name]
    return HOST_BY_NAME[name.removeprefix(HOST_PREFIX)].title if name.startswith(HOST_PREFIX) else BY_NAME[name].title


@dataclass(frozen=True, slots=True)
class ChecklistRow:
    """Checklist item as texts: status (`standing`), evidence (`seen`), reason (`why`) and instructions (`how`)."""

    title: str
    standing: str
    seen: str
    why: str
    how: tuple[str, ...]
    source: str


def checklist_rows(results: tuple[ChecklistResult, ...]) -> tuple[ChecklistRow, ...]:
    """Return the texts of the checklist items, the most worthwhile item first."""
    return tuple(
        ChecklistRow(
            title=result.item.title,
            standing=_STANDINGS[result.standing],
            seen="; ".join(evidence_row(evidence).as_text for evidence in result.evidence),
            why=result.item.why,
            how=result.item.how,
            source=result.item.guide.text,
        )
        for result in results
    )


def checklist_text(rows: tuple[ChecklistRow, ...]) -> str:
    """Return the checklist as text: each item with status, reason, evidence, instructions and source."""
    return "\n\n".join("\n".join(_checklist_item_lines(number, row)) for number, row in enumerate(rows, start=1))


def _checklist_item_lines(number: int, row: ChecklistRow) -> tuple[str, ...]:
    seen = (f"   {row.seen}",) if row.seen else ()
    how = tuple(f"   • {sentence}" for sentence in row.how)
    return (f"{number}. {row.title}: {row.standing}", f"   {row.why}", *seen, *how, f"   Source: {row.source}")


def _quantity_text(name: str, statistic: str, value: float) -> str:
    if statistic == "swings":
        return fmt.plain(value)
    if statistic == "share" or name.endswith(_SHARES[0]) or name.startswith(_SHARES[1]):
        return fmt.percent(value)
    if name.endswith("_bytes"):
        return fmt.size(int(value))
    for suffix, unit, per_unit in _UNITS:
        if name.endswith(suffix):
            return fmt.quantity(value / per_unit, unit)
    return fmt.plain(value)
