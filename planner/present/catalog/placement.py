"""The plan's figures on each entry of a comparison: verdict, memory, time and cost."""

from collections.abc import Callable
from typing import Final, NamedTuple

from planner.cost.estimate import CostEstimate
from planner.performance.result import TimeResult
from planner.plan.evaluate import Evaluation
from planner.plan.placement import Placement
from planner.present import format as fmt
from planner.present.cost.summary import own_sentence, rent_sentence
from planner.present.cost.time import time_answer, unknown_time_sentence
from planner.present.memory.verdict import fewest_cards_note, no_fit_sentence, verdict_phrase

_NOT_JUDGED: Final = "The card's usable memory is unknown."


class ComparedFigure(NamedTuple):
    """A figure of one compared entry; without a `value` it is text only, or unknown for the reason in the tooltip."""

    text: str = fmt.UNKNOWN
    value: float | None = None
    tooltip: str = ""


TextAndValue = tuple[str, float | None]
"""A figure as text and as the number by which entries are compared; None if it is not known."""
TimeReader = Callable[[TimeResult, float], TextAndValue]
"""Function that returns a figure from a time result and the duration in seconds of its step or request."""
FigureReader = Callable[[Placement | None], ComparedFigure]
"""Function that returns a figure of the plan on some cards; None as placement means that it is being computed."""


class PlacementFigure(NamedTuple):
    """A figure of the plan on some cards: `of` reads it from a placement."""

    title: str
    of: FigureReader
    lower_is_better: bool


def _verdict_figure(placement: Placement | None) -> ComparedFigure:
    """Return the plan's memory verdict as a figure."""
    if placement is None:
        return ComparedFigure("computing…")
    if placement.evaluation is None:
        return ComparedFigure("not evaluated", tooltip=placement.reason)
    memory, plan = placement.evaluation.memory, placement.evaluation.plan
    on_each = " on each" if plan.count > 1 and memory.verdict == "does-not-fit" and not memory.unsupported else ""
    reasons = "; ".join(memory.unsupported) or "\n".join(fewest_cards_note(memory))
    return ComparedFigure(f"{verdict_phrase(memory)}{on_each}", tooltip=reasons)


def _needed_memory_figure(placement: Placement | None) -> ComparedFigure:
    """Return the memory that the plan needs per card as a figure."""
    if placement is None or placement.evaluation is None:
        return ComparedFigure(tooltip="" if placement is None else placement.reason)
    needed = placement.evaluation.memory.total_bytes
    return ComparedFigure(fmt.size(needed), float(needed), fmt.exact_bytes(needed))


def _time_figure_reader(read: TimeReader) -> FigureReader:
    """Return a reader of the time figure that `read` takes from a plan's time result, if the plan can run."""

    def time_figure(placement: Placement | None) -> ComparedFigure:
        if placement is None or placement.evaluation is None:
            return ComparedFigure()
        if not is_feasible(placement.evaluation):
            return ComparedFigure(tooltip=infeasible_reason(placement.evaluation))
        time = placement.evaluation.time
        if time is None or time.seconds is None:
            return ComparedFigure(tooltip="" if time is None else unknown_time_sentence(time))
        return ComparedFigure(*read(time, time.seconds), time_answer(time))

    return time_figure


def _seconds_text_and_value(time: TimeResult, seconds: float) -> TextAndValue:
    """Return the duration of a step or request as text and in seconds."""
    return f"{fmt.duration(seconds)} per {'step' if time.kind == 'step' else 'request'}", seconds


def _pace_text_and_value(time: TimeResult, _seconds: float) -> TextAndValue:
    """Return the pace in tokens or samples per second, as text and as a number."""
    tokens = time.tokens_per_second
    pace, unit = (tokens, "tokens/s") if tokens else (time.samples_per_second, f"{time.samples}/s")
    return fmt.quantity(pace, unit), pace


def is_feasible(evaluation: Evaluation) -> bool:
    """Return whether the plan fits, if only tightly; only then do its time and cost mean anything."""
    return evaluation.memory.verdict in ("fits", "tight")


