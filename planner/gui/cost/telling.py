"""What is said about a plan's cost, from the result: which sentences, in which order."""

from datetime import date

from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.result import CostResult
from planner.gui.cost.answer import AnswerText
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.money import PlanCost, pace_of
from planner.present import format as fmt
from planner.present.cost.prices import Age, age_of
from planner.present.cost.rent_or_buy import rent_or_buy_rows
from planner.present.cost.summary import (
    answer_sentence,
    break_even_sentence,
    dates_sentence,
    flip_sentence,
    hybrid_sentence,
    own_sentence,
    rent_sentence,
    terms_of,
)
from planner.present.cost.time import time_view
from planner.present.memory.verdict import if_it_ran


def told(cost: PlanCost, evaluation: Evaluation, catalog: Catalog, today: date) -> AnswerText:
    """Return what is said about `cost` on a day; without an estimate, why there is none."""
    time = (*if_it_ran(evaluation.memory), *_time_lines(evaluation))
    if cost.estimate is None:
        return AnswerText(cost.reason, lines=time)
    estimate = cost.estimate
    result, gpu = estimate.result, evaluation.plan.gpu
    card = "" if gpu is None else catalog.hardware.gpu(gpu).name
    notes = (*(result.rent.notes if result.rent else ()), *(result.own.notes if result.own else ()), *result.notes)
    if result.answer is None:
        first, *more = (fmt.sentence(note) for note in result.notes) if result.notes else ("",)
        return AnswerText(first, lines=(*more, *time, *_ways(result, estimate)))
    # Why there is no break-even is part of the sentence already.
    even = "" if result.answer.break_even_gpu_hours is None else break_even_sentence(result.break_even)
    turning = (flip_sentence(result.answer, result.rent, result.own), even)
    rented, *owned = _ways(result, estimate)
    lines = (" ".join(part for part in turning if part), *time, rented, *_mix(estimate, evaluation))
    return AnswerText(
        answer_sentence(result.answer, card),
        "\n".join(cell.origin for cell in rent_or_buy_rows(estimate)[0].cells),
        dates_sentence(result.answer, today, terms_of(result)),
        _age(result.answer.oldest_price_date, today),
        tuple(line for line in lines if line),
        tuple(dict.fromkeys((*owned, *map(fmt.sentence, notes)))),
    )


def _time_lines(evaluation: Evaluation) -> tuple[str, ...]:
    """Return how long a step or a request takes, or why that is not known."""
    if evaluation.time is None:
        return ()
    view = time_view(evaluation.time)
    return (f"{view.answer} {view.reason}".strip(),)


def _ways(result: CostResult, estimate: CostEstimate) -> tuple[str, ...]:
    rented = (rent_sentence(result.rent),) if result.rent else ()
    return (*rented, *((own_sentence(result.own, estimate.demand),) if result.own else ()))


def _mix(estimate: CostEstimate, evaluation: Evaluation) -> tuple[str, ...]:
    terms = evaluation.plan.cost
    hybrid = hybrid_of_plan(estimate, terms, pace_of(evaluation))
    return () if hybrid is None else (hybrid_sentence(hybrid, terms.horizon_years),)


def _age(day: str | None, today: date) -> Age:
    return age_of(None if day is None else (today - date.fromisoformat(day)).days)
