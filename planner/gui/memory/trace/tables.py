"""What a trace found as tables: modules, what is alive at the peak, reserved memory, differences and notes."""

from functools import partial
from typing import Any, Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from planner.gui.memory.trace.columns import ALIVE_COLUMNS, MODULE_COLUMNS, alive_id
from planner.gui.settings import TableLayout
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.record_export import to_tsv
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.gui.widgets.table_layout import default_layout
from planner.present.trace import DifferenceRow, FigureRow, TraceView
from planner.trace.recording import CATEGORIES

_HEIGHT: Final = 260
_ALWAYS_COLUMNS: Final = 4
_TITLES: Final = ("Modules", "Alive at the peak", "Reserved memory", "Assumed and not seen")


class TraceTables(QWidget):
    """One of the tables at a time, chosen by its name."""

    chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.modules = _table(RecordTableModel(MODULE_COLUMNS, lambda row: row.path, self), theme, None)
        self.alive = _table(RecordTableModel(ALIVE_COLUMNS, alive_id, self), theme, "bytes")
        self.modules.setAccessibleName(self.tr("Modules and what they hold at the peak"))
        self.alive.setAccessibleName(self.tr("What is alive at the peak"))
        self.reserved, self.differences = _Page(theme), _Page(theme)
        self._pages = QStackedWidget()
        self._group = QButtonGroup(self)
        self._bar = QHBoxLayout()
        self._bar.setSpacing(theme.spacing.tiny)
        for title, page in zip(_TITLES, (self.modules, self.alive, self.reserved, self.differences), strict=True):
            self._add(title, page)
        self._bar.addStretch(1)
        self._group.buttons()[0].setChecked(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addLayout(self._bar)
        layout.addWidget(self._pages, 1)
        self.setMinimumHeight(_HEIGHT)

    def set_view(self, view: TraceView) -> None:
        """Show another trace; the columns are those of the categories that hold anything."""
        held = {category for row in view.modules for category, _ in row.shares}
        self.modules.records().set_records(view.modules)
        for category in CATEGORIES:
            self.modules.setColumnHidden(self.modules.records().column_of(category), category not in held)
        self.alive.records().set_records(view.alive)
        self.reserved.show_lines(_reserved_lines(view))
        self.differences.show_lines([*map(_difference_line, view.differences), *_note_lines(view)])

    def show_page(self, number: int) -> None:
        """Show the table of this number."""
        self._group.buttons()[number].setChecked(True)
        self._pages.setCurrentIndex(number)

    def _add(self, title: str, page: QWidget) -> None:
        button = QToolButton()
        button.setText(title)
        button.setCheckable(True)
        button.clicked.connect(partial(self._on_clicked, self._pages.count()))
        self._group.addButton(button)
        self._bar.addWidget(button)
        self._pages.addWidget(page)

    def _on_clicked(self, number: int, _checked: bool = True) -> None:
        self.show_page(number)
        self.chosen.emit(number)


class _Page(QScrollArea):
    """Pairs of a heading and a text."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Details of the trace"))
        self._text = make_label(wrap=True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setWidget(self._text)

    @property
    def text(self) -> str:
        """Return what is shown."""
        return self._text.text()

    def show_lines(self, lines: list[str]) -> None:
        """Show other paragraphs."""
        self._text.setText("\n\n".join(lines))
        self._text.setAccessibleName(self._text.text())

    def minimumSizeHint(self) -> QSize:
        """Ask for no room of its own."""
        return QSize()


def _table(model: RecordTableModel[Any], theme: Theme, sort_key: str | None) -> RecordTable:
    usual: TableLayout = default_layout(model.columns, sort_key, descending=True)
    return RecordTable(model, theme, usual)


def trace_text(view: TraceView) -> str:
    """Return the tables as text."""
    alive = to_tsv(ALIVE_COLUMNS, view.alive)
    modules = to_tsv(MODULE_COLUMNS[:_ALWAYS_COLUMNS], view.modules)
    parts = (
        view.subject,
        alive.rstrip(),
        modules.rstrip(),
        *_reserved_lines(view),
        *map(_difference_line, view.differences),
    )
    return "\n\n".join(parts)


def _reserved_lines(view: TraceView) -> list[str]:
    sentence = [view.runs_out] if view.runs_out else []
    return [*sentence, "\n".join(map(_figure_line, view.reservation)), view.traced_with]


def _figure_line(row: FigureRow) -> str:
    return f"{row.title}: {row.text}{f' ({row.exact})' if row.exact else ''}"


def _difference_line(row: DifferenceRow) -> str:
    bounds = f" (between {row.range_text})" if row.range_text else ""
    where = f"\nWhere: {row.place}" if row.place else ""
    return f"{row.name}: {row.amount}{bounds}\n{row.explanation}{where}\nSource: {row.source}"


def _note_lines(view: TraceView) -> list[str]:
    return [] if view.differences else ["Nothing was assumed, and nothing is known to have gone unseen."]
