"""Clock event reasons."""

from planner.monitor.readings.clock_reasons import CLOCK_REASONS, slowing_reasons


def test_the_power_limit_of_an_idle_card_does_not_slow_it():
    assert slowing_reasons(0x4, 0.0) == ()
    assert [reason.name for reason in slowing_reasons(0x4, 0.5)] == ["power-cap"]
    assert [reason.name for reason in slowing_reasons(0x4, None)] == ["power-cap"]
    assert [reason.name for reason in slowing_reasons(0x1 | 0x40 | 0x100, 0.0)] == ["hardware-thermal"]
    assert len({reason.bit for reason in CLOCK_REASONS}) == len(CLOCK_REASONS)
