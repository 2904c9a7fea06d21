"""Titles of enumerated values."""

from collections.abc import Mapping
from typing import Any, get_args

import pytest

from planner.workload import choices


@pytest.mark.parametrize(
    ("values", "titles"),
    [
        (choices.Method, choices.METHOD_TITLES),
        (choices.Compute, choices.COMPUTE_TITLES),
        (choices.TrainedFormat, choices.WEIGHT_FORMAT_TITLES),
        (choices.Attention, choices.ATTENTION_TITLES),
        (choices.Checkpointing, choices.CHECKPOINTING_TITLES),
        (choices.Loss, choices.LOSS_TITLES),
        (choices.Offload, choices.OFFLOAD_TITLES),
    ],
)
def test_every_value_has_one_title_of_its_own(values: Any, titles: Mapping[str, str]) -> None:
    assert set(titles) == set(get_args(values))
    assert len(set(titles.values())) == len(titles)
