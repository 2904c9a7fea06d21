"""Data of the plot of latencies over the rate of requests."""

from dataclasses import dataclass
from typing import Final

from planner.present.serving.simulation import rate_columns
from planner.serving.result import RatePoint
from planner.serving.targets import Latency

LATENCIES: Final[tuple[Latency, ...]] = ("ttft", "tpot", "e2e")
"""Latencies that can be drawn."""
COLUMNS: Final = rate_columns(LATENCIES)
"""Columns of the points as a table."""


@dataclass(frozen=True, slots=True)
class RateCurve:
    """Points of a service over the rate of requests, with the latency that is drawn, its target and the plan's rate."""

    points: tuple[RatePoint, ...]
    latency: Latency
    percent: float
    target_seconds: float | None
    planned_rate: float | None

    def seconds(self, point: RatePoint, percent: float) -> float | None:
        """Return a percentile of the drawn latency at a point."""
        table = point.simulation.latency(self.latency)
        return None if table is None else table.percentile(percent).seconds

    def nearest(self, rate: float) -> RatePoint | None:
        """Return the point with the rate nearest to `rate`."""
        return min(self.points, key=lambda point: abs(point.requests_per_second - rate), default=None)

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the header and a row for each point."""
        return (
            tuple(column.header for column in COLUMNS),
            *(tuple(column.text(point) for column in COLUMNS) for point in self.points),
        )
