"""The recommendation that several tests look at."""

import pytest
from recommended_hardware import TUNING, recommended

from planner.plan.recommend.option import Recommendation


@pytest.fixture(scope="package")
def tuned(catalog) -> Recommendation:
    return recommended(TUNING, catalog)
