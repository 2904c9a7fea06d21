"""Diagnosis rules: criteria on a card's last minutes, the verdict text, and criteria that several rules share."""

from dataclasses import dataclass
from typing import Final

from planner.monitor.diagnosis import sources
from planner.monitor.diagnosis.card_window import CardWindow
from planner.monitor.diagnosis.verdict import Criterion, Evidence, VerdictKind, VerdictSeverity


@dataclass(frozen=True, slots=True)
class DiagnosisRule:
    """A verdict with its criteria, all of which must hold; an unknown quantity makes the rule fail.

    `shown` lists quantities, each with a statistic, that are reported along with the criteria. `is_instant` marks a
    rule for which the latest readings are enough.
    """

    kind: VerdictKind
    severity: VerdictSeverity
    title: str
    sentence: str
    conditions: tuple[Criterion, ...]
    advice: tuple[str, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()
    is_instant: bool = False

    def evidence(self, window: CardWindow) -> tuple[Evidence, ...] | None:
        """Return the evidence if the rule holds, else None."""
        found = []
        for condition in self.conditions:
            seen = window.statistic(condition.metric, condition.statistic)
            if seen is None or not condition.holds(seen):
                return None
            found.append(Evidence(condition.metric, condition.statistic, seen, condition))
        return (*found, *shown_evidence(window, self.shown))


def shown_evidence(window: CardWindow, shown: tuple[tuple[str, str], ...]) -> tuple[Evidence, ...]:
    """Return evidence for quantities that are only displayed; unknown ones are left out."""
    seen = ((name, statistic, window.statistic(name, statistic)) for name, statistic in shown)
    return tuple(Evidence(name, statistic, value) for name, statistic, value in seen if value is not None)


NOT_FULL_USE: Final = Criterion("use_fraction", "median", "<", 0.7, sources.HALF_THE_TIME)
LOW_USE: Final = Criterion("use_fraction", "p95", "<", 0.7, sources.LOW_USE)
MOSTLY_USED: Final = Criterion("use_fraction", "median", ">=", 0.7, sources.HALF_THE_TIME)
STEADY: Final = Criterion("use_fraction", "p25", ">=", 0.7, sources.STEADY)
IN_USE: Final = Criterion("is_in_use", "last", ">", 0, sources.IDLE_AUDIT)
ACTIVE: Final = Criterion("use_fraction", "most", ">=", 0.1, sources.IDLE_AUDIT)
SWINGS: Final = Criterion("use_fraction", "swings", ">=", 3, sources.SWINGS)
IDLE: Final = Criterion("use_fraction", "p95", "<", 0.1, sources.IDLE_AUDIT)
