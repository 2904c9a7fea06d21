"""Comparisons of renting with owning, and of two plans' costs, figure by figure."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from planner.cost.estimate import CostEstimate
from planner.cost.result import Footprint, MoneyTerm, OwnCost, RentCost
from planner.performance.result import TimeResult
from planner.present import format as fmt
from planner.present.cost.decision import decision_title
from planner.present.cost.prices import RENT_MODE_TITLES
from planner.present.cost.summary import is_bought_for_one_run, running_period, years_phrase
from planner.present.cost.time import pace_phrase

NOT_KNOWN = "unknown"
_NOTHING = "–"
_PER_PERIOD = ("Hours", "Rented", "Owned", "Electricity, kWh", "Carbon, kg CO₂")
"""Figures of a plan's run or month."""


class FigureCell(NamedTuple):
    """A figure with its source and date."""

    text: str
    origin: str = ""


class FigureRow(NamedTuple):
    """One figure for each of the compared alternatives."""

    title: str
    cells: tuple[FigureCell, ...]


class ComparedPlan(NamedTuple):
    """The time and cost of one of two compared plans."""

    time: TimeResult | None
    estimate: CostEstimate | None


def rent_or_buy_rows(estimate: CostEstimate) -> tuple[FigureRow, ...]:
    """Return the costs of renting and of owning, a row for each figure: a run or month, an hour, energy, carbon."""
    return tuple(filter(_has_figures, _rent_and_own_rows(estimate)))


def scenario_rows(mine: ComparedPlan, other: ComparedPlan) -> tuple[FigureRow, ...]:
    """Return the figures of two plans, with the difference if both have the figure, of the same period."""
    rows = (
        ("Decision", _decision, None),
        ("Hours", _hours, fmt.significant),
        ("Rented", _rent_figure_reader(lambda rent: rent.usd), fmt.money),
        ("Owned", _own_figure_reader(lambda own: own.usd_per_period), fmt.money),
        ("Rented, per GPU-hour", _rent_figure_reader(lambda rent: rent.usd_per_gpu_hour), fmt.money),
        ("Owned, per GPU-hour", _lasting_usd_per_gpu_hour, fmt.money),
        ("Upfront", _own_figure_reader(lambda own: own.upfront_usd), fmt.money),
        ("Break-even, GPU-hours", _break_even, lambda hours: fmt.integer(round(hours))),
        (
            "Electricity, kWh",
            _rent_figure_reader(lambda rent: rent.carbon.energy_kwh if rent.carbon else None),
            fmt.significant,
        ),
        (
            "Carbon, kg CO₂",
            _rent_figure_reader(lambda rent: rent.carbon.carbon_kg if rent.carbon else None),
            fmt.significant,
        ),
    )
    periods = tuple(one.estimate.demand.period if one.estimate else "" for one in (mine, other))
    compared = (_two_plan_row(title, get(mine), get(other), show) for title, get, show in rows)
    decision, *found = (_of_periods(row, periods) if row.title in _PER_PERIOD else row for row in compared)
    return tuple(filter(_has_figures, (decision, _pace_row(mine.time, other.time), *found)))


def _has_figures(row: FigureRow) -> bool:
    return any(cell.text not in ("", _NOTHING) for cell in row.cells)


def _rent_and_own_rows(estimate: CostEstimate) -> Iterator[FigureRow]:
    rent, own, period = estimate.result.rent, estimate.result.own, estimate.demand.period
    resale = ", net of resale" if own is not None and own.upfront else ""
    kept = "" if estimate.case is None else years_phrase(estimate.case.horizon_years)
    rented = _origin(rent.terms) if rent else ""
    owned = _origin((*own.upfront, *own.monthly)) if own else ""
    where = (
        f"{rent.provider}, {RENT_MODE_TITLES[rent.mode]}, {rent.region or 'unknown region'}\n{rented}" if rent else ""
    )

    def row(title: str, renting: str | None, owning: str | None) -> FigureRow:
        return FigureRow(title, (FigureCell(renting or _NOTHING, where), FigureCell(owning or _NOTHING, owned)))

    yield row(
        f"Per {period}{resale}",
        fmt.money(rent.usd) if rent else NOT_KNOWN,
        fmt.money(own.usd_per_period) if own else NOT_KNOWN,
    )
    lasting = None if own is None or is_bought_for_one_run(own, estimate.demand) else own
    yield row(
        f"Per GPU-hour{resale}",
        fmt.money(rent.usd_per_gpu_hour) if rent else None,
        fmt.money(lasting.usd_per_gpu_hour) if lasting else None,
    )
    # Only of a service, each of whose requests has a prompt that is not counted.
    tokens = "tokens" if estimate.demand.peak_wait_seconds is None else "output tokens"
    yield row(
        f"Per million {tokens}{resale}",
        _usd_per_tokens_text(rent.usd_per_million_tokens) if rent else None,
        _usd_per_tokens_text(lasting.usd_per_million_tokens) if lasting else None,
    )
    running = running_period(estimate.demand)
    if own is not None:
        paid = own.monthly_cash_usd + (own.loan_usd_per_month if running == "month" else 0.0)
        yield row("Upfront", None, fmt.money(own.upfront_usd) if own.upfront else None)
        yield row(f"Ongoing, per {running}", None, fmt.money(paid))
        yield row(f"Resale value after {kept}", None, fmt.money(own.resale_usd) if own.upfront else None)
    yield from _footprint_rows(rent.carbon if rent else None, own.carbon if own else None, (period, running))


