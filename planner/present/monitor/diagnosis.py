"""A verdict on a card in words: what it is, what was seen against which threshold of whom, and what to try."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from planner.monitor.diagnosis.checklist import Checked, Standing
from planner.monitor.diagnosis.verdict import Evidence, Kind, Severity, Verdict
from planner.monitor.diagnosis.window import HOST_PREFIX
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME
from planner.present import format as fmt
from planner.present.monitor.events import lasting

Tone = Literal["", "muted", "ok", "warn", "bad"]

_TONES: Final[dict[Severity, Tone]] = {"error": "bad", "warning": "warn", "note": "muted", "good": "ok"}
# What goes without saying.
_UNSAID: Final = ("is_in_use",)
_SILENT: Final = (Kind.TOO_EARLY, Kind.LOST, Kind.ASLEEP)
_DERIVED: Final = {
    "use_fraction": "Utilisation",
    "memory_full_fraction": "Memory in use",
    "memory_left_bytes": "Memory left",
    "memory_long_fraction": "Memory over ten minutes",
    "memory_long_seconds": "Time that memory was watched",
    "power_of_limit_fraction": "Power, of its limit",
    "clock_of_most_fraction": "SM clock, of its highest",
    "pcie_bytes_per_s": "PCIe, both ways",
    "pcie_of_link_fraction": "PCIe, of what the link carries",
    "media_fraction": "Encoder or decoder",
    "starved_by_cpu": "Processor over 90 % while the card is under 10 %",
    "starved_by_disk": "Waiting for disks over 50 % while the card is under 10 %",
    "waiting_cores": "Cores that wait for disks",
    "slowed_by_heat": "Slowed for heat",
    "slowed_by_supply": "Slowed by the power supply",
    "slowed_by_card": "Slowed by the card itself",
    "held_by_power_limit": "Held by the power limit while it works",
    "held_memory_bytes": "Memory that processes hold",
    "busiest_process_cores": "Busiest process, in cores",
    "is_in_use": "Programs that use it",
    "peer_distance": "Distance of histograms to the busiest card's",
    "peer_lag": "Behind the busiest card by",
}
_STATISTICS: Final = {
    "mean": "on average",
    "p5": "at the 5th percentile",
    "p25": "at the 25th percentile",
    "median": "in the median",
    "p95": "at the 95th percentile",
    "most": "at most",
    "last": "now",
    "share": "of the time",
    "lately": "of the last half minute",
    "growth": "more, step by step",
    "swings": "falls from over 70 to under 30 %",
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
_SHELL_SIGNS: Final[dict[Severity, str]] = {"error": "✗", "warning": "!", "note": "·", "good": "✓"}
_STANDINGS: Final[dict[Standing, str]] = {"done": "✓ done", "to-do": "to do", "unknown": "not measured here"}


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One thing that was seen: of which quantity, what, and the threshold that it met with whose that is, if any."""

    quantity: str
    seen: str
    threshold: str = ""
    source: str = ""

    @property
    def as_text(self) -> str:
        """Return it as one line."""
        line = f"{self.quantity}: {self.seen}"
        return f"{line} ({self.threshold}; {self.source})" if self.threshold else line


@dataclass(frozen=True, slots=True)
class Said:
    """The diagnosis of a card: in a few words, as a sentence, its tone, and all there is to say, whole and in parts."""

    title: str = ""
    sentence: str = ""
    tone: Tone = ""
    details: str = ""
    lasted: str = ""
    evidence: tuple[EvidenceRow, ...] = ()
    advice: tuple[str, ...] = ()


def said(verdict: Verdict) -> Said:
    """Return a verdict as it stands on a card's line."""
    title = fmt.capitalized(verdict.title)
    return Said(
        title,
        sentence_of(verdict),
        tone_of(verdict),
        verdict_text(verdict),
        lasting(max(0.0, verdict.at - verdict.since)),
        tuple(evidence_row(one) for one in verdict.evidence if one.metric not in _UNSAID),
        verdict.advice,
    )


def tone_of(verdict: Verdict) -> Tone:
    """Return in which tone a verdict is told."""
    return _TONES[verdict.severity]


