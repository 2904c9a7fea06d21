"""Conditions that several rules share."""

from typing import Final

from planner.monitor.diagnosis import sources
from planner.monitor.diagnosis.verdict import Condition

NOT_FULL_USE: Final = Condition("use_fraction", "median", "<", 0.7, sources.HALF_THE_TIME)
LOW_USE: Final = Condition("use_fraction", "p95", "<", 0.7, sources.LOW_USE)
MOSTLY_USED: Final = Condition("use_fraction", "median", ">=", 0.7, sources.HALF_THE_TIME)
STEADY: Final = Condition("use_fraction", "p25", ">=", 0.7, sources.STEADY)
IN_USE: Final = Condition("is_in_use", "last", ">", 0, sources.IDLE_AUDIT)
ACTIVE: Final = Condition("use_fraction", "most", ">=", 0.1, sources.IDLE_AUDIT)
SWINGS: Final = Condition("use_fraction", "swings", ">=", 3, sources.SWINGS)
IDLE: Final = Condition("use_fraction", "p95", "<", 0.1, sources.IDLE_AUDIT)
