"""Which options are within the limits, their order, and what stands out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from planner.plan.recommend.option import LeftOut, Option, Recommendation
from planner.plan.recommend.wish import Wish

_NO_POWER: Final = "its power is not known"
_TOO_DEAR: Final = "over the budget"
_TOO_SLOW: Final = "later than the deadline"
_TOO_HUNGRY: Final = "over the power limit"


def is_within(option: Option, wish: Wish, left_out: Counter[str]) -> bool:
    """Return whether `option` is within every limit, and note the first that it is not."""
    reason = next(_beyond(option, wish), None)
    if reason is not None:
        left_out[reason] += 1
    return reason is None


def _beyond(option: Option, wish: Wish) -> Iterator[str]:
    if wish.power_limit_watts is not None and option.power_watts is None:
        yield _NO_POWER
    if wish.power_limit_watts is not None and (option.power_watts or 0) > wish.power_limit_watts:
        yield _TOO_HUNGRY
    if wish.deadline_hours is not None and option.hours > wish.deadline_hours:
        yield _TOO_SLOW
    if wish.budget_usd is not None and option.usd > wish.budget_usd:
        yield _TOO_DEAR


def ranked(
    within: Sequence[Option],
    everything: Sequence[Option],
    wish: Wish,
    period: Literal["run", "month"],
    left_out: Counter[str],
) -> Recommendation:
    """Return the options in their order, the cheapest that can be compared first, and those that stand out."""
    in_order = sorted(within, key=lambda option: (not option.comparable, option.usd, option.hours))
    sure = [option for option in in_order if option.comparable]
    others = [option for option in everything if option.comparable]
    dates = [option.price_date for option in in_order if option.price_date]
    return Recommendation(
        wish=wish,
        period=period,
        options=tuple(in_order),
        cheapest=sure[0] if sure else None,
        fastest=min(sure, key=lambda option: (option.slowness, option.usd), default=None),
        best_value=min(sure, key=lambda option: option.usd * option.slowness, default=None),
        pareto=tuple(option.key for option in _unbeaten(sure)),
        left_out=tuple(LeftOut(reason=reason, count=count) for reason, count in left_out.most_common() if count),
        nearest=min(others, key=lambda option: _excess(option, wish), default=None) if not sure else None,
        oldest_price_date=min(dates, default=None),
    )


def _unbeaten(cheapest_first: Sequence[Option]) -> Iterator[Option]:
    """Yield the options that no other beats in both time and cost."""
    fastest = float("inf")
    for option in cheapest_first:
        if option.slowness < fastest:
            fastest = option.slowness
            yield option


def _excess(option: Option, wish: Wish) -> float:
    """Return how many times over its limits an option is, multiplied."""
    limits = (
        (option.usd, wish.budget_usd),
        (option.hours, wish.deadline_hours),
        (option.power_watts or float("inf"), wish.power_limit_watts),
    )
    times = 1.0
    for value, limit in limits:
        times *= 1.0 if limit is None else max(1.0, value / limit)
    return times
