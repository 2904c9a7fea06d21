"""A rule: what must be true of a card's last minutes, and what is said then; and conditions that rules share."""

from dataclasses import dataclass
from typing import Final

from planner.monitor.diagnosis import sources
from planner.monitor.diagnosis.verdict import Condition, Evidence, Kind, Severity
from planner.monitor.diagnosis.window import Window


@dataclass(frozen=True, slots=True)
class Rule:
    """All of `conditions` must hold; a quantity that is not known makes a rule not hold.

    `shown` are quantities that are told beside them, with a statistic each. `is_of_moment`: what was read just now is
    enough.
    """

    kind: Kind
    severity: Severity
    title: str
    sentence: str
    conditions: tuple[Condition, ...]
    advice: tuple[str, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()
    is_of_moment: bool = False

    def evidence(self, window: Window) -> tuple[Evidence, ...] | None:
        """Return what was seen if the rule holds, else none."""
        found = []
        for condition in self.conditions:
            seen = window.statistic(condition.metric, condition.statistic)
            if seen is None or not condition.holds(seen):
                return None
            found.append(Evidence(condition.metric, condition.statistic, seen, condition))
        return (*found, *told(window, self.shown))


def told(window: Window, shown: tuple[tuple[str, str], ...]) -> tuple[Evidence, ...]:
    """Return what was seen of quantities that are only told; those that are not known are left out."""
    seen = ((name, statistic, window.statistic(name, statistic)) for name, statistic in shown)
    return tuple(Evidence(name, statistic, value) for name, statistic, value in seen if value is not None)


NOT_FULL_USE: Final = Condition("use_fraction", "median", "<", 0.7, sources.HALF_THE_TIME)
LOW_USE: Final = Condition("use_fraction", "p95", "<", 0.7, sources.LOW_USE)
MOSTLY_USED: Final = Condition("use_fraction", "median", ">=", 0.7, sources.HALF_THE_TIME)
STEADY: Final = Condition("use_fraction", "p25", ">=", 0.7, sources.STEADY)
IN_USE: Final = Condition("is_in_use", "last", ">", 0, sources.IDLE_AUDIT)
ACTIVE: Final = Condition("use_fraction", "most", ">=", 0.1, sources.IDLE_AUDIT)
SWINGS: Final = Condition("use_fraction", "swings", ">=", 3, sources.SWINGS)
IDLE: Final = Condition("use_fraction", "p95", "<", 0.1, sources.IDLE_AUDIT)
