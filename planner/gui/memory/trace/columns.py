"""The columns of the tables of a trace."""

from functools import partial
from typing import Final

from planner.present import format as fmt
from planner.present.columns import Column, numbers, words
from planner.present.trace.view import CATEGORY_TITLES, AliveRow, ModuleRow
from planner.trace.recording import CATEGORIES, Category

_NOTHING: Final = "–"


def _size(value: float) -> str:
    return fmt.size(round(value))


def _held(row: ModuleRow, category: Category) -> int | None:
    return dict(row.shares).get(category)


def _of_category(category: Category) -> Column[ModuleRow]:
    return numbers(
        category,
        CATEGORY_TITLES[category],
        partial(_held, category=category),
        show=_size,
        unknown=_NOTHING,
        width=11,
        meter=True,
        shown=False,
    )


MODULE_COLUMNS: Final[tuple[Column[ModuleRow], ...]] = (
    words("module", "Module", lambda row: row.title, width=24, tooltip=lambda row: row.title),
    words("class", "Class", lambda row: row.class_name, width=16),
    numbers(
        "own",
        "Own parameters",
        lambda row: row.parameters,
        show=lambda value: fmt.parameters(round(value)),
        width=12,
    ),
    numbers(
        "bytes",
        "At the peak",
        lambda row: row.bytes,
        show=_size,
        width=12,
        meter=True,
        tooltip=lambda row: f"{row.exact}, {row.share_text} of the peak\n{row.holds}".strip(),
    ),
    *map(_of_category, CATEGORIES),
)

ALIVE_COLUMNS: Final[tuple[Column[AliveRow], ...]] = (
    words("operator", "Made by", lambda row: row.operator, width=28),
    numbers(
        "bytes",
        "Bytes",
        lambda row: row.bytes,
        show=_size,
        width=12,
        meter=True,
        tooltip=lambda row: f"{row.exact}, {row.share_text} of the peak",
    ),
    words("category", "What", lambda row: row.title, width=16),
    words("shape", "Shape", lambda row: row.shape, unknown=_NOTHING, width=24),
    words("module", "Module", lambda row: row.module, unknown=_NOTHING, width=24),
    words("line", "Line", lambda row: row.place, unknown=_NOTHING, width=20, tooltip=lambda row: row.line),
)


def alive_id(row: AliveRow) -> str:
    """Return what tells a row of what is alive from the others."""
    return "\t".join((row.category, row.module, row.operator, row.line, row.shape))
