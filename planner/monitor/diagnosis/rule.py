"""Diagnosis rules: criteria on a GPU's last minutes, the verdict text, and criteria that several rules share."""

from dataclasses import dataclass
from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.card_window import CardWindow
from planner.monitor.diagnosis.verdict import Criterion, Evidence, VerdictKind, VerdictSeverity


@dataclass(frozen=True, slots=True)
class DiagnosisRule:
    """A verdict that applies if all criteria hold; a criterion on an unknown quantity does not hold.

    `shown` lists quantities, each with a statistic, displayed in addition to the criteria. `is_instant` marks a
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
        """Return the readings that support the verdict, None if the rule does not hold."""
        evidence = []
        for condition in self.conditions:
            value = window.statistic(condition.metric, condition.statistic)
            if value is None or not condition.holds(value):
                return None
            evidence.append(Evidence(condition.metric, condition.statistic, value, condition))
        return (*evidence, *shown_evidence(window, self.shown))


_CONTRADICTED: Final = {
    advice.PRECISION: Criterion("tensor_active_fraction", "mean", ">=", 0.1, sources.TENSOR_CORES),
    advice.LARGER_BATCH: Criterion("memory_full_fraction", "last", ">=", 0.95, sources.NEAR_FULL),
    advice.WORKERS: Criterion("host.cpu_fraction", "median", ">=", 0.9, sources.CPU_BOTTLENECK),
}


def fitting_advice(window: CardWindow, remedies: tuple[str, ...]) -> tuple[str, ...]:
    """Return the remedies that the readings do not contradict, such as bf16 where tensor cores already work."""

    def is_contradicted(remedy: str) -> bool:
        condition = _CONTRADICTED.get(remedy)
        value = None if condition is None else window.statistic(condition.metric, condition.statistic)
        return condition is not None and value is not None and condition.holds(value)

    return tuple(remedy for remedy in remedies if not is_contradicted(remedy))


def shown_evidence(window: CardWindow, shown: tuple[tuple[str, str], ...]) -> tuple[Evidence, ...]:
    """Return evidence without criteria for the quantities and statistics `shown`; unknown quantities are omitted."""
    statistics = ((name, statistic, window.statistic(name, statistic)) for name, statistic in shown)
    return tuple(Evidence(name, statistic, value) for name, statistic, value in statistics if value is not None)


NOT_FULL_USE: Final = Criterion("use_fraction", "median", "<", 0.7, sources.MEDIAN_USE)
LOW_USE: Final = Criterion("use_fraction", "p95", "<", 0.7, sources.LOW_USE)
MOSTLY_USED: Final = Criterion("use_fraction", "median", ">=", 0.7, sources.MEDIAN_USE)
STEADY: Final = Criterion("use_fraction", "p25", ">=", 0.7, sources.STEADY)
IN_USE: Final = Criterion("is_in_use", "last", ">", 0, sources.IDLE_AUDIT)
ACTIVE: Final = Criterion("use_fraction", "most", ">=", 0.1, sources.IDLE_AUDIT)
SWINGS: Final = Criterion("use_fraction", "swings", ">=", 3, sources.SWINGS)
IDLE: Final = Criterion("use_fraction", "p95", "<", 0.1, sources.IDLE_AUDIT)
