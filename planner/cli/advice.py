"""Advice as a table, and results of `--solve` as sentences, for `gpu-planner fit`."""

from collections.abc import Iterator
from typing import Final

from planner.cli.options import option_text
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
from planner.present.memory.advice import advice_row, advice_title, no_advice_sentence
from planner.present.memory.solved import solved_sentence
from planner.present.memory.verdict import needs_change

_SHORT_ROW_COUNT: Final = 3
_HEADS: Final = (
    TableColumn("#", "right"),
    TableColumn("Change", flexible=True, narrowest=19),
    TableColumn("Saves", "right", unit="GiB"),
    TableColumn("Then", flexible=True),
    TableColumn("Costs", flexible=True, narrowest=14),
    TableColumn("Risk"),
    TableColumn("Needs", flexible=True),
)
_FIELDS_BY_OPTION: Final[dict[str, SolvableField]] = {
    "micro-batch": "micro_batch",
    "seq": "sequence_length",
    "batch": "batch",
    "context": "context_length",
    "prompt": "prompt_length",
    "gpu-layers": "gpu_layers",
}
SOLVABLE: Final = (*_FIELDS_BY_OPTION, "count", "gpu")
"""Names that `--solve` accepts: options for which the best value can be found."""


def advice_blocks(
    evaluation: Evaluation, catalog: Catalog, solved: list[str], width: int | None, *, is_requested: bool
) -> tuple[str, ...]:
    """Return the values that `--solve` found, and advice if it `is_requested` or the plan needs a change, as texts."""
    lines = "\n".join(solved_line(evaluation.plan, catalog, option_name) for option_name in solved)
    if not is_requested and not needs_change(evaluation.memory):
        return (lines,)
    return lines, advice_block(
        evaluation, advise(evaluation.plan, catalog), width, all_with="" if is_requested else "--advise"
    )


def advice_fields(
    evaluation: Evaluation, catalog: Catalog, solved: list[str], *, is_requested: bool
) -> Iterator[tuple[str, object]]:
    """Yield the keys and values that `--advise` and `--solve` add to the JSON."""
    if is_requested:
        yield "advice", [advice.model_dump(mode="json") for advice in advise(evaluation.plan, catalog)]
        yield "warnings", [warning.model_dump(mode="json") for warning in warnings_about(evaluation, catalog.software)]
    if solved:
        yield (
            "solved",
            [solve_for_option(evaluation.plan, catalog, option_name).model_dump(mode="json") for option_name in solved],
        )


def advice_block(evaluation: Evaluation, advice: tuple[Advice, ...], width: int | None, *, all_with: str) -> str:
    """Return the table of advice with its heading; if only the best are listed, name the command `all_with` for all."""
    if not advice:
        return no_advice_sentence(evaluation.memory, traced=evaluation.traced is not None)
    shown = advice[:_SHORT_ROW_COUNT] if all_with else advice
    more = f"({all_with} shows all)" if all_with and len(advice) > _SHORT_ROW_COUNT else ""
    cells = [(str(number), *advice_row(change)[:-1]) for number, change in enumerate(shown, 1)]
    rows = table(_HEADS, cells, width)
    options = "\n".join(f"{number:3}  {_advice_options(change)}" for number, change in enumerate(shown, 1))
    blocks = (f"{advice_title(evaluation.memory)}:\n{rows}", more, f"As options:\n{options}")
    return "\n".join(filter(None, blocks))


def _advice_options(advice: Advice) -> str:
    """Return the options that apply a change to the plan: `--method qlora --checkpointing selective`."""
    return " ".join(option_text(setting.field, setting.value) for setting in advice.settings)


def solve_for_option(plan: Plan, catalog: Catalog, option_name: str, at_worst: MinimumVerdict = "fits") -> SolveResult:
    """Return the best value of an option: the largest that fits, or the fewest or smallest cards.

    Raises:
        SpecError: If the option cannot be solved for, in general or for this plan.
    """
    if option_name == "count":
        return fewest_cards(plan, catalog, at_worst)
    if option_name == "gpu":
        return smallest_card(plan, catalog, at_worst)
    if option_name not in _FIELDS_BY_OPTION:
        raise SpecError("--solve", f"cannot solve for {option_name!r}", f"Choose one of {', '.join(SOLVABLE)}.")
    if _FIELDS_BY_OPTION[option_name] not in type(plan.workload).model_fields:
        solvable_names = ", ".join(
            name for name in SOLVABLE if _FIELDS_BY_OPTION.get(name, "task") in type(plan.workload).model_fields
        )
        raise SpecError("--solve", f"{plan.workload.task} has no {option_name}", f"Choose one of {solvable_names}.")
    return largest_that_fits(plan, catalog, _FIELDS_BY_OPTION[option_name], at_worst)


def solved_line(plan: Plan, catalog: Catalog, option_name: str) -> str:
    """Return the best value of an option as one sentence."""
    fits_surely, fits_barely = (
        solve_for_option(plan, catalog, option_name),
        solve_for_option(plan, catalog, option_name, "tight"),
    )
    card = (
        catalog.hardware.gpu(fits_surely.value).name
        if option_name == "gpu" and isinstance(fits_surely.value, str)
        else None
    )
    return solved_sentence(fits_surely, fits_barely, card)
