"""What a comparison says of the plan on each of its entries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.plan.evaluate import Evaluation
from planner.plan.placement import Placement
from planner.present import format as fmt
from planner.present.money import own_sentence, rent_sentence
from planner.present.time import answer, no_time
from planner.present.verdict import more_cards, verdict_phrase

if TYPE_CHECKING:
    from planner.cost.estimate import CostEstimate
    from planner.performance.result import TimeResult

_NOT_RUN: Final = "The plan does not fit there."
_NOT_JUDGED: Final = "How much of the card a program can use is not known."
Figure = tuple[str, float | None, str]


@dataclass(frozen=True, slots=True)
class TriedFigure:
    """A figure of the plan: `key` says which way it is better, as that of a column does."""

    key: str
    title: str
    of: Callable[[Placement | None], Figure]


def _verdict(tried: Placement | None) -> Figure:
    if tried is None:
        return "working it out…", None, ""
    if tried.evaluation is None:
        return "not planned", None, tried.reason
    memory, plan = tried.evaluation.memory, tried.evaluation.plan
    on_each = " on each" if plan.count > 1 and memory.verdict == "does-not-fit" and not memory.unsupported else ""
    told = "; ".join(memory.unsupported) or "\n".join(more_cards(memory))
    return f"{verdict_phrase(memory)}{on_each}", None, told


def _needed(tried: Placement | None) -> Figure:
    if tried is None or tried.evaluation is None:
        return fmt.UNKNOWN, None, "" if tried is None else tried.reason
    needed = tried.evaluation.memory.total_bytes
    return fmt.size(needed), float(needed), fmt.exact_bytes(needed)


def _seconds(tried: Placement | None) -> Figure:
    time, why = _time(tried)
    if time is None or time.seconds is None:
        return fmt.UNKNOWN, None, why
    text = f"{fmt.duration(time.seconds)} a {'step' if time.kind == 'step' else 'request'}"
    return text, time.seconds, answer(time)


def _pace(tried: Placement | None) -> Figure:
    time, why = _time(tried)
    if time is None or time.seconds is None:
        return fmt.UNKNOWN, None, why
    pace, unit = (
        (time.tokens_per_second, "tokens/s") if time.tokens_per_second else (time.samples_per_second, "samples/s")
    )
    return fmt.quantity(pace, unit), pace, answer(time)


def _time(tried: Placement | None) -> "tuple[TimeResult | None, str]":
    """Return how long it takes, or why that is not known."""
    if tried is None or tried.evaluation is None:
        return None, ""
    if not fits(tried.evaluation):
        return None, why_not(tried.evaluation)
    time = tried.evaluation.time
    return time, "" if time is None else no_time(time)


def fits(evaluation: Evaluation) -> bool:
    """Return whether the plan runs there, tightly or not: what does not takes no time and costs nothing."""
    return evaluation.memory.verdict in ("fits", "tight")


def why_not(evaluation: Evaluation) -> str:
    """Return why the plan does not run there."""
    memory = evaluation.memory
    if memory.unsupported:
        return "; ".join(memory.unsupported)
    return _NOT_RUN if memory.verdict == "does-not-fit" else _NOT_JUDGED


def _rent(tried: Placement | None) -> Figure:
    estimate, why = _estimate(tried, "No offer of these cards is known.")
    if estimate is None or estimate.result.rent is None:
        return fmt.UNKNOWN, None, why
    rent = estimate.result.rent
    return f"{fmt.money(rent.usd)} a {estimate.demand.period}", rent.usd, rent_sentence(rent)


def _rent_hour(tried: Placement | None) -> Figure:
    estimate, why = _estimate(tried, "No offer of these cards is known.")
    if estimate is None or estimate.result.rent is None:
        return fmt.UNKNOWN, None, why
    rent = estimate.result.rent
    usd = rent.usd_per_gpu_hour * rent.gpu_count
    each = f"{rent.gpu_count:g} × {fmt.money(rent.usd_per_gpu_hour)} a card and hour"
    return f"{fmt.money(usd)} an hour", usd, f"{each}\n{rent_sentence(rent)}"


def _rent_tokens(tried: Placement | None) -> Figure:
    estimate, why = _estimate(tried, "No offer of these cards is known.")
    if estimate is None or estimate.result.rent is None:
        return fmt.UNKNOWN, None, why
    return _million(estimate.result.rent.usd_per_million_tokens, rent_sentence(estimate.result.rent))


def _own(tried: Placement | None) -> Figure:
    estimate, why = _estimate(tried, "The price of these cards is not known.")
    if estimate is None or estimate.result.own is None:
        return fmt.UNKNOWN, None, why
    own = estimate.result.own
    text = f"{fmt.money(own.usd_per_period)} a {estimate.demand.period}"
    return text, own.usd_per_period, own_sentence(own, estimate.demand)


def _own_tokens(tried: Placement | None) -> Figure:
    estimate, why = _estimate(tried, "The price of these cards is not known.")
    if estimate is None or estimate.result.own is None:
        return fmt.UNKNOWN, None, why
    own = estimate.result.own
    return _million(own.usd_per_million_tokens, own_sentence(own, estimate.demand))


def _million(usd: float | None, how: str) -> Figure:
    return fmt.UNKNOWN if usd is None else fmt.money(usd), usd, how


def _estimate(tried: Placement | None, otherwise: str) -> "tuple[CostEstimate | None, str]":
    """Return what the job costs, or why that is not known."""
    if tried is None:
        return None, ""
    if tried.evaluation is None or tried.cost is None:
        return None, tried.reason or otherwise
    if not fits(tried.evaluation):
        return None, why_not(tried.evaluation)
    return tried.cost.estimate, tried.cost.reason or otherwise


TRIED_FIGURES: Final = (
    TriedFigure("verdict", "Fits", _verdict),
    TriedFigure("needed", "Memory needed, each", _needed),
    TriedFigure("seconds", "Time", _seconds),
    TriedFigure("pace", "Pace", _pace),
    TriedFigure("rented", "Rented", _rent),
    TriedFigure("rented_hour", "Rented, all of them", _rent_hour),
    TriedFigure("rented_tokens", "Rented, a million tokens", _rent_tokens),
    TriedFigure("owned", "Owned", _own),
    TriedFigure("owned_tokens", "Owned, a million tokens", _own_tokens),
)
