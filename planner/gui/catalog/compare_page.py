"""Comparison of accelerators and systems in the catalog: its page, and its table with one column for each entry."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeGuard

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QPushButton,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from planner.cost.card_prices import CardPrices
from planner.cost.figure import Figure
from planner.gui.choices import hardware_choices, several_of
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import check_box, push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.popover import SearchPopover
from planner.gui.widgets.result_menu import save_as
from planner.gui.workspace import Workspace
from planner.hardware.gpu import Gpu
from planner.plan.catalog import Catalog
from planner.plan.placement import Placement, PlacementTarget, place_on_all
from planner.plan.plan import Plan
from planner.plan.prices import buying_prices, prices_of
from planner.present.catalog.comparison import (
    MAX_COMPARED,
    ComparedCell,
    ComparedFigureRow,
    ComparisonEntry,
    card_entry,
    compared_notes,
    comparison_answer,
    comparison_markdown,
    comparison_rows,
    side_by_side,
    system_entry,
)
from planner.present.catalog.gpu_row import GpuRow, gpu_row_without_plan
from planner.present.columns import rows_to_csv
from planner.present.format import NO_FIGURES

_PlacementsAndPrices = tuple[Mapping[str, Placement], Mapping[str, CardPrices], Mapping[str, Figure]]
"""The plan's placement on each entry, and what the cards cost by kind of price and as estimates assume it."""
_BAR: Final = 3
_TITLE_WIDTH: Final = 225
_NARROWEST: Final = 120
_PICTURE_SCALE: Final = 2
_COUNTS: Final = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1}
_MIDDLE: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_PADDING: Final = 14
_HEADER_MARGIN: Final = 8  # free space that the style adds beside a title
_TALL: Final = 1_000
_NO_PARENT: Final = QModelIndex()
Index = QModelIndex | QPersistentModelIndex


class CompareModel(QAbstractTableModel):
    """Table model with a heading row for each group of figures; the first column holds the titles."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bold = theme.font(bold=True)
        self.entries: tuple[ComparisonEntry, ...] = ()
        self._lines: tuple[ComparedFigureRow | str, ...] = ()

    def show_rows(self, entries: Sequence[ComparisonEntry], rows: Sequence[ComparedFigureRow]) -> None:
        """Replace the entries and rows."""
        self.beginResetModel()
        self.entries = tuple(entries)
        lines: list[ComparedFigureRow | str] = []
        group = ""
        for row in rows:
            if row.group != group:
                group = row.group
                lines.append(group)
            lines.append(row)
        self._lines = tuple(lines)
        self.endResetModel()

    def row_or_heading(self, row_number: int) -> ComparedFigureRow | str:
        """Return the figures in a table row, or the text of a group heading."""
        return self._lines[row_number]

    def cell(self, index: Index) -> ComparedCell | None:
        """Return the figure at `index`, or None for a title or heading."""
        line = self._lines[index.row()]
        return None if isinstance(line, str) or index.column() == 0 else line.cells[index.column() - 1]

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of rows and headings."""
        return 0 if parent.isValid() else len(self._lines)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of columns: one per entry, and one for the titles."""
        return 0 if parent.isValid() else len(self.entries) + 1

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a figure's text, tooltip with the source, or text for screen readers, depending on `role`."""
        if not index.isValid():
            return None
        line, cell = self._lines[index.row()], self.cell(index)
        if role == Qt.ItemDataRole.DisplayRole:
            title = line if isinstance(line, str) else line.title
            return cell.text if cell is not None else title if index.column() == 0 else ""
        if role == Qt.ItemDataRole.ToolTipRole and cell is not None:
            return cell.tooltip or cell.text
        if role == Qt.ItemDataRole.AccessibleTextRole and cell is not None and isinstance(line, ComparedFigureRow):
            best = ", best" if cell.is_best else ""
            return f"{line.title} of {self.entries[index.column() - 1].title}: {cell.text}{best}"
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the titles of the compared entries."""
        if orientation == Qt.Orientation.Vertical or not 1 <= section <= len(self.entries):
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self.entries[section - 1].title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_MIDDLE) | Qt.TextFlag.TextWordWrap
        if role == Qt.ItemDataRole.FontRole:
            return self._bold
        return None


def _may_wrap(cell: ComparedCell | None) -> TypeGuard[ComparedCell]:
    """Return whether a cell's text may wrap; a figure with a bar, or the best figure, stays on one line."""
    return cell is not None and cell.share is None and not cell.is_best