def _footprint_rows(rented: Footprint | None, owned: Footprint | None, periods: tuple[str, str]) -> Iterator[FigureRow]:
    if rented is None and owned is None:
        return
    pairs = zip((rented, owned), periods, strict=True)
    texts = [(_energy_text(one, period), _carbon_text(one, period)) for one, period in pairs]
    for title, at in (("Electricity", 0), ("Carbon", 1)):
        cells = (FigureCell(pair[at], _grid_origin(one)) for pair, one in zip(texts, (rented, owned), strict=True))
        yield FigureRow(title, tuple(cells))


def _energy_text(found: Footprint | None, period: str) -> str:
    return NOT_KNOWN if found is None else f"{fmt.significant(found.energy_kwh)}{fmt.THIN}kWh per {period}"


def _carbon_text(found: Footprint | None, period: str) -> str:
    if found is None or found.carbon_kg is None:
        return NOT_KNOWN
    return f"{fmt.significant(found.carbon_kg)}{fmt.THIN}kg CO₂ per {period}"


def _grid_origin(found: Footprint | None) -> str:
    if found is None:
        return "the location of the rented machines is unknown"
    grams = found.grams_per_kwh
    carbon = "" if grams is None else f"{fmt.plain(grams.value)} g CO₂ per kWh: {grams.source}, {fmt.date(grams.date)}"
    cooling = f"PUE {fmt.plain(found.pue.value)}: {found.pue.source}"
    return "\n".join(part for part in (found.region, cooling, carbon, *found.notes) if part)


def _usd_per_tokens_text(usd: float | None) -> str | None:
    return None if usd is None else fmt.money(usd)


def _origin(terms: tuple[MoneyTerm, ...]) -> str:
    lines = (f"{fmt.date(term.date, fmt.NO_DATE)}: {term.source}" for term in terms)
    return "\n".join(dict.fromkeys(lines))


def _two_plan_row(
    title: str, mine: float | str | None, other: float | str | None, show: Callable[[float], str] | None
) -> FigureRow:
    if show is None or isinstance(mine, str) or isinstance(other, str):
        return FigureRow(title, (FigureCell(str(mine or _NOTHING)), FigureCell(str(other or _NOTHING)), FigureCell("")))
    texts = [_NOTHING if value is None else show(value) for value in (mine, other)]
    difference = "" if mine is None or other is None else _signed_text(mine - other, show)
    return FigureRow(title, (FigureCell(texts[0]), FigureCell(texts[1]), FigureCell(difference)))


def _of_periods(row: FigureRow, periods: tuple[str, ...]) -> FigureRow:
    """Say whether figures are of a run or a month; the difference of a run and a month is left out."""
    known = {period for period in periods if period}
    if len(known) < 2:
        return row._replace(title=" per ".join((row.title, *known)))
    cells = (
        cell if cell.text == _NOTHING else cell._replace(text=f"{cell.text} per {period}")
        for cell, period in zip(row.cells, periods, strict=False)
    )
    return row._replace(cells=(*cells, FigureCell("")))


def _signed_text(value: float, show: Callable[[float], str]) -> str:
    if show(abs(value)) == show(0.0):
        return "same"
    return f"{'+' if value > 0 else '−'}{show(abs(value))}"


def _decision(one: ComparedPlan) -> str:
    answer = one.estimate.result.answer if one.estimate else None
    return decision_title(answer) if answer else ""


def _pace_row(mine: TimeResult | None, other: TimeResult | None) -> FigureRow:
    """Return the paces of two plans with their difference, if both are in the same unit."""
    texts = (FigureCell(pace_phrase(mine) or _NOTHING), FigureCell(pace_phrase(other) or _NOTHING))
    difference = ""
    if mine is not None and other is not None:
        paces = ((mine.tokens_per_second, other.tokens_per_second), (mine.samples_per_second, other.samples_per_second))
        found = (_signed_text(one - two, fmt.significant) for one, two in paces if one is not None and two is not None)
        difference = next(found, "")
    return FigureRow("Speed", (*texts, FigureCell(difference)))


def _hours(one: ComparedPlan) -> float | None:
    return one.estimate.demand.busy_hours if one.estimate else None


def _rent_figure_reader(read: Callable[[RentCost], float | None]) -> Callable[[ComparedPlan], float | None]:
    return lambda one: read(one.estimate.result.rent) if one.estimate and one.estimate.result.rent else None


def _own_figure_reader(read: Callable[[OwnCost], float | None]) -> Callable[[ComparedPlan], float | None]:
    return lambda one: read(one.estimate.result.own) if one.estimate and one.estimate.result.own else None


def _lasting_usd_per_gpu_hour(one: ComparedPlan) -> float | None:
    own = one.estimate.result.own if one.estimate else None
    if one.estimate is None or own is None or is_bought_for_one_run(own, one.estimate.demand):
        return None
    return own.usd_per_gpu_hour


def _break_even(one: ComparedPlan) -> float | None:
    found = one.estimate.result.break_even if one.estimate else None
    return found.gpu_hours if found else None
