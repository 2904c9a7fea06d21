"""Single readings and their JSON form."""

import pytest
from hypothesis import given
from reading_kit import READINGS

from planner.monitor.readings.reading import EXPLANATIONS, Cause, reading_from_json, reading_to_json


@given(READINGS)
def test_readings_are_unchanged_by_json(reading):
    assert reading_from_json(reading_to_json(reading)) == reading


@pytest.mark.parametrize("plain", ["no-such-cause", [], [1, 2], ["x"], True, [True], None, {}])
def test_invalid_json_readings_are_errors(plain):
    with pytest.raises(ValueError, match="is not a reading"):
        reading_from_json(plain)


def test_every_cause_has_an_explanation():
    assert set(EXPLANATIONS) == set(Cause)
