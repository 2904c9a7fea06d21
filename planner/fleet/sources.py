"""Sources of a fleet: a Prometheus that is polled for all GPUs at once, or exporters that are scraped one by one."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, Protocol

from planner.base import Stop
from planner.errors import PlannerError
from planner.fleet.answers import Answer, AnswerSeries, scrape_content
from planner.fleet.cards import card_key, host_of_address, metric_rows
from planner.fleet.connection import FleetConnection
from planner.fleet.exporters import EXPORTERS, HOST_QUERIES, Exporter, FleetMetric
from planner.fleet.prometheus import (
    NAME_LABEL,
    Prometheus,
    function_of_each,
    names_selector,
    rate_seconds,
)
from planner.monitor.readings.metrics import BY_NAME, DEVICE_METRICS, HOST_BY_NAME, checked_reading
from planner.monitor.readings.reading import Reading
from planner.parsing.metrics import MetricSample, parse_prometheus
from planner.serving_runs.metrics import METRICS
from planner.storage import UnreadableFileError, read_regular
from planner.units import MIB

_KNOWN: Final = tuple(metric.name for exporter in EXPORTERS for metric in exporter.metrics)
_PREFIXED: Final = tuple(metric.name for exporter in EXPORTERS if exporter.prefixed for metric in exporter.metrics)
_PLAIN_ENGINE: Final = tuple(dict.fromkeys(metric.name for metric in METRICS if metric.kind in ("gauge", "label")))
_GROWING_ENGINE: Final = tuple(
    f"{metric.name}{ending}"
    for metric in METRICS
    if metric.kind in ("histogram", "counter")
    for ending in (("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",))
)
_NODE: Final = "node_memory_MemTotal_bytes"
_SKEW_SECONDS: Final = 5.0
_POLLS_PER_DISCOVERY: Final = 40
_POLLS_PER_WHOLE: Final = 4
"""Polls of which one reads the quantities that change slowly too, as the local monitor does."""
_USUAL_SCRAPE_SECONDS: Final = 15.0
_SCRAPES_SECONDS: Final = 600
"""Time in which the scrapes of one series tell how often it is scraped."""
_MOST_SCRAPE_BYTES: Final = 64 * MIB
_SCRAPERS: Final = 16
SERVING_SECONDS: Final = 300
"""Time over which the servers' latencies and tokens are counted."""


class Poll(NamedTuple):
    """Answer of a source at `at` (seconds since 1970 by its clock).

    `seen` is when a GPU was last read, by its key; of the others it is `at`. `growth` are the servers' counters over
    `growth_seconds`, `gauges` their values now. `notes` say what is unusual, such as a part that is missing.
    """

    at: float
    interval_seconds: float
    samples: Sequence[MetricSample]
    rates: Sequence[MetricSample] = ()
    seen: Mapping[str, float] = {}
    hosts: Mapping[str, Mapping[str, Reading]] = {}
    is_whole: bool = True
    """Whether every quantity was read; else those that change slowly keep their last reading."""
    gauges: Sequence[MetricSample] = ()
    growth: Sequence[MetricSample] = ()
    growth_seconds: float = 0.0
    notes: tuple[str, ...] = ()


class FleetSource(Protocol):
    """A source of the readings of a fleet."""

    @property
    def title(self) -> str:
        """Return the name of the source for messages."""

    def poll(self) -> Poll:
        """Return the latest samples of all GPUs."""


class _Discovery(NamedTuple):
    """Contents of a Prometheus: the metrics by whether they are values or rates, and the scrape interval."""

    values: tuple[str, ...]
    fast: tuple[str, ...]
    rates: tuple[str, ...]
    alive: tuple[str, ...]
    plain_engine: tuple[str, ...]
    growing_engine: tuple[str, ...]
    has_hosts: bool
    scrape_seconds: float


