"""What a comparison says of the plan on each of its entries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from planner.plan.tried import Tried
from planner.present import format as fmt
from planner.present.money import own_sentence, rent_sentence
from planner.present.time import answer, no_time
from planner.present.verdict import verdict_phrase

Figure = tuple[str, float | None, str]


@dataclass(frozen=True, slots=True)
class TriedFigure:
    """A figure of the plan: `key` says which way it is better, as that of a column does."""

    key: str
    title: str
    of: Callable[[Tried | None], Figure]


def _verdict(tried: Tried | None) -> Figure:
    if tried is None:
        return "working it out…", None, ""
    if tried.evaluation is None:
        return fmt.UNKNOWN, None, tried.reason
    memory = tried.evaluation.memory
    return verdict_phrase(memory), None, "; ".join(memory.unsupported)


def _needed(tried: Tried | None) -> Figure:
    if tried is None or tried.evaluation is None:
        return fmt.UNKNOWN, None, "" if tried is None else tried.reason
    needed = tried.evaluation.memory.total_bytes
    return fmt.size(needed), float(needed), fmt.exact_bytes(needed)


def _seconds(tried: Tried | None) -> Figure:
    time = None if tried is None or tried.evaluation is None else tried.evaluation.time
    if time is None or time.seconds is None:
        return fmt.UNKNOWN, None, "" if time is None else no_time(time)
    text = f"{fmt.duration(time.seconds)} a {'step' if time.kind == 'step' else 'request'}"
    return text, time.seconds, answer(time)


def _pace(tried: Tried | None) -> Figure:
    time = None if tried is None or tried.evaluation is None else tried.evaluation.time
    if time is None or time.seconds is None:
        return fmt.UNKNOWN, None, "" if time is None else no_time(time)
    pace, unit = (
        (time.tokens_per_second, "tokens/s") if time.tokens_per_second else (time.samples_per_second, "samples/s")
    )
    return fmt.quantity(pace, unit), pace, answer(time)


def _rent(tried: Tried | None) -> Figure:
    estimate = tried.cost.estimate if tried is not None and tried.cost is not None else None
    rent = None if estimate is None else estimate.result.rent
    if estimate is None or rent is None:
        return fmt.UNKNOWN, None, _no_cost(tried, "No offer of these cards is known.")
    return f"{fmt.money(rent.usd)} a {estimate.demand.period}", rent.usd, rent_sentence(rent)


def _own(tried: Tried | None) -> Figure:
    estimate = tried.cost.estimate if tried is not None and tried.cost is not None else None
    own = None if estimate is None else estimate.result.own
    if estimate is None or own is None:
        return fmt.UNKNOWN, None, _no_cost(tried, "The price of these cards is not known.")
    return (
        f"{fmt.money(own.usd_per_period)} a {estimate.demand.period}",
        own.usd_per_period,
        own_sentence(own, estimate.demand),
    )


def _no_cost(tried: Tried | None, otherwise: str) -> str:
    return "" if tried is None else (tried.cost.reason if tried.cost is not None else tried.reason) or otherwise


TRIED_FIGURES: Final = (
    TriedFigure("verdict", "Fits", _verdict),
    TriedFigure("needed", "Memory needed, each", _needed),
    TriedFigure("seconds", "Time", _seconds),
    TriedFigure("pace", "Pace", _pace),
    TriedFigure("rented", "Rented", _rent),
    TriedFigure("owned", "Owned", _own),
)
