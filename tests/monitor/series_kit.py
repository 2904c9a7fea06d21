"""Series of readings for tests of histories."""

from planner.monitor.series import Series


def series_of(values: list[float], step: float = 1.0, seconds: float = 1e6) -> Series:
    """Return a series that begins at time 0."""
    series = Series(seconds)
    for number, value in enumerate(values):
        series.append(number * step, value)
    return series