class PrometheusSource:
    """The GPUs that a Prometheus knows, in three requests a poll, however many there are.

    Which exporters it scrapes, and how often, is found at the first poll and again from time to time. `clock` is this
    machine's, to notice that the server's differs.
    """

    def __init__(self, server: Prometheus, address: str, clock: Callable[[], float] = time.time) -> None:
        self.server, self.title, self._clock = server, address, clock
        self._found: _Discovery | None = None
        self._polls = 0

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the metrics of GPUs that the server has: those of values, and those of which a rate counts."""
        return (self._found.values, self._found.rates) if self._found else ((), ())

    def poll(self) -> Poll:
        """Return the latest samples of all GPUs, hosts and inference servers.

        Raises:
            NetworkError: If the server cannot be reached or does not answer as Prometheus does.
            PlannerError: If it refuses a query, or has no metrics of GPUs.
        """
        if self._found is None or self._polls % _POLLS_PER_DISCOVERY == 0:
            self._found = self._discover()
        is_whole = self._polls % _POLLS_PER_WHOLE == 0
        self._polls += 1
        found = self._found
        asked = self._clock()
        values = self.server.query(names_selector(found.values if is_whole else found.fast))
        answered = self._clock()
        window = rate_seconds(found.scrape_seconds)
        rates = self.server.query(function_of_each("rate", found.rates, window)) if found.rates else Answer(())
        seen = self.server.query(function_of_each("timestamp", found.alive))
        at = values.series[0].values[-1][0] if values.series else self._clock()
        gauges = self.server.query(names_selector(found.plain_engine)) if found.plain_engine else Answer(())
        growth = (
            self.server.query(function_of_each("increase", found.growing_engine, SERVING_SECONDS))
            if found.growing_engine
            else Answer(())
        )
        return Poll(
            at,
            found.scrape_seconds,
            _labelled(values.series),
            _labelled(rates.series),
            _last_seen(_labelled(seen.series), at),
            self._hosts(window) if found.has_hosts else {},
            is_whole,
            _labelled(gauges.series),
            _labelled(growth.series),
            float(SERVING_SECONDS),
            (*_notes(at, asked, answered, found), *dict.fromkeys((*values.warnings, *rates.warnings, *seen.warnings))),
        )

    def _discover(self) -> _Discovery:
        known = (*_KNOWN, *(f"[a-z][a-z0-9]*_{name}" for name in _PREFIXED), *_PLAIN_ENGINE, *_GROWING_ENGINE, _NODE)
        counts = self.server.query(f"count by (__name__) ({names_selector(known)})").series
        number = {one.labels["__name__"]: one.values[-1][1] for one in counts if "__name__" in one.labels}
        cards = {name: metric_rows(name) for name in sorted(number) if metric_rows(name)}
        alive = _alive_names(number)
        if not alive:
            titles = ", ".join(exporter.title for exporter in EXPORTERS)
            raise PlannerError(
                f"{self.title} has no metrics of GPUs now",
                f"Known exporters: {titles}. Check in its Targets page that one is scraped and up.",
            )
        return _Discovery(
            tuple(name for name, rows in cards.items() if any(row.metric.use != "rate" for row in rows)),
            tuple(name for name, rows in cards.items() if any(_is_fast(row.metric) for row in rows)),
            tuple(name for name, rows in cards.items() if any(row.metric.use == "rate" for row in rows)),
            alive,
            tuple(name for name in _PLAIN_ENGINE if name in number),
            tuple(name for name in _GROWING_ENGINE if name in number),
            _NODE in number,
            max(map(self._scrape_seconds, alive)),
        )

    def _scrape_seconds(self, name: str) -> float:
        """Return the usual time between two scrapes of a metric, from those of its first series."""
        first = self.server.query(f"topk(1, {name})").series
        if not first:
            return _USUAL_SCRAPE_SECONDS
        labels = {label: text for label, text in first[0].labels.items() if label != "__name__"}
        scrapes = self.server.query(f"{names_selector((name,), labels)}[{_SCRAPES_SECONDS}s]").series
        times = [at for at, _ in scrapes[0].values] if scrapes else []
        return median(after - before for before, after in pairwise(times)) if len(times) > 1 else _USUAL_SCRAPE_SECONDS

    def _hosts(self, window: int) -> dict[str, dict[str, Reading]]:
        hosts: dict[str, dict[str, Reading]] = {}
        for name, query in HOST_QUERIES.items():
            for one in self.server.query(query.format(range=f"{window}s")).series:
                host = host_of_address(one.labels.get("instance", ""))
                hosts.setdefault(host, {})[name] = checked_reading(HOST_BY_NAME[name], one.values[-1][1])
        return hosts


class ScrapeSource:
    """Exporters that are read directly, or saved scrapes; rates come from two scrapes in a row."""

    def __init__(
        self,
        connections: Sequence[FleetConnection],
        environment: Mapping[str, str],
        stop: Stop = lambda: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.title = ", ".join(connection.address for connection in connections)
        self._is_over = False
        self._readers = [_reader(each, environment, lambda: self._is_over or stop()) for each in connections]
        self._clock = clock
        self._before: dict[tuple[str, str], tuple[float, float]] = {}
        self._at: float | None = None

    def poll(self) -> Poll:
        """Return a scrape of each exporter; the GPUs of one that does not answer are silent, and a note says why.

        Raises:
            PlannerError: If none of them can be read, with the reason of the first.
        """
        at = self._clock()
        with ThreadPoolExecutor(_SCRAPERS, thread_name_prefix="scrape") as pool:
            try:
                scrapes = list(pool.map(_attempt, self._readers))
            except KeyboardInterrupt:
                self._is_over = True  # or leaving would wait for what does not answer
                raise
        failures = [scrape for scrape in scrapes if isinstance(scrape, PlannerError)]
        samples = [sample for scrape in scrapes if not isinstance(scrape, PlannerError) for sample in scrape]
        if failures and len(failures) == len(scrapes):
            raise failures[0]
        before, self._at = self._at, at
        rates = self._rates(samples, at)
        return Poll(
            at,
            _USUAL_SCRAPE_SECONDS if before is None else max(at - before, 1.0),
            samples,
            rates,
            gauges=samples,
            notes=tuple(f"{failure.message[:1].upper()}{failure.message[1:]}." for failure in failures),
        )

    def _rates(self, samples: Iterable[MetricSample], at: float) -> list[MetricSample]:
        """Return the increase per second of each counter since the last scrape; a counter that fell was reset."""
        rates, now = [], dict[tuple[str, str], tuple[float, float]]()
        for name, labels, value in samples:
            if not any(row.metric.use == "rate" for row in metric_rows(name)):
                continue
            series = (name, str(sorted(labels.items())))
            now[series] = at, value
            if series in self._before:
                then, before = self._before[series]
                grown = value - before if value >= before else value
                rates.append(MetricSample(name, labels, grown / max(at - then, 1e-3)))
        self._before = now
        return rates


def _notes(at: float, asked: float, answered: float, found: _Discovery) -> list[str]:
    """Return notes on a clock that differs, beyond the time that the answer took, and on rare scrapes."""
    notes = []
    ahead, behind = at - answered, asked - at
    if max(ahead, behind) > _SKEW_SECONDS:
        side = "ahead of" if ahead > 0 else "behind"
        notes.append(f"The server's clock is {max(ahead, behind):,.0f} s {side} this machine's; its times are used.")
    if found.scrape_seconds > 2 * _USUAL_SCRAPE_SECONDS:
        notes.append(f"GPUs are scraped every {found.scrape_seconds:.0f} s; shorter events are not visible.")
    return notes


def _reader(
    connection: FleetConnection, environment: Mapping[str, str], stop: Stop
) -> Callable[[], list[MetricSample]]:
    if connection.is_remote:
        client = connection.client(environment, stop)
        return partial(_scrape, connection, lambda: scrape_content(client.send(connection.url), connection.address))
    return partial(_scrape, connection, lambda: read_regular(Path(connection.url), "scrape", _MOST_SCRAPE_BYTES))


def _scrape(connection: FleetConnection, read: Callable[[], bytes]) -> list[MetricSample]:
    try:
        samples = parse_prometheus(read())
    except UnreadableFileError as error:
        hint = "Check the path of the file, or begin the address of a server with http:// or https://."
        raise PlannerError(f"{connection.url} {error.reason}", hint) from error
    instance = {"instance": connection.address}
    return [sample._replace(labels={**instance, **_renamed(sample.labels), **instance}) for sample in samples]


def _renamed(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return labels with an own `instance` renamed, as Prometheus does."""
    if "instance" not in labels:
        return labels
    return {**labels, "exported_instance": labels["instance"]}


