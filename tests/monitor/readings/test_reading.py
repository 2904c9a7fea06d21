"""Single readings and their JSON form."""

import pytest
from hypothesis import given
from reading_kit import READINGS

from planner.monitor.readings.reading import EXPLANATIONS, Cause, reading_from_json, reading_to_json


@given(READINGS)
def test_a_reading_survives_being_written(reading):
    assert reading_from_json(reading_to_json(reading)) == reading


@pytest.mark.parametrize("plain", ["no-such-cause", [], [1, 2], ["x"], True, [True], None, {}])
def test_what_is_no_reading_is_refused(plain):
    with pytest.raises(ValueError, match="is not a reading"):
        reading_from_json(plain)


def test_every_cause_has_its_words():
    assert set(EXPLANATIONS) == set(Cause)
