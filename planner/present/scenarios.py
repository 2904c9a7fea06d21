"""Two plans' time and cost side by side."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.cost.estimate import CostEstimate
from planner.present import format as fmt
from planner.present.money import hours_phrase

_NONE: Final = "–"


class ScenarioRow(NamedTuple):
    """A figure of both plans, as text; one that a plan does not have is a dash."""

    title: str
    first: str
    second: str


def scenario_rows(first: CostEstimate, second: CostEstimate) -> tuple[ScenarioRow, ...]:
    """Return the figures of both that at least one has."""
    rows = (
        ScenarioRow(title, one, other)
        for (title, one), (_, other) in zip(_figures(first), _figures(second), strict=True)
    )
    return tuple(row for row in rows if (row.first, row.second) != (_NONE, _NONE))


def _figures(estimate: CostEstimate) -> Iterator[tuple[str, str]]:
    result, period = estimate.result, estimate.demand.period
    rent, own, answer, found = result.rent, result.own, result.answer, result.break_even
    yield "Time of a run", hours_phrase(estimate) or _NONE
    yield "Hours of work, a month", _of(estimate.demand.busy_hours) if period == "month" else _NONE
    yield "Cards at once", fmt.integer(own.count) if own else _NONE
    yield "Rented at", rent.provider if rent else _NONE
    yield "Rented, a run or month", fmt.money(rent.usd) if rent else _NONE
    yield "Rented, a GPU-hour", fmt.money(rent.usd_per_gpu_hour) if rent else _NONE
    yield "Owned, at the start", fmt.money(own.upfront_usd) if own else _NONE
    yield "Owned, each month", fmt.money(own.monthly_cash_usd) if own else _NONE
    yield "Owned, a run or month", fmt.money(own.usd_per_period) if own else _NONE
    yield "Owned, a GPU-hour", fmt.money(own.usd_per_gpu_hour) if own else _NONE
    yield "Break-even, GPU-hours", _of(found.gpu_hours) if found and found.gpu_hours else _NONE
    yield "Cheaper", answer.decision if answer else _NONE
    yield "Saves over the horizon", fmt.money(answer.saves_usd) if answer else _NONE


def _of(hours: float) -> str:
    return fmt.significant(hours)
