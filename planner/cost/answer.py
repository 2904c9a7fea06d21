"""The facts of the one sentence that answers whether to rent or to buy, and what would flip it."""

from planner.cost.case import RENT_PRICE, Case
from planner.cost.job import HOURS_PER_YEAR
from planner.cost.result import Answer, BreakEven, OwnCost, RentCost
from planner.cost.streams import Streams

_CARD_PRICE = "card_price_usd"


def answer_of(case: Case, streams: Streams, found: BreakEven, rent: RentCost, own: OwnCost) -> Answer:
    """Return the decision over the horizon, in today's money, with what it rests on."""
    years, shape = case.horizon_years, case.shape
    rented, owned = streams.rent_usd(years), streams.own_usd(years)
    flip_rent = flip_value(case, RENT_PRICE)
    dates = [day for day in (rent.oldest_price_date, own.oldest_price_date) if day]
    return Answer(
        decision="buy" if owned < rented else "rent",
        provider=rent.provider,
        region=rent.region,
        offer_id=rent.offer_id,
        gpu=own.gpu,
        count=shape.cards,
        planned_gpu_hours=streams.busy_hours_per_year * years * shape.count,
        planned_utilization_fraction=streams.busy_hours_per_year / (HOURS_PER_YEAR * shape.groups),
        break_even_gpu_hours=found.gpu_hours,
        break_even_reason=found.reason,
        rent_usd=rented,
        own_usd=owned,
        saves_usd=abs(rented - owned),
        flips_at_utilization_fraction=found.utilization_fraction,
        flips_at_card_price_usd=flip_value(case, _CARD_PRICE),
        flips_at_rent_usd_per_gpu_hour=None if flip_rent is None else flip_rent / shape.count,
        horizon_years=years,
        oldest_price_date=min(dates, default=None),
        undated=tuple(_undated(rent, own)),
    )


def flip_value(case: Case, name: str) -> float | None:
    """Return the value of one figure at which both cost the same, the others as they are; None where none above zero.

    **Formula** the saving is a straight line in a price: x* = x₀ − saving(x₀) · (x₁ − x₀) / (saving(x₁) − saving(x₀))
    """
    start = case.central[name]
    before, after = (_saving(case, name, start + step) for step in (0.0, 1.0))
    if before == after:
        return None
    found = start - before / (after - before)
    return found if found > 0 else None


def _saving(case: Case, name: str, value: float) -> float:
    return case.with_values({**case.central, name: value}).saving_usd(case.horizon_years)


def _undated(rent: RentCost, own: OwnCost) -> list[str]:
    """Return which figures have no date, in the order of their weight."""
    terms = (*rent.terms, *own.upfront, *own.monthly)
    named = [term for term in terms if term.date is None and term.certainty != "yours"]
    return [term.name for term in sorted(named, key=lambda term: -term.usd)]
