"""The last 24 hours of a fleet's GPUs at a Prometheus: the energy that they used, and how long they were idle."""

from typing import Final, NamedTuple

from planner.fleet.cards import card_key, metric_rows
from planner.fleet.prometheus import NAME_LABEL, Prometheus, over_last_day
from planner.monitor.diagnosis.rule import IDLE
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.units import SECONDS_PER_DAY

_STEP_SECONDS: Final = 60
_STEPS: Final = SECONDS_PER_DAY // _STEP_SECONDS


class CardDay(NamedTuple):
    """A GPU's energy in the last 24 hours, for which share of them its power is held, and its idle time if known."""

    joules: float
    held_fraction: float
    idle_seconds: float | None = None


def read_last_day(server: Prometheus, names: tuple[str, ...]) -> dict[str, CardDay]:
    """Return what the server holds of the last 24 hours, by the GPU's key; `names` are the metrics that it has.

    **Formula** The energy is the sum of the power at each minute × 60 s. Idle are the minutes with a utilization below
    that of the diagnosis.

    **Assumes** that of minutes that several series of a GPU hold, such as those of two servers, each has the mean of
    them: a GPU has another series for each pod.

    Raises:
        NetworkError: If the server cannot be reached or does not answer as Prometheus does.
        PlannerError: If it refuses a query, as when there are too many samples.
    """
    idle = _minutes(server, names, "utilization_fraction", IDLE.threshold)
    return {
        key: CardDay(
            watts * minutes * _STEP_SECONDS,
            minutes / _STEPS,
            idle[key].mean * idle[key].number * _STEP_SECONDS if key in idle else None,
        )
        for key, (watts, minutes) in _minutes(server, names, "power_watts").items()
    }


class _Minutes(NamedTuple):
    """Mean of a quantity over the minutes that are held, or the share of them in which it is low; their number."""

    mean: float
    number: float


def _minutes(
    server: Prometheus, names: tuple[str, ...], quantity: str, below: float | None = None
) -> dict[str, _Minutes]:
    """Return the minutes of a quantity by the GPU's key; of those in which it is `below`, if that is given."""
    rows = [
        (name, row)
        for name in names
        for row in metric_rows(name)
        if row.metric.ours == quantity and row.metric.use == "value"
    ]
    sums: dict[tuple[str, int], list[float]] = {}
    limits = {name: None if below is None else below / row.metric.scale for name, row in rows}
    for place, function in enumerate(("sum_over_time", "count_over_time") if rows else ()):
        query = over_last_day(function, limits, SECONDS_PER_DAY, _STEP_SECONDS)
        for one in server.query(query).series:
            for name, row in rows:
                if one.labels.get(NAME_LABEL) == name and one.values and row.is_of(one.labels):
                    key = card_key(row.exporter, one.labels), row.rank
                    value = one.values[-1][1] * (row.metric.scale if place == 0 and below is None else 1)
                    sums.setdefault(key, [0.0, 0.0])[place] += value
    found: dict[str, _Minutes] = {}
    # Of two metrics that state the same, the first one in the table counts.
    for (card, _), (total, number) in sorted(sums.items(), key=lambda one: one[0][1]):
        if number and not checked_reading(BY_NAME[quantity], total / number).is_implausible:
            found.setdefault(card, _Minutes(total / number, min(number, _STEPS)))
    return found
