"""A verdict on a card in words: what it is, what was seen against which threshold of whom, and what to try."""

from dataclasses import dataclass
from typing import Final, Literal

from planner.monitor.diagnosis.verdict import Evidence, Severity, Verdict
from planner.monitor.metrics import BY_NAME, HOST_BY_NAME
from planner.present import format as fmt

Tone = Literal["", "muted", "ok", "warn", "bad"]

_TONES: Final[dict[Severity, Tone]] = {"error": "bad", "warning": "warn", "note": "muted", "good": "ok"}
_HOST: Final = "host."
_LONG: Final = ".long"
_DERIVED: Final = {
    "use_fraction": "Utilisation",
    "memory_full_fraction": "Memory in use",
    "memory_long_fraction": "Memory in use, over ten minutes",
    "memory_long_seconds": "Time that memory was watched",
    "power_of_limit_fraction": "Power, of its limit",
    "clock_of_most_fraction": "SM clock, of its highest",
    "pcie_bytes_per_s": "PCIe, both ways",
    "pcie_of_link_fraction": "PCIe, of what the link carries",
    "media_fraction": "Encoder or decoder",
    "starved_by_cpu": "Processor full while the card rests",
    "starved_by_disk": "Waiting for disks while the card rests",
    "waiting_cores": "Cores that wait for disks",
    "slowed_by_heat": "Slowed for heat",
    "slowed_by_supply": "Slowed by the power supply",
    "slowed_by_card": "Slowed by the card itself",
    "held_by_power_limit": "Held by the power limit",
    "held_memory_bytes": "Memory that processes hold",
    "busiest_process_cores": "Busiest process, in cores",
    "is_in_use": "In use at all",
    "peer_distance": "Distance to the busiest card's use, from 0 to 1",
    "peer_lag": "Less use than the busiest card",
}
_STATISTICS: Final = {
    "mean": "on average",
    "p5": "but for the lowest 5 %",
    "p25": "but for the lowest quarter",
    "median": "half of the time at least",
    "p95": "but for the highest 5 %",
    "most": "at most",
    "last": "now",
    "share": "of the time",
    "growth": "growth",
    "swings": "swings",
    "rise": "rise",
}
_SIGNS: Final = {">=": "≥", "<=": "≤", ">": ">", "<": "<"}
_COUNTED: Final = ("swings",)
_SHARES: Final = (("_fraction", "_lag"), ("starved_", "slowed_", "held_by"))
_UNITS: Final = (("_bytes_per_s", "GB/s", 1e9), ("_watts", "W", 1.0), ("_celsius", "°C", 1.0), ("_mhz", "MHz", 1.0))


@dataclass(frozen=True, slots=True)
class Said:
    """The diagnosis of a card: a sentence, its tone, and all there is to say."""

    sentence: str = ""
    tone: Tone = ""
    details: str = ""


def said(verdict: Verdict) -> Said:
    """Return a verdict as it stands on a card's line."""
    title = f"{verdict.title[:1].upper()}{verdict.title[1:]}"
    also = fmt.listing(tuple(other.title for other in verdict.also))
    sentence = f"{title}. {verdict.sentence}" + (f" Also: {also}." if also else "")
    return Said(sentence, _TONES[verdict.severity], verdict_text(verdict))


def verdict_text(verdict: Verdict) -> str:
    """Return what was seen and what to try, a line each; the likeliest help comes first."""
    lines = [f"Seen over {max(0.0, verdict.at - verdict.since):.0f}{fmt.THIN}s:"] if verdict.evidence else []
    lines += [f"• {evidence_line(evidence)}" for evidence in verdict.evidence]
    if verdict.advice:
        lines += ["What to try, the likeliest first:"]
        lines += [f"{number}. {sentence}" for number, sentence in enumerate(verdict.advice, start=1)]
    return "\n".join(lines)


def evidence_line(evidence: Evidence) -> str:
    """Return one thing that was seen, what it was held against, and whose threshold that is."""
    seen = _shown(evidence.metric, evidence.statistic, evidence.seen)
    line = f"{quantity_title(evidence.metric)}: {seen} {_STATISTICS.get(evidence.statistic, '')}".rstrip()
    condition = evidence.condition
    if condition is None:
        return line
    threshold = _shown(condition.metric, condition.statistic, condition.threshold)
    kind = "heuristic: " if condition.source.is_heuristic else ""
    return f"{line} ({_SIGNS[condition.sign]} {threshold}; {kind}{condition.source.text})"


def quantity_title(name: str) -> str:
    """Return what a quantity of a diagnosis is called."""
    plain = name.removesuffix(_LONG)
    if plain in _DERIVED:
        return _DERIVED[plain]
    known = HOST_BY_NAME.get(plain.removeprefix(_HOST)) if plain.startswith(_HOST) else BY_NAME.get(plain)
    return plain if known is None else known.title


def _shown(name: str, statistic: str, value: float) -> str:
    plain = name.removesuffix(_LONG)
    if statistic in _COUNTED:
        return fmt.plain(value)
    if statistic == "share" or plain.endswith(_SHARES[0]) or plain.startswith(_SHARES[1]):
        return fmt.percent(value)
    if plain.endswith("_bytes"):
        return fmt.size(int(value))
    for suffix, unit, per_unit in _UNITS:
        if plain.endswith(suffix):
            return fmt.quantity(value / per_unit, unit)
    return fmt.plain(value)
