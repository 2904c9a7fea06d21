"""How a person has arranged a table: which columns, in which order, how wide, sorted by what."""

from typing import Any, Final

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QTableView

from planner.gui.settings import TableLayout
from planner.gui.theme import ICON_PIXELS
from planner.gui.widgets.record_model import RecordTableModel
from planner.present.columns import Column

PADDING: Final = 8
"""Pixels on each side of what stands in a cell."""
_SLACK: Final = 4  # a header's font can be a shade wider than the table's


def default_layout(
    columns: tuple[Column[Any], ...], sort_key: str | None = None, descending: bool = False
) -> TableLayout:
    """Return the arrangement that `columns` declare."""
    shown = tuple(column.key for column in columns if column.shown)
    return TableLayout(shown=shown, sort_key=sort_key, descending=descending)


def capture(view: QTableView, model: RecordTableModel[Any]) -> TableLayout:
    """Return the arrangement of `view` as it stands."""
    header = view.horizontalHeader()
    order = [header.logicalIndex(visual) for visual in range(header.count())]
    shown = tuple(model.columns[position].key for position in order if not header.isSectionHidden(position))
    widths = {key: header.sectionSize(model.column_of(key)) for key in shown}
    usual = {key: usual_width(model.columns[model.column_of(key)], view.fontMetrics()) for key in shown}
    return TableLayout(
        shown=shown,
        widths={key: width for key, width in widths.items() if width != usual[key]},
        sort_key=model.sort_key,
        descending=model.descending,
    )


def arrange(view: QTableView, model: RecordTableModel[Any], layout: TableLayout) -> None:
    """Arrange the columns of `view` as `layout` says; the first column stays first and is always shown."""
    header = view.horizontalHeader()
    known = {column.key: position for position, column in enumerate(model.columns)}
    wanted = [0, *(known[key] for key in layout.shown if known.get(key))]
    rest = [position for position in range(len(model.columns)) if position not in wanted]
    for visual, position in enumerate((*wanted, *rest)):
        header.moveSection(header.visualIndex(position), visual)
        column = model.columns[position]
        header.resizeSection(position, layout.widths.get(column.key, usual_width(column, view.fontMetrics())))
        header.setSectionHidden(position, position not in wanted)


def usual_width(column: Column[Any], metrics: QFontMetrics) -> int:
    """Return the declared width in pixels, and no less than the title, or the unit with its arrow, takes."""
    title = metrics.horizontalAdvance(column.title) + _SLACK
    unit = metrics.horizontalAdvance(column.unit) + ICON_PIXELS
    return max(column.width * metrics.horizontalAdvance("0"), title, unit) + 2 * PADDING
