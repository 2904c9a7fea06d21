"""What raises an alert is declared once."""

from planner.monitor.settings import AlertRules
from planner.present.monitor.alert_options import ALERT_OPTIONS


def test_each_rule_is_asked_for_once_and_thresholds_are_within_their_bounds():
    asked = {option.field for option in ALERT_OPTIONS}
    assert asked == AlertRules.model_fields.keys() - {"is_on", "hold_seconds"}
    assert len({option.name for option in ALERT_OPTIONS}) == len(ALERT_OPTIONS)
    for option in ALERT_OPTIONS:
        assert isinstance(getattr(AlertRules(), option.field), bool) == (not option.unit)
        for value in (option.usual, option.most) if option.unit else ():
            assert getattr(AlertRules().evolve(**{option.field: value}), option.field) == value
    assert {option.name: option.scale for option in ALERT_OPTIONS if option.unit} == {
        "temperature": 1.0,
        "memory": 0.01,
        "idle": 1.0,
    }
