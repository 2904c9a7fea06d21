"""`fit --versus`: the plan beside another."""

from pathlib import Path
from typing import Final

from planner.cli.cards import named_cards
from planner.cli.report import prose_width, wrapped
from planner.cli.subjects import plan_about
from planner.cli.table import Head, table
from planner.errors import AmbiguousNameError, SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.files import is_plan_file, load_plan
from planner.plan.plan import Plan
from planner.plan.versus import Versus
from planner.present.memory.comparison import versus_view

_HEADS: Final = (
    Head("GiB", flexible=True),
    Head("Plan", "right"),
    Head("Other", "right"),
    Head("Difference", "right"),
)


def other_plan(word: str, plan: Plan, catalog: Catalog) -> Plan:
    """Return the plan in the file `word`, or `plan` on the cards (`2 x RTX 3090`) or with the model of that name.

    Raises:
        PlannerError: If it is none of them, or the file cannot be read.
    """
    if is_plan_file(Path(word)):
        return load_plan(word)
    try:
        (cards,) = named_cards((word,), catalog)
    except AmbiguousNameError:
        raise
    except SpecError:
        return plan.evolve(model=plan_about(word, catalog).model)
    return plan.evolve(gpu=cards.id, count=cards.count, workload=plan.workload.evolve(gpus=()))


def versus_block(evaluation: Evaluation, found: Versus, catalog: Catalog, width: int | None) -> str:
    """Return both answers, what is asked differently and the parts of both as text."""
    view, prose = versus_view(evaluation, found, catalog), prose_width(width)
    words = (view.sentence, f"Other: {view.other_subject}", view.other.answer)
    rows = [[row.title, *row.texts] for row in view.rows]
    blocks = (
        "\n".join(wrapped(sentence, prose) for sentence in words if sentence),
        "\n".join(wrapped(line, prose, "- ") for line in view.settings),
        table(_HEADS, rows, width) if rows else "",
    )
    return "\n\n".join(block for block in blocks if block)
