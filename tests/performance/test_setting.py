"""Settings of time: defaults, and values that are refused."""

import pytest
from pydantic import ValidationError

from planner.errors import SpecError
from planner.performance.setting import MeasuredSpeed, TimeSetting


def test_by_default_everything_follows_from_the_cards() -> None:
    assert set(TimeSetting().model_dump(exclude_none=True).values()) == {False}


@pytest.mark.parametrize(
    "changes",
    [{"cards_per_node": 0}, {"network_bytes_per_s": 0}, {"link": "rope"}, {"input_samples_per_second": -1}, {"x": 1}],
    ids=str,
)
def test_impossible_settings_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(changes))):
        TimeSetting.model_validate(changes)


def test_a_measured_speed_is_above_zero() -> None:
    with pytest.raises(SpecError, match="value"):
        MeasuredSpeed(value=0, unit="tokens/s")
