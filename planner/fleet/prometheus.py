"""Queries to a Prometheus, or to what has its HTTP API: Thanos, Mimir, VictoriaMetrics, a proxy of Grafana."""

import math
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from planner.base import Stop
from planner.fleet.answers import Answer, read_answer, read_build
from planner.fleet.connection import FleetConnection

MOST_POINTS: Final = 11_000
"""Most points of a series in an answer: Prometheus refuses more (`web/api/v1/api.go`)."""
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_RATE_SCRAPES: Final = 4
_LEAST_RATE_SECONDS: Final = 60.0


class Prometheus:
    """Client of one server; each request is a POST with a form, which has no limit of length.

    `environment` holds the secret if the connection says so; `stop` tells whether the request was cancelled.
    """

    def __init__(
        self,
        connection: FleetConnection,
        environment: Mapping[str, str],
        stop: Stop = lambda: False,
    ) -> None:
        self._base = connection.url.rstrip("/").removesuffix("/api/v1")
        self._host = connection.address
        self._client = connection.client(environment, stop)

    def query(self, text: str) -> Answer:
        """Return the value of a query now, by the server's clock.

        Raises:
            NetworkError: If the server cannot be reached or does not answer as Prometheus does.
            PlannerError: If the server refuses the query.
        """
        return self._ask("query", {"query": text})

    def query_range(self, text: str, start: float, end: float, step: int) -> Answer:
        """Return the values of a query from `start` to `end` (seconds since 1970) every `step` seconds.

        Both ends are moved to multiples of the step, so that repeated queries ask for the same points.

        Raises:
            NetworkError: If the server cannot be reached or does not answer as Prometheus does.
            PlannerError: If the server refuses the query.
        """
        first, last = math.floor(start / step) * step, math.ceil(end / step) * step
        return self._ask("query_range", {"query": text, "start": first, "end": last, "step": step})

    def version(self) -> str:
        """Return the server's version, empty if it does not tell.

        Raises:
            NetworkError: If the server cannot be reached.
        """
        return read_build(self._client.send(f"{self._base}/api/v1/status/buildinfo"))

    def _ask(self, endpoint: str, form: Mapping[str, object]) -> Answer:
        reply = self._client.send(f"{self._base}/api/v1/{endpoint}", urlencode(form).encode())
        return read_answer(reply, self._host)


def range_step(seconds: float, pixels: int, scrape_seconds: float) -> int:
    """Return the step in seconds of a range query for a plot `pixels` wide: a round number, within the limit of points.

    **Formula** the first round number that is at least the scrape interval, seconds ÷ pixels and seconds ÷ 11,000.
    """
    least = max(scrape_seconds, seconds / max(pixels, 1), seconds / (MOST_POINTS - 2))
    return next((step for step in _STEPS if step >= least), math.ceil(least / 86_400) * 86_400)


def rate_seconds(scrape_seconds: float, step: float = 0.0) -> int:
    """Return the length of the window of a rate in seconds: four scrapes, so that one may fail, or a step."""
    return math.ceil(max(_RATE_SCRAPES * scrape_seconds, _LEAST_RATE_SECONDS, step))


def names_selector(names: Sequence[str], labels: Mapping[str, str] | None = None) -> str:
    """Return the selector of several metrics, whose series have these labels: one request for all of them."""
    matchers = [f'__name__=~"{"|".join(sorted(names))}"']
    matchers += [f"{name}={_quoted(value)}" for name, value in (labels or {}).items()]
    return f"{{{','.join(matchers)}}}"


NAME_LABEL: Final = "gpu_planner_metric"
"""Label that keeps the name of a metric, which functions of Prometheus drop."""


def function_of_each(
    function: str, names: Sequence[str], seconds: int = 0, labels: Mapping[str, str] | None = None
) -> str:
    """Return a query of a function of each metric, joined: series of several would be the same without their names."""
    chosen = ",".join(f"{name}={_quoted(value)}" for name, value in (labels or {}).items())
    window = f"[{seconds}s]" if seconds else ""
    return " or ".join(_named(f"{function}({name}{{{chosen}}}{window})", name) for name in names)


def over_last_day(function: str, limits: Mapping[str, float | None], seconds: int, step: int) -> str:
    """Return a query of a function over the values that metrics had every `step` seconds, joined.

    Of a metric with a limit, the value is 1 while it was lower, else 0.
    """
    values = {
        name: f"{name}{{}}" if limit is None else f"({name}{{}} < bool {limit:g})" for name, limit in limits.items()
    }
    return " or ".join(_named(f"{function}({value}[{seconds}s:{step}s])", name) for name, value in values.items())


def _named(query: str, name: str) -> str:
    return f'label_replace({query},"{NAME_LABEL}","{name}","","")'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
