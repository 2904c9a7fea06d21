"""The past of one GPU of a fleet, from range queries, as the history that the plots of the local monitor draw."""

from collections.abc import Mapping
from typing import Final

from planner.fleet.cards import FleetCard, metric_rows, read_cards
from planner.fleet.prometheus import NAME_LABEL, function_of_each, names_selector, range_step, rate_seconds
from planner.fleet.sources import PrometheusSource
from planner.monitor.history import History
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample
from planner.parsing.metrics import MetricSample

_ANY_READING: Final = missing(Cause.NO_ANSWER)


def gpu_history(
    source: PrometheusSource, card: FleetCard, end: float, seconds: float, pixels: int, scrape_seconds: float
) -> History:
    """Return the readings of a GPU in the `seconds` before `end` (since 1970), about one for each of `pixels`.

    Times without a reading are gaps, never 0. Counters are shown by their rate.

    Raises:
        NetworkError: If the server cannot be reached or does not answer as Prometheus does.
        PlannerError: If the server refuses the query.
    """
    values, rates = (_of_exporter(names, card) for names in source.names)
    step = range_step(seconds, pixels, scrape_seconds)
    span = (end - seconds, end, step)
    rounds: dict[float, tuple[list[MetricSample], list[MetricSample]]] = {}
    queries = [(0, names_selector(values, card.selector))] if values else []
    if rates:
        queries.append((1, function_of_each("rate", rates, rate_seconds(scrape_seconds, step), card.selector)))
    for place, query in queries:
        for series in source.server.query_range(query, *span).series:
            name = series.labels.get("__name__") or series.labels.get(NAME_LABEL, "")
            for at, value in series.values:
                rounds.setdefault(at, ([], []))[place].append(MetricSample(name, series.labels, value))
    history = History(seconds + 2 * step, step)
    history.note(Inventory(devices=(card.device,)))
    at = (end - seconds) // step * step
    while at <= end:
        plain, growing = rounds.get(at, ((), ()))
        readings = read_cards(plain, growing).cards
        history.note(Sample(at, at, {card.device.uuid: _readings(readings.get(card.key))}))
        at += step
    return history


def _readings(card: FleetCard | None) -> Mapping[str, Reading]:
    return {"utilization_fraction": _ANY_READING} if card is None else card.readings


def _of_exporter(names: tuple[str, ...], card: FleetCard) -> tuple[str, ...]:
    return tuple(name for name in names if any(row.exporter.key == card.exporter for row in metric_rows(name)))
