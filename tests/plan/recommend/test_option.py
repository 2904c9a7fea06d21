"""Limits on the options."""

import pytest
from pydantic import ValidationError

from planner.plan.recommend.option import Wish


@pytest.mark.parametrize(
    "wish", [{"budget_usd": 0}, {"counts": [0]}, {"counts": [5_000]}, {"counts": []}, {"modes": []}]
)
def test_wishes_that_make_no_sense_are_refused(wish):
    with pytest.raises(ValidationError):
        Wish.model_validate(wish)