def infeasible_reason(evaluation: Evaluation) -> str:
    """Return why the plan does not run on the cards."""
    memory = evaluation.memory
    if memory.unsupported:
        return "; ".join(memory.unsupported)
    return no_fit_sentence() if memory.verdict == "does-not-fit" else _NOT_JUDGED


def _cost_figure_reader(read: Callable[[CostEstimate], ComparedFigure | None], unknown: str) -> FigureReader:
    """Return a reader of a cost figure, which `read` takes from an estimate; `unknown` says why there is none."""

    def cost_figure(placement: Placement | None) -> ComparedFigure:
        if placement is None:
            return ComparedFigure()
        if placement.evaluation is None or placement.cost is None:
            return ComparedFigure(tooltip=placement.reason or unknown)
        if not is_feasible(placement.evaluation):
            return ComparedFigure(tooltip=infeasible_reason(placement.evaluation))
        estimate = placement.cost.estimate
        return (None if estimate is None else read(estimate)) or ComparedFigure(
            tooltip=placement.cost.reason or unknown
        )

    return cost_figure


def _rent_figure(estimate: CostEstimate) -> ComparedFigure | None:
    """Return the rent for a run or month as a figure."""
    rent = estimate.result.rent
    if rent is None:
        return None
    return ComparedFigure(f"{fmt.money(rent.usd)} per {estimate.demand.period}", rent.usd, rent_sentence(rent))


def _hourly_rent_figure(estimate: CostEstimate) -> ComparedFigure | None:
    rent = estimate.result.rent
    if rent is None:
        return None
    usd = rent.usd_per_gpu_hour * rent.gpu_count
    each = f"{rent.gpu_count:g} × {fmt.money(rent.usd_per_gpu_hour)} per card and hour"
    return ComparedFigure(f"{fmt.money(usd)} per hour", usd, f"{each}\n{rent_sentence(rent)}")


def _rent_per_tokens_figure(estimate: CostEstimate) -> ComparedFigure | None:
    rent = estimate.result.rent
    return None if rent is None else _usd_per_million_figure(rent.usd_per_million_tokens, rent_sentence(rent))


def _owning_figure(estimate: CostEstimate) -> ComparedFigure | None:
    """Return the cost of owning for a run or month as a figure."""
    own = estimate.result.own
    if own is None:
        return None
    text = f"{fmt.money(own.usd_per_period)} per {estimate.demand.period}"
    return ComparedFigure(text, own.usd_per_period, own_sentence(own, estimate.demand))


def _owning_per_tokens_figure(estimate: CostEstimate) -> ComparedFigure | None:
    own = estimate.result.own
    return (
        None if own is None else _usd_per_million_figure(own.usd_per_million_tokens, own_sentence(own, estimate.demand))
    )


def _usd_per_million_figure(usd: float | None, how: str) -> ComparedFigure:
    """Return a cost in US dollars per million tokens as a figure; `how` explains it."""
    return ComparedFigure(fmt.money(usd, fmt.UNKNOWN), usd, how)


_NO_OFFER: Final = "No offer for these cards is known."
_NO_PRICE: Final = "The price of these cards is unknown."
PLACEMENT_FIGURES: Final = (
    PlacementFigure("Fits", _verdict_figure, lower_is_better=False),
    PlacementFigure("Memory needed per card", _needed_memory_figure, lower_is_better=True),
    PlacementFigure("Time", _time_figure_reader(_seconds_text_and_value), lower_is_better=True),
    PlacementFigure("Speed", _time_figure_reader(_pace_text_and_value), lower_is_better=False),
    PlacementFigure("Rented", _cost_figure_reader(_rent_figure, _NO_OFFER), lower_is_better=True),
    PlacementFigure("Rented, per hour", _cost_figure_reader(_hourly_rent_figure, _NO_OFFER), lower_is_better=True),
    PlacementFigure(
        "Rented, per million tokens", _cost_figure_reader(_rent_per_tokens_figure, _NO_OFFER), lower_is_better=True
    ),
    PlacementFigure("Owned", _cost_figure_reader(_owning_figure, _NO_PRICE), lower_is_better=True),
    PlacementFigure(
        "Owned, per million tokens", _cost_figure_reader(_owning_per_tokens_figure, _NO_PRICE), lower_is_better=True
    ),
)
