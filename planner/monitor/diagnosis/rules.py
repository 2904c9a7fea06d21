"""The rules, as data. The first that holds is the verdict: troubles first, then the narrower before the wider."""

from typing import Final

from planner.monitor.diagnosis.at_rest import AT_REST
from planner.monitor.diagnosis.full_use import FULL_USE
from planner.monitor.diagnosis.held_back import HELD_BACK
from planner.monitor.diagnosis.troubles import TROUBLES

RULES: Final = (*TROUBLES, *AT_REST, *HELD_BACK, *FULL_USE)
"""All rules, in the order in which they are asked."""
