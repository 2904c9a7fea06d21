"""The rules, as data. The first that holds is the verdict: troubles first, then the narrower before the wider."""

from typing import Final

from planner.monitor.diagnosis.at_rest import AT_REST
from planner.monitor.diagnosis.full_use import FULL_USE
from planner.monitor.diagnosis.held_back import HELD_BACK
from planner.monitor.diagnosis.troubles import TROUBLES

OF_WORK: Final = (*AT_REST, *HELD_BACK, *FULL_USE)
"""The rules of which one holds: the first."""
RULES: Final = (*TROUBLES, *OF_WORK)
"""All rules, in the order in which they are asked."""
