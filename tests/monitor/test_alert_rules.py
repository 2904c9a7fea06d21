"""Settings of alerts: defaults and valid ranges."""

import pytest

from planner.errors import SpecError
from planner.monitor.settings import AlertRules


def test_alerts_are_off_by_default_with_thresholds_for_heat_and_full_memory():
    rules = AlertRules()
    assert (rules.is_on, rules.temperature_celsius, rules.memory_fraction, rules.idle_minutes) == (
        False,
        90.0,
        0.95,
        None,
    )


@pytest.mark.parametrize("field", ["temperature_celsius", "memory_fraction", "idle_minutes", "hold_seconds"])
def test_a_threshold_out_of_range_is_an_error(field):
    with pytest.raises(SpecError, match=field):
        AlertRules(**{field: -1})


def test_stored_rules_are_read_back():
    rules = AlertRules(is_on=True, temperature_celsius=None, memory_fraction=1, idle_minutes=15)
    assert AlertRules.model_validate_json(rules.model_dump_json()) == rules
