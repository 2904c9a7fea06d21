"""Advice as a table, and solutions of `--solve` as sentences, for `gpu-planner fit`."""

from collections.abc import Iterator
from typing import Final

from planner.cli.table import TableColumn, table
from planner.errors import SpecError
from planner.plan.advice.advise import Advice, advise
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.plan import Plan
from planner.plan.solve import (
    MinimumVerdict,
    SolvableField,
    SolveResult,
    fewest_cards,
    largest_that_fits,
    smallest_card,
)
from planner.plan.warnings import warnings_about
from planner.present.memory.advice import advice_row, advice_title, no_advice
from planner.present.memory.solved import solved_sentence
from planner.present.memory.verdict import needs_change

_SHORT: Final = 3
_HEADS: Final = (
    TableColumn("Change", flexible=True, narrowest=24),
    TableColumn("Saves", "right", unit="GiB"),
    TableColumn("Then"),
    TableColumn("Costs", flexible=True),
    TableColumn("Risk"),
    TableColumn("Needs", flexible=True),
)
_FIELDS: Final[dict[str, SolvableField]] = {
    "micro-batch": "micro_batch",
    "seq": "sequence_length",
    "batch": "batch",
    "context": "context_length",
    "prompt": "prompt_length",
    "gpu-layers": "gpu_layers",
}
SOLVABLE: Final = (*_FIELDS, "count", "gpu")
"""Names of the options that can be solved for."""


def advice_blocks(
    evaluation: Evaluation, catalog: Catalog, solved: list[str], width: int | None, *, asked: bool
) -> tuple[str, ...]:
    """Return the solutions, and the advice if it was requested (`asked`) or the plan needs to be changed."""
    lines = "\n".join(solved_line(evaluation.plan, catalog, what) for what in solved)
    if not asked and not needs_change(evaluation.memory):
        return (lines,)
    return lines, advice_block(
        evaluation, advise(evaluation.plan, catalog), width, all_with="" if asked else "--advise"
    )


def advice_fields(
    evaluation: Evaluation, catalog: Catalog, solved: list[str], *, advised: bool
) -> Iterator[tuple[str, object]]:
    """Yield the keys and values that `--advise` and `--solve` add to the JSON."""
    if advised:
        yield "advice", [advice.model_dump(mode="json") for advice in advise(evaluation.plan, catalog)]
        yield "warnings", [warning.model_dump(mode="json") for warning in warnings_about(evaluation, catalog.software)]
    if solved:
        yield "solved", [solve(evaluation.plan, catalog, what).model_dump(mode="json") for what in solved]


def advice_block(evaluation: Evaluation, advice: tuple[Advice, ...], width: int | None, *, all_with: str) -> str:
    """Return the table of advice with its heading, limited to the best few if all are shown with `all_with`."""
    if not advice:
        return no_advice(evaluation.memory, traced=evaluation.traced is not None)
    shown = [advice_row(one)[:-1] for one in (advice[:_SHORT] if all_with else advice)]
    more = f"\n({all_with} shows all)" if all_with and len(advice) > _SHORT else ""
    return f"{advice_title(evaluation.memory)}:\n{table(_HEADS, shown, width)}{more}"


def solve(plan: Plan, catalog: Catalog, what: str, at_worst: MinimumVerdict = "fits") -> SolveResult:
    """Return the solution for the option `what`.

    Raises:
        SpecError: If the option cannot be solved for, in general or for this plan.
    """
    if what == "count":
        return fewest_cards(plan, catalog, at_worst)
    if what == "gpu":
        return smallest_card(plan, catalog, at_worst)
    if what not in _FIELDS:
        raise SpecError("--solve", f"cannot solve for {what!r}", f"Choose one of {', '.join(SOLVABLE)}.")
    if _FIELDS[what] not in type(plan.workload).model_fields:
        others = ", ".join(name for name in SOLVABLE if _FIELDS.get(name, "task") in type(plan.workload).model_fields)
        raise SpecError("--solve", f"{plan.workload.task} has no {what}", f"Choose one of {others}.")
    return largest_that_fits(plan, catalog, _FIELDS[what], at_worst)


def solved_line(plan: Plan, catalog: Catalog, what: str) -> str:
    """Return the solution for the option `what` as one sentence."""
    surely, barely = solve(plan, catalog, what), solve(plan, catalog, what, "tight")
    card = catalog.hardware.gpu(surely.value).name if what == "gpu" and isinstance(surely.value, str) else None
    return solved_sentence(surely, barely, card)