def _attempt(read: Callable[[], list[MetricSample]]) -> list[MetricSample] | PlannerError:
    try:
        return read()
    except PlannerError as error:
        return error


def _labelled(series: Iterable[AnswerSeries]) -> list[MetricSample]:
    return [
        MetricSample(one.labels.get("__name__") or one.labels.get(NAME_LABEL, ""), one.labels, one.values[-1][1])
        for one in series
    ]


def _is_fast(metric: FleetMetric) -> bool:
    """Return whether a metric is read at every poll: what changes fast, the use of MIG instances, and errors."""
    known = BY_NAME.get(metric.ours)
    is_followed = metric.ours in ("xid", "graphics_active_fraction") or (
        known is not None and known.cadence == "fast" and known in DEVICE_METRICS
    )
    return is_followed and metric.use != "rate"


def _alive_names(number: Mapping[str, float]) -> tuple[str, ...]:
    """Return for each exporter the metric that most of its GPUs have, with the prefix that the site gave it."""
    names = []
    for exporter in EXPORTERS:
        found = [name for name in number if _is_alive(name, exporter)]
        if found:
            names.append(max(found, key=lambda name: number[name]))
    return tuple(names)


def _is_alive(name: str, exporter: Exporter) -> bool:
    return any(row.exporter is exporter and row.metric.name in exporter.alive for row in metric_rows(name))


def _last_seen(samples: Iterable[MetricSample], now: float) -> dict[str, float]:
    """Return when each GPU was last read, by its key: no later than `now`, and of what is no number long ago."""
    seen: dict[str, float] = {}
    for name, labels, at in samples:
        for row in metric_rows(name):
            key = card_key(row.exporter, labels)
            seen[key] = min(max(seen.get(key, 0.0), at), now)
    return seen


def open_source(
    connections: Sequence[FleetConnection],
    environment: Mapping[str, str],
    stop: Stop = lambda: False,
) -> "PrometheusSource | ScrapeSource":
    """Return the source at these addresses: one Prometheus, or exporters and saved scrapes.

    Raises:
        PlannerError: If an address, a secret or a file is wrong, or several addresses are not all of exporters.
    """
    if all(connection.is_scrape for connection in connections):
        return ScrapeSource(connections, environment, stop)
    if len(connections) > 1:
        raise PlannerError(
            "several addresses must all be of exporters",
            "Give one Prometheus, or addresses that end in /metrics.",
        )
    connection = connections[0]
    return PrometheusSource(Prometheus(connection, environment, stop), connection.address)
