"""Commands that measure a plan, with what they should show, as text."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.launch.verify import ExpectedAmount, PlanCheck
from planner.memory.logs.reading import FigureName
from planner.plan.logs.log_amounts import RowName
from planner.present.memory.log_comparison import (
    FIGURE_TITLES,
    ROW_TITLES,
    estimated_figure_text,
    estimated_size_text,
)


class ExpectedRow(NamedTuple):
    """An amount that a command should show: its title, its estimate with its range, and the words beside it."""

    title: str
    estimated: str
    prints: str


class CheckView(NamedTuple):
    """A command that measures a plan, ready for display."""

    title: str
    command: str
    expected: tuple[ExpectedRow, ...]


def check_views(checks: tuple[PlanCheck, ...]) -> tuple[CheckView, ...]:
    """Return the commands that measure a plan, ready for display."""
    return tuple(CheckView(check.title, check.command.rstrip(), tuple(map(_row, check.expected))) for check in checks)


def _row(amount: ExpectedAmount) -> ExpectedRow:
    if amount.unit != "bytes":
        text = estimated_figure_text(amount.unit, amount.value, amount.low, amount.high)
        return ExpectedRow(_TITLES[amount.name], text, amount.prints)
    low, high = (None if bound is None else int(bound) for bound in (amount.low, amount.high))
    return ExpectedRow(_TITLES[amount.name], estimated_size_text(int(amount.value), low, high), amount.prints)


_TITLES: Final[Mapping[RowName | FigureName, str]] = dict((*ROW_TITLES.items(), *FIGURE_TITLES.items()))
