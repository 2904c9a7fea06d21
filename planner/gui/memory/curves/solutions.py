"""Computation of the memory curve, and of the largest or smallest values that fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.gui.memory.curves.data import CurveData, curve_values
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, architecture_of
from planner.plan.memory_curve import Axis, count_scaling, current_value, memory_curve, plan_axes
from planner.plan.plan import Plan
from planner.plan.solve import (
    LENGTHS,
    SolvableField,
    SolveResult,
    fewest_cards,
    largest_allowed,
    largest_that_fits,
    layer_count,
    smallest_card,
)
from planner.present.memory.solved import solved_text, solved_title
from planner.present.plan.settings import setting_title
from planner.workload.fields import find_field

_SHORTEST_LENGTH: Final = 128
_ALL_COUNTS_UP_TO: Final = 8


_SOLVED: Final[tuple[SolvableField, ...]] = ("micro_batch", "sequence_length", "batch", "context_length", "gpu_layers")
_FIELD_NAMES: Final[dict[str, str]] = {"lora_rank": "lora.rank"}
"""Names of workload fields by curve axis, for axes whose name differs from the field's name."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Best value of a plan field that fits: `text` is the value or why none fits, `plan` the plan with this value.

    `is_taken` is true if the plan already has the value.
    """

    field_name: str
    title: str
    text: str
    value: int | str | None = None
    plan: Plan | None = None
    is_taken: bool = False


def title_of(axis: str) -> str:
    """Return the title of the plan field `axis`, as shown in the list of axes and in the undo history."""
    return setting_title(_FIELD_NAMES.get(axis, axis))


def _axis_title_with_unit(axis: Axis) -> str:
    """Return the title of the x axis with its unit: `Sequence length, tokens`."""
    field = find_field(_FIELD_NAMES.get(axis, axis))
    unit = field.option.unit if field is not None and axis in LENGTHS else ""
    return ", ".join(part for part in (title_of(axis), unit) if part)


def find_solutions(evaluation: Evaluation, catalog: Catalog) -> tuple[Solution, ...]:
    """Return all solutions for the evaluated plan; for a plan without a card, only the smallest card that fits."""
    plan = evaluation.plan
    if plan.workload.gpus:
        return tuple(_largest_solution(evaluation, catalog, field) for field in _solvable_fields(evaluation))
    smallest = _smallest_card_solution(plan, catalog)
    if plan.gpu is None:
        return (smallest,)
    largest = tuple(_largest_solution(evaluation, catalog, field) for field in _solvable_fields(evaluation))
    return (*largest, _fewest_cards_solution(plan, catalog), smallest)


def compute_curve(evaluation: Evaluation, catalog: Catalog, axis: Axis, largest: int | None) -> CurveData:
    """Compute the memory curve over the plan field `axis`, around the plan's value and the `largest` that fits."""
    current = current_value(evaluation, axis)
    architecture = architecture_of(evaluation.plan, catalog)
    spreading = count_scaling(evaluation.plan, catalog) if axis == "count" else None
    if spreading is not None:
        values = tuple(sorted({*_reduced_counts(spreading.counts, max(current, largest or 0)), current}))
    elif axis == "gpu_layers":
        values = tuple(range(layer_count(architecture) + 1))
    else:
        values = _axis_values(evaluation, axis, current, largest)
    points = memory_curve(evaluation.plan, catalog, axis, values)
    return CurveData(
        axis=axis,
        title=f"GPUs {spreading.how}".strip() if spreading else _axis_title_with_unit(axis),
        points=points,
        current=next(point for point in points if point.value == current),
        capacity_bytes=evaluation.memory.capacity_bytes,
        card=evaluation.gpu.name if evaluation.gpu else None,
    )


def _solvable_fields(evaluation: Evaluation) -> tuple[SolvableField, ...]:
    axes = plan_axes(evaluation)
    return tuple(field for field in _SOLVED if field in axes)


def _axis_values(evaluation: Evaluation, axis: Axis, current: int, largest: int | None) -> tuple[int, ...]:
    if axis == "lora_rank" or axis == "count":
        return curve_values(current, None, 1, None)
    limit = largest_allowed(evaluation.plan, axis)
    if axis in LENGTHS:
        return curve_values(current, largest, _SHORTEST_LENGTH, min(evaluation.max_context or limit, limit))
    return curve_values(current, largest, 1, limit)


def _reduced_counts(counts: Sequence[int], largest_count: int) -> list[int]:
    """Return the card counts up to twice `largest_count`; above a limit, only powers of two.

    Pipeline stages are slow to compute.
    """
    near = [count for count in counts if count <= max(2 * largest_count, _ALL_COUNTS_UP_TO)]
    return [count for count in near if count <= _ALL_COUNTS_UP_TO or count & (count - 1) == 0]


def _largest_solution(evaluation: Evaluation, catalog: Catalog, field: SolvableField) -> Solution:
    plan = evaluation.plan
    comfortable = largest_that_fits(plan, catalog, field)
    tight = largest_that_fits(plan, catalog, field, "tight")
    best = comfortable if comfortable.value is not None else tight
    is_taken = best.value == current_value(evaluation, field)
    return Solution(field, solved_title(field), solved_text(comfortable, tight), best.value, best.plan, is_taken)


def _fewest_cards_solution(plan: Plan, catalog: Catalog) -> Solution:
    comfortable, tight = fewest_cards(plan, catalog), fewest_cards(plan, catalog, "tight")
    best = comfortable if comfortable.value is not None else tight
    text = ", ".join(part for part in (solved_text(comfortable, tight), best.how) if part)
    return Solution("count", solved_title("count"), text, best.value, best.plan, best.plan == plan)


def _smallest_card_solution(plan: Plan, catalog: Catalog) -> Solution:
    comfortable = smallest_card(plan, catalog)
    best = comfortable if comfortable.value is not None else smallest_card(plan, catalog, "tight")
    return Solution(
        "gpu",
        solved_title("gpu"),
        _smallest_card_text(best, catalog),
        best.value,
        best.plan,
        best.value == plan.gpu,
    )


def _smallest_card_text(solved: SolveResult, catalog: Catalog) -> str:
    if not isinstance(solved.value, str):
        return f"none, {solved.reason}"
    name = catalog.hardware.gpu(solved.value).name
    return f"{name} may fit" if solved.verdict == "tight" else name