def sentence_of(verdict: Verdict) -> str:
    """Return a verdict as a sentence or two: what it is, what that means, and what else is wrong."""
    also = fmt.listing(tuple(other.title for other in verdict.also))
    title = fmt.capitalized(verdict.title)
    return f"{title}. {verdict.sentence}" + (f" Also: {also}." if also else "")


def verdict_text(verdict: Verdict) -> str:
    """Return what was seen and what to try, a line each; the likeliest help comes first."""
    lines = [f"• {evidence_row(one).as_text}" for one in verdict.evidence if one.metric not in _UNSAID]
    if lines:
        lines.insert(0, f"For {lasting(max(0.0, verdict.at - verdict.since))}; seen in the last minutes:")
    if verdict.advice:
        lines += ["", "What to try, the likeliest first:"] if lines else ["What to try, the likeliest first:"]
        lines += [f"{number}. {sentence}" for number, sentence in enumerate(verdict.advice, start=1)]
    return "\n".join(lines)


def verdict_lines(verdicts: Mapping[str, Verdict], devices: tuple[Device, ...]) -> tuple[str, ...]:
    """Return a line for each card on which there is something to say, and below it what is likeliest to help."""
    lines = []
    for device in devices:
        verdict = verdicts.get(device.uuid)
        if verdict is None or verdict.kind in _SILENT:
            continue
        name = f"card {device.index}" if device.mig_parent is None else f"instance {device.index}"
        lines.append(f"{_SHELL_SIGNS[verdict.severity]} {name}: {sentence_of(verdict)}")
        if verdict.severity in ("error", "warning") and verdict.advice:
            lines.append(f"    {verdict.advice[0]}")
    return tuple(lines)


def evidence_row(evidence: Evidence) -> EvidenceRow:
    """Return one thing that was seen, what it was held against, and whose threshold that is."""
    seen = _shown(evidence.metric, evidence.statistic, evidence.seen)
    title, seen = quantity_title(evidence.metric), f"{seen} {_STATISTICS[evidence.statistic]}"
    condition = evidence.condition
    if condition is None:
        return EvidenceRow(title, seen)
    threshold = _shown(condition.metric, condition.statistic, condition.threshold)
    kind = "heuristic: " if condition.source.is_heuristic else ""
    return EvidenceRow(title, seen, f"{_SIGNS[condition.sign]} {threshold}", f"{kind}{condition.source.text}")


def quantity_title(name: str) -> str:
    """Return what a quantity of a diagnosis is called."""
    if name in _DERIVED:
        return _DERIVED[name]
    return HOST_BY_NAME[name.removeprefix(HOST_PREFIX)].title if name.startswith(HOST_PREFIX) else BY_NAME[name].title


@dataclass(frozen=True, slots=True)
class ChecklistRow:
    """One thing to do next: how it stands, what was seen, why and how."""

    title: str
    standing: str
    seen: str
    why: str
    how: tuple[str, ...]
    source: str


def checklist_rows(checked: tuple[Checked, ...]) -> tuple[ChecklistRow, ...]:
    """Return the list of what to optimise next, in the order in which it is worth while."""
    return tuple(
        ChecklistRow(
            title=one.item.title,
            standing=_STANDINGS[one.standing],
            seen="; ".join(evidence_row(evidence).as_text for evidence in one.evidence),
            why=one.item.why,
            how=one.item.how,
            source=one.item.guide.text,
        )
        for one in checked
    )


def checklist_text(rows: tuple[ChecklistRow, ...]) -> str:
    """Return the list as text: each item with how it stands, why, what was seen, how, and by which guide."""
    return "\n\n".join("\n".join(_item_lines(number, row)) for number, row in enumerate(rows, start=1))


def _item_lines(number: int, row: ChecklistRow) -> tuple[str, ...]:
    seen = (f"   {row.seen}",) if row.seen else ()
    how = tuple(f"   • {sentence}" for sentence in row.how)
    return (f"{number}. {row.title}: {row.standing}", f"   {row.why}", *seen, *how, f"   Source: {row.source}")


def _shown(name: str, statistic: str, value: float) -> str:
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