class _CellDelegate(QStyledItemDelegate):
    """Paints a figure with its bar: bold with a check mark if best in its row, pale if all in the row are equal."""

    def __init__(self, model: CompareModel, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._model, self._theme = model, theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint one cell of the comparison."""
        line, cell = self._model.row_or_heading(index.row()), self._model.cell(index)
        area, space = option.rect, self._theme.spacing
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.fillRect(area, self._theme.color("selection" if chosen else "surface"))
        painter.fillRect(QRect(area.left(), area.bottom(), area.width(), 1), self._theme.color("border"))
        if chosen and option.widget.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(area.adjusted(0, 0, -1, -1))
        heading = isinstance(line, str)
        strong = heading or (cell is not None and cell.is_best)
        painter.setFont(self._theme.font(bold=strong))
        painter.setPen(self._theme.color(self._text_color_role(line, cell)))
        room = area.adjusted(space.small, 0, -space.small, 0)
        if _may_wrap(cell):
            painter.drawText(room, int(_MIDDLE) | Qt.TextFlag.TextWordWrap, cell.text)
            return
        if cell is not None and cell.is_best:
            side = self._theme.icon_side
            place = room.left(), room.top() + (room.height() - side) // 2
            painter.drawPixmap(*place, self._theme.icon("check", "ok").pixmap(QSize(side, side)))
            room.adjust(side + space.tiny, 0, 0, 0)
        text = str(index.data() or "")
        if cell is not None and painter.fontMetrics().horizontalAdvance(text) > room.width():
            painter.setFont(
                self._theme.font()
            )  # regular instead of bold rather than elided; the check mark still shows that it is best
        text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, int(_MIDDLE), text)
        if cell is not None and cell.share is not None:
            width = max(1, round(cell.share * (area.width() - 2 * space.small)))
            bar = QRect(area.left() + space.small, area.bottom() - _BAR - 1, width, _BAR)
            painter.fillRect(bar, self._theme.color("accent" if cell.is_best else "muted"))

    def _text_color_role(self, line: ComparedFigureRow | str, cell: ComparedCell | None) -> str:
        if isinstance(line, str):
            return "text"
        unknown = cell is not None and cell.text in NO_FIGURES
        return "muted" if unknown or not line.differs else "text"


class CompareTable(QTableView):
    """Comparison table; signals `used` and `removed` carry an entry's index, `counted` the change in its card count."""

    used = Signal(int)
    removed = Signal(int)
    counted = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.compared = CompareModel(theme, self)
        self.setModel(self.compared)
        self.setItemDelegate(_CellDelegate(self.compared, theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)  # as in the other tables: Tab leaves, arrow keys move between cells
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + _PADDING)
        header = self.horizontalHeader()
        header.setMinimumSectionSize(_NARROWEST)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        self.setAccessibleName("Comparison")
        self.compared.modelReset.connect(self._fit_table)
        theme.changed.connect(self.viewport().update)

    @property
    def place(self) -> int:
        """Return the index of the current entry, or 0 without a current entry."""
        return max(0, self.currentIndex().column() - 1)

    def picture(self) -> QPixmap:
        """Return a picture of the whole table, including the parts scrolled out of view, at twice its size."""
        other = CompareTable(self._theme)
        rows = [self.compared.row_or_heading(row) for row in range(self.compared.rowCount())]
        other.compared.show_rows(self.compared.entries, [row for row in rows if isinstance(row, ComparedFigureRow)])
        width = max(self.width(), _TITLE_WIDTH + _NARROWEST * len(self.compared.entries))
        other.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        other.fit_heights(width)
        other.resize(width, other.verticalHeader().length() + other.horizontalHeader().minimumHeight() + 2)
        pixmap = QPixmap(other.size() * _PICTURE_SCALE)
        pixmap.setDevicePixelRatio(_PICTURE_SCALE)
        other.render(pixmap)
        other.deleteLater()
        return pixmap

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Put the current entry into the plan (Enter), remove it (Delete), or change its number of cards (+ and -)."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.used.emit(self.place)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.removed.emit(self.place)
        elif event.key() in _COUNTS:
            self.counted.emit(_COUNTS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Repaint after a change of theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap long texts to the new width."""
        super().resizeEvent(event)
        self.fit_heights(self.viewport().width())

    def fit_heights(self, width: int) -> None:
        """Set the heights of the header and the rows for a table of `width` pixels."""
        room = (width - _TITLE_WIDTH) // max(1, len(self.compared.entries)) - 2 * self._theme.spacing.small
        bold, plain = QFontMetrics(self._theme.font(bold=True)), self.fontMetrics()
        titles = [entry.title for entry in self.compared.entries]
        self.horizontalHeader().setFixedHeight(_wrapped_height(bold, titles, room - _HEADER_MARGIN))
        for row in range(self.compared.rowCount()):
            line = self.compared.row_or_heading(row)
            words = [] if isinstance(line, str) else [cell.text for cell in line.cells if _may_wrap(cell)]
            self.verticalHeader().resizeSection(row, _wrapped_height(plain, words, room))

    def _fit_table(self) -> None:
        if self.compared.columnCount():
            self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
            self.horizontalHeader().resizeSection(0, _TITLE_WIDTH)
        self.fit_heights(self.viewport().width())


def _wrapped_height(metrics: QFontMetrics, texts: Sequence[str], room: int) -> int:
    """Return the height in pixels of the tallest of `texts`, wrapped to `room` pixels, plus padding."""
    within = QRect(0, 0, room, _TALL)
    heights = (metrics.boundingRect(within, Qt.TextFlag.TextWordWrap, text).height() for text in texts)
    return max(metrics.height(), *heights, 0) + _PADDING


class EmptyComparison(QWidget):
    """Page shown while the comparison is empty: the `add` button lists all records, `show_table` opens the table."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        space = theme.spacing
        self.add = push_button("&Add an accelerator or system…", "Choose what to compare", "primary")
        self.show_table = push_button("Select in the &table", "Go to the table, to select the rows to compare")
        explanation = (
            f"Compare up to {MAX_COMPARED} accelerators and systems: whether your plan fits on each, how long it "
            "takes, and what it costs. In the table, select rows and press Compare."
        )
        column = in_column(
            make_label("Nothing to compare yet", font=theme.font("title", bold=True)),
            make_label(explanation, "muted", wrap=True),
            in_row(self.add, self.show_table, STRETCH, spacing=space.small),
            STRETCH,
            owner=self,
            margins=space.huge,
            spacing=space.medium,
        )
        column.setAlignment(Qt.AlignmentFlag.AlignTop)


class ComparePage(QWidget):
    """Comparison of cards and systems.

    The signal `table_requested` asks the tab for the table, to select more records; `answered` says that `answer` may
    have changed.

    Entries are stored by id: `accelerators:rtx-4090`, `systems:dgx-h100`. The number of cards is the plan's unless the
    id names another (`accelerators:rtx-3090@2`); the number of systems is 1 unless it does (`systems:dgx-h100@2`).
    """

    table_requested = Signal()
    answered = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._placements: Mapping[str, Placement] = {}
        self._prices: Mapping[str, CardPrices] = {}
        self._buying: Mapping[str, Figure] = {}
        self._requested: object = None
        self.table = CompareTable(theme)
        self._nothing = EmptyComparison(theme)
        self._only = check_box("Only &differences", "Hide the lines in which all entries agree")
        self._add = push_button("&Add…", "Add an accelerator or a system to the comparison")
        self._fewer = QPushButton("Fe&wer GPUs")
        self._more = QPushButton("&More GPUs")
        self._use = push_button("&Use in the plan", "Make the selected entry the plan's hardware")
        self._remove = push_button("&Remove", "Take the selected entry out of the comparison")
        self._clear = push_button("C&lear", "Take all entries out of the comparison")
        self._notes = make_label(wrap=True)
        self._bar = QWidget()
        self._pages = QStackedWidget()
        self._lay_out()
        self.table.used.connect(self._on_entry_used)
        self.table.removed.connect(self._on_entry_removed)
        self.table.counted.connect(self.count_up)
        self._add.clicked.connect(partial(self.offer, self._add))
        self._nothing.add.clicked.connect(partial(self.offer, self._nothing.add))
        self._nothing.show_table.clicked.connect(self.table_requested)
        self._fewer.clicked.connect(partial(self.count_up, -1))
        self._more.clicked.connect(partial(self.count_up, 1))
        self._fewer.setToolTip("One fewer of the selected accelerator or system (-)")
        self._more.setToolTip("One more of the selected accelerator or system (+)")
        self._only.toggled.connect(self._on_only_differences_toggled)
        self._use.clicked.connect(self.use_current)
        self._remove.clicked.connect(self.remove_current)
        self._clear.clicked.connect(self.clear)

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the compared entries that are still in the catalog."""
        return tuple(entry.id for entry in self.entries())

    def entries(self) -> tuple[ComparisonEntry, ...]:
        """Return the compared entries, each with its number of cards or systems."""
        results = (self._entry_of_id(name) for name in self._workspace.settings.current.catalog.compared)
        return tuple(entry for entry in results if entry is not None)

    def add(self, names: Sequence[str]) -> None:
        """Add cards or systems to the comparison; beyond the maximum, the oldest entries are removed."""
        names_in_order = dict.fromkeys((*self.ids, *names))
        self._store_compared_ids(tuple(names_in_order)[-MAX_COMPARED:])

    def offer(self, anchor: QWidget) -> SearchPopover:
        """Open a list of all cards and systems below the widget `anchor`; the chosen one is added to the comparison."""
        choices, hint = hardware_choices(self._workspace), "Search accelerators and systems, e.g. 2 x DGX H100"
        popover = SearchPopover(self, self._theme, hint, typed=partial(several_of, choices))
        popover.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        popover.chosen.connect(self._on_record_chosen)
        popover.offer(anchor, choices)
        return popover

    @Slot(object)
    def _on_record_chosen(self, key: object) -> None:
        self.add((str(key),))

    @Slot()
    def clear(self) -> None:
        """Remove all entries from the comparison."""
        self._store_compared_ids(())

    @Slot()
    def use_current(self) -> None:
        """Put the current card or system of the comparison into the plan."""
        if self.ids:
            self._on_entry_used(self.table.place)

    @Slot()
    def remove_current(self) -> None:
        """Remove the current entry from the comparison."""
        if self.ids:
            self._on_entry_removed(self.table.place)

    def count_up(self, step: int) -> None:
        """Add `step`, 1 or −1, to the number of cards or systems in the current entry, which stays at least 1."""
        if not self.ids:
            return
        entry = self.entries()[self.table.place]
        number = max(1, (entry.count if entry.system is None else entry.machines) + step)
        one_system = entry.system is not None and number == 1
        name = entry.id.partition("@")[0]
        changed = name if one_system else f"{name}@{number}"
        self._store_compared_ids(tuple(dict.fromkeys(changed if name == entry.id else name for name in self.ids)))

    def refresh(self) -> None:
        """Show the entries, and evaluate the current plan on each in the background."""
        entries = self.entries()
        self._pages.setCurrentIndex(0 if entries else 1)
        self._bar.setVisible(bool(entries))
        plan, catalog = self._workspace.plan, self._workspace.catalog
        targets = {entry.id: entry.cards for entry in entries}
        requested = (plan, catalog, targets)
        if requested != self._requested:
            self._requested, self._placements, self._prices = requested, {}, {}
            if targets:
                work = partial(_placements_and_prices, plan, catalog, targets, datetime.now(UTC).date())
                self._tasks.run("catalog-compare", work, self._show_placements_and_prices, self._on_error)
        self._show_entries()

    def answer(self) -> str:
        """Return which of the entries are the best for the plan; empty while this is not known."""
        return comparison_answer(self.entries(), side_by_side(self.entries(), self._placements))

    def as_markdown(self) -> str:
        """Return the comparison as a Markdown table."""
        return comparison_markdown(self.entries(), self._shown_rows())

    def as_csv(self) -> str:
        """Return the comparison as CSV."""
        return rows_to_csv(comparison_rows(self.entries(), self._shown_rows()))

    def picture(self) -> QPixmap:
        """Return the comparison as a picture."""
        return self.table.picture()

    def save_to(self, path: Path) -> None:
        """Write the comparison as Markdown, CSV or PNG, depending on the ending of `path`.

        Raises:
            PlannerError: If the file cannot be written.
        """
        save_as(path, {".md": self.as_markdown, ".csv": self.as_csv, ".png": self.picture}, ".png")

    def _shown_rows(self) -> tuple[ComparedFigureRow, ...]:
        rows = side_by_side(self.entries(), self._placements)
        return tuple(row for row in rows if row.differs or not self._only.isChecked())

    def _show_entries(self) -> None:
        with QSignalBlocker(self._only):
            self._only.setChecked(self._workspace.settings.current.catalog.only_differences)
        place = self.table.currentIndex()
        row, column = place.row(), place.column()
        self.table.compared.show_rows(self.entries(), self._shown_rows())
        notes = compared_notes(self.entries(), self._placements)
        self._notes.setText("\n".join(notes))
        self._notes.setVisible(bool(notes))
        last = self.table.compared.columnCount() - 1
        if last > 0:
            self.table.setCurrentIndex(self.table.compared.index(max(row, 1), min(max(column, 1), last)))
        self.answered.emit()

    def _show_placements_and_prices(self, results: _PlacementsAndPrices) -> None:
        self._placements, self._prices, self._buying = results
        self._show_entries()

    def _on_error(self, error: BaseException) -> None:
        self._requested = None  # so that the same request is tried again
        self._workspace.report(error)

    def _entry_of_id(self, entry_id: str) -> ComparisonEntry | None:
        record_key, _, number = entry_id.partition("@")
        kind, _, record = record_key.partition(":")
        hardware, several = self._workspace.catalog.hardware, int(number) if number.isdigit() else None
        if kind == "systems":
            system = next((system for system in hardware.systems if system.id == record), None)
            return (
                None
                if system is None
                else system_entry(entry_id, system, hardware, self._gpu_row_without_plan, max(1, several or 1))
            )
        card = next((gpu for gpu in hardware.gpus if gpu.id == record), None)
        if card is None:
            return None
        count = self._workspace.plan.count if several is None else several
        return card_entry(entry_id, self._gpu_row_without_plan(card), max(1, count))

    def _gpu_row_without_plan(self, gpu: Gpu) -> GpuRow:
        catalog = self._workspace.catalog
        software = catalog.software if self._prices else ()  # loaded with the prices by the background thread
        return gpu_row_without_plan(gpu, catalog.hardware, self._prices, software, self._buying.get(gpu.id))

    def _store_compared_ids(self, entry_ids: tuple[str, ...]) -> None:
        self._workspace.settings.update_catalog(compared=entry_ids)
        self.refresh()

    @Slot(int)
    def _on_entry_used(self, entry_index: int) -> None:
        entry = self.entries()[entry_index]
        if entry.row is None:
            return
        with self._workspace.reporting():
            label = f"GPU {entry.name}" if entry.system is None else f"GPUs of {entry.title}"
            self._workspace.answer(label, {"gpu": entry.row.id, "count": entry.count})

    @Slot(int)
    def _on_entry_removed(self, entry_index: int) -> None:
        self._store_compared_ids((*self.ids[:entry_index], *self.ids[entry_index + 1 :]))

    @Slot(bool)
    def _on_only_differences_toggled(self, is_checked: bool) -> None:
        self._workspace.settings.update_catalog(only_differences=is_checked)
        self._show_entries()

    def _lay_out(self) -> None:
        space = self._theme.spacing
        legend = "✓ best value; rows with equal values are pale."
        in_row(
            (make_label(legend, "muted", wrap=True), 1),
            self._only,
            self._add,
            self._fewer,
            self._more,
            self._use,
            self._remove,
            self._clear,
            owner=self._bar,
            spacing=space.small,
        )
        self._pages.addWidget(self.table)
        self._pages.addWidget(self._nothing)
        in_column(
            self._bar, self._notes, (self._pages, 1), owner=self, margins=(0, 0, 0, space.small), spacing=space.small
        )


def _placements_and_prices(
    plan: Plan, catalog: Catalog, targets: Mapping[str, PlacementTarget | None], today: date
) -> _PlacementsAndPrices:
    """Return the plan's placement on each of `targets`, and the prices of the cards; runs in the background."""
    cards = {target.gpu_id for target in targets.values() if target is not None}
    _ = catalog.software
    prices = {gpu: prices_of(catalog.hardware.gpu(gpu), catalog, today) for gpu in cards}
    return place_on_all(plan, targets, catalog, today), prices, buying_prices(catalog, today)
