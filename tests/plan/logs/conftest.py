"""A comparison of a log with the estimate of a plan."""

import pytest
from log_texts import RUN

from planner.memory.logs.read import read_log
from planner.plan.logs.comparison import compare_plan


@pytest.fixture
def compared(catalog):
    def make(text, plan=RUN):
        return compare_plan(plan, catalog, read_log(text))

    return make
