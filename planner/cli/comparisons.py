"""Comparisons of an estimate with the log of a run (`--log`, `--correct`) and with another plan (`--versus`)."""

import argparse
import sys
from datetime import datetime
from pathlib import Path
from typing import Final

from planner.cli.table import TableColumn, prose_width, table, wrap
from planner.cli.user_catalog import named_cards
from planner.errors import AmbiguousNameError, LogError, SpecError
from planner.memory.corrections import Correction, with_correction
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import MAX_BYTES, LogReading, decode_log
from planner.plan.catalog import Catalog
from planner.plan.comparison import PlanComparison
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.files import is_plan_file, load_plan, named_plan
from planner.plan.logs.comparison import compare_plan
from planner.plan.logs.files import Log, corrections_file, load_corrections, open_log, pasted_log, save_correction
from planner.plan.logs.log_amounts import LogComparison, suggest_correction
from planner.plan.plan import Plan
from planner.present.memory.comparison import versus_view
from planner.present.memory.log_comparison import LogView, log_view

_LOG_HEADS: Final = (
    TableColumn("Part", flexible=True),
    TableColumn("Estimated", "right", flexible=True),
    TableColumn("Measured", "right", flexible=True),
    TableColumn("Difference", "right"),
    TableColumn("In range", "right"),
)
_STDIN: Final = "-"


def corrected_plan_and_comparison(
    plan: Plan, catalog: Catalog, arguments: argparse.Namespace
) -> tuple[Plan, LogComparison | None]:
    """Return `plan` with the correction of `--correct`, and the comparison with the log of `--log`, None without it.

    Raises:
        LogError: If the log cannot be read.
        SpecError: If the log has nothing to compare, or no correction can be derived from the log.
    """
    log = named_log(arguments.log) if arguments.log is not None else None
    comparison = compare_plan(plan, catalog, read_named_log(log)) if log else None
    if arguments.correct:
        evaluation = evaluate(plan.evolve(corrections=()), catalog)
        correction = (
            _correction_by_log(comparison, evaluation, log) if comparison and log else _saved_correction(evaluation)
        )
        plan = plan.evolve(corrections=with_correction(plan.corrections, correction))
    return plan, comparison


def comparison_block(comparison: LogComparison, width: int | None) -> str:
    """Return the comparison with a log as text: sentence, table, notes and reasons for differences."""
    view, prose = log_view(comparison), prose_width(width)
    rows = [[row.title, row.predicted, row.actual, row.difference, row.in_range] for row in view.rows]
    blocks = (
        "\n".join(wrap(text, prose) for text in (view.sentence, view.subject)),
        table(_LOG_HEADS, rows, width),
        "\n".join(wrap(text, prose, "- ") for text in _note_lines(view)),
    )
    return "\n\n".join(block for block in blocks if block)


def _note_lines(view: LogView) -> tuple[str, ...]:
    return (*view.notes, *(f"{row.title}: {row.why}" for row in view.rows))


def named_log(name: str) -> Log:
    """Return the log in the file `name`, or from standard input if it is `-`.

    Raises:
        LogError: If it cannot be read.
    """
    if name != _STDIN:
        return open_log(Path(name))
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    return pasted_log(decode_log(data), datetime.now().astimezone().date(), "standard input")


def read_named_log(log: Log) -> LogReading:
    """Return the reading of `log`.

    Raises:
        LogError: If nothing in it is recognized; it names the log.
    """
    try:
        return read_log(log.text)
    except LogError as error:
        raise LogError(f"{log.name}: {error.message}", error.hint) from error


def _correction_by_log(comparison: LogComparison, evaluation: Evaluation, log: Log) -> Correction:
    correction = suggest_correction(comparison, evaluation, log.date, log.digest)
    if correction is None:
        reason = "no correction can be derived from this log"
        hint = "It needs a GPU, a log of the plan's software, and a run with the plan's settings."
        raise SpecError("--correct", reason, hint)
    save_correction(corrections_file(), correction)
    return correction


def _saved_correction(evaluation: Evaluation) -> Correction:
    key = evaluation.correction_key
    correction = next((saved for saved in load_corrections(corrections_file()) if saved.key == key), None)
    if correction is None:
        raise SpecError("--correct", "no correction is saved for this model, software and GPU", "Add --log FILE.")
    return correction


_PLAN_HEADS: Final = (
    TableColumn("GiB", flexible=True),
    TableColumn("Plan", "right"),
    TableColumn("Other", "right"),
    TableColumn("Difference", "right"),
)


def other_plan(word: str, plan: Plan, catalog: Catalog) -> Plan:
    """Return the plan that `--versus` names: a plan file, or `plan` with other cards (`2 x RTX 3090`) or another model.

    Raises:
        PlannerError: If `word` is none of these, or the file cannot be read.
    """
    if is_plan_file(Path(word)):
        return load_plan(word)
    try:
        (cards,) = named_cards((word,), catalog)
    except AmbiguousNameError:
        raise
    except SpecError:
        return plan.evolve(model=named_plan(word, catalog).model)
    return plan.evolve(gpu=cards.id, count=cards.count, workload=plan.workload.evolve(gpus=()))


def versus_block(evaluation: Evaluation, comparison: PlanComparison, catalog: Catalog, width: int | None) -> str:
    """Return the comparison of two plans as text: their verdicts, differing settings, and memory terms side by side."""
    view, prose = versus_view(evaluation, comparison, catalog), prose_width(width)
    sentences = (view.sentence, f"Other: {view.other_subject}", view.other.answer)
    rows = [[row.title, *row.gib_texts] for row in view.rows]
    blocks = (
        "\n".join(wrap(sentence, prose) for sentence in sentences if sentence),
        "\n".join(wrap(line, prose, "- ") for line in view.settings),
        table(_PLAN_HEADS, rows, width) if rows else "",
    )
    return "\n\n".join(block for block in blocks if block)
