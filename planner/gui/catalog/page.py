"""A table of records with the details of one, narrowed by words, facets and ranges at its side."""

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Final

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSplitter, QStackedWidget, QWidget

from planner.gui.catalog.conditions import ChipRow, EmptyResult
from planner.gui.catalog.describe import Described
from planner.gui.catalog.detail import DetailPane
from planner.gui.catalog.facets import FacetPanel
from planner.gui.catalog.filters import NameSearch, RecordFilter, conditions, culprit, groups
from planner.gui.catalog.lookups import Lookups
from planner.gui.catalog.scatter.panel import ScatterPanel
from planner.gui.catalog.settings import View
from planner.gui.settings import TableLayout
from planner.gui.theme import Theme
from planner.gui.widgets.layout import in_column, in_row, set_tab_order, tab_stops
from planner.gui.widgets.marks import verdict_mark
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.present.columns import Column

_COUNT_DELAY_MS: Final = 50


class Page(QWidget):
    """A table of records with the details of one.

    It shows what passes `filter`, which begins as `everything`; filters are saved in the settings' field `saved_in`.
    `counted` says that other rows are shown than before, `searched` that another text is searched for, which the person
    need not have typed, `comparison_wanted` carries the ids of records to put side by side. Subclasses have the
    records, judge and describe them, put one into the plan and name the one to begin with.
    """

    counted = Signal()
    searched = Signal(str)
    comparison_wanted = Signal(object)
    key: ClassVar[str]
    title: ClassVar[str]
    noun: ClassVar[str]
    export_fields: ClassVar[tuple[str, ...]]
    everything: ClassVar[RecordFilter]
    saved_in: ClassVar[str]

    def __init__(
        self, workspace: Workspace, theme: Theme, lookups: Lookups, columns: Sequence[Column[Any]], usual: TableLayout
    ) -> None:
        super().__init__()
        self.workspace, self.theme, self.lookups = workspace, theme, lookups
        self.model = RecordTableModel(columns, attrgetter("id"), self)
        self.table = RecordTable(
            self.model, theme, usual, {"fits": lambda row: verdict_mark(row.verdict)}, name=self.title
        )
        self.detail = DetailPane(theme)
        self._filter = self.everything
        self._latest = ""
        self._hardware = workspace.catalog.hardware
        rows = self.plain_rows()
        self._names = self._named(rows)
        self.facets = FacetPanel(theme, workspace.settings, self.everything, rows)
        self.chips = ChipRow(theme)
        self.empty = EmptyResult(theme, self.everything)
        # The counts are for the eye that wanders to the side; the table answers a keystroke first.
        self._counting = QTimer(self, singleShot=True, interval=_COUNT_DELAY_MS)
        self._counting.timeout.connect(self.count_facets)
        self.results = QStackedWidget()
        for result in (self.table, self.empty):
            self.results.addWidget(result)
        self.view: View = "table"
        self._planned: str | None = None
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setChildrenCollapsible(False)
        middle = QWidget()
        self.middle = in_column(self.chips, (self.results, 1), owner=middle, spacing=theme.spacing.small)
        for pane in (self.facets, middle, self.detail):
            self.splitter.addWidget(pane)
        self.splitter.setStretchFactor(1, 1)
        in_row(self.splitter, owner=self)
        self._add_actions()
        self.table.current_changed.connect(self.describe_current)
        self.table.record_activated.connect(self.use)
        self.detail.used.connect(self.use_current)
        self.detail.comparison_wanted.connect(self.compare_current)
        self.model.modelReset.connect(self._on_reset)
        self.table.selectionModel().selectionChanged.connect(self._mark_points)
        self.table.current_changed.connect(self._mark_points)
        for narrowed in (self.facets.changed, self.chips.lifted, self.empty.lifted):
            narrowed.connect(self.narrow)
        lookups.found.connect(self._on_found)

    def plain_rows(self) -> Sequence[Any]:
        """Return the records of the catalog, of which nothing beside their own figures need be known."""
        raise NotImplementedError

    def judged_rows(self) -> Sequence[Any]:
        """Return the records of the catalog, judged by the plan."""
        raise NotImplementedError

    def describe(self, record: Any) -> Described:  # noqa: ANN401  # each page has records of its own
        """Return what to say of `record` under the plan."""
        raise NotImplementedError

    def use(self, record: Any) -> None:  # noqa: ANN401  # as above
        """Put `record` into the plan."""
        raise NotImplementedError

    def export_rows(self) -> list[dict[str, object]]:
        """Return what is shown, as flat rows with sources."""
        raise NotImplementedError

    def planned(self) -> str | None:
        """Return the id of the record that the plan uses, or of one to begin with; none where nothing offers itself."""
        raise NotImplementedError

    @property
    def filter(self) -> RecordFilter:
        """Return what the table is narrowed to."""
        return self._filter

    def search(self, text: str) -> None:
        """Show only what has every word of `text` and is within the bounds that it names."""
        self.narrow(self._filter.with_query(text=text), "text")

    def narrow(self, wanted: RecordFilter, latest: str = "") -> None:
        """Show only what passes `wanted`; `latest` is the key of the condition that was changed last."""
        text_before = self._filter.query.text
        self._filter, self._latest = wanted, latest
        self.model.set_filter(None if wanted.is_empty else self._passing)
        self.show_rows()
        self._counting.start()
        self.facets.show_filter(wanted)
        self.chips.show_conditions([found for found in conditions(wanted) if found.key != "text"])
        if wanted.query.text != text_before:
            self.searched.emit(wanted.query.text)

    def about(self, _text: str) -> str:
        """Return what is known of what is searched for though the page has no such record."""
        return ""

    @Slot()
    def count_facets(self) -> None:
        """Show how many records each value of a facet would show."""
        self.facets.show_counts(self._filter.counts(self._having_words()))

    @Slot()
    def _on_found(self) -> None:
        self.judge()
        self.describe_current()

    def _passing(self, _rows: Sequence[Any]) -> frozenset[str]:
        if self._filter.by_name_only:
            return self._names.having(self._filter.asked.words)
        return self._filter.passing(self._having_words())

    def _having_words(self) -> Sequence[Any]:
        if not self._filter.asked.words:
            return self.model.all_records
        names = self._names.having(self._filter.asked.words)
        return [row for name in names if (row := self.model.find(name)) is not None]

    def _named(self, rows: Sequence[Any]) -> NameSearch:
        return NameSearch([self.everything.of.record_of(row) for row in rows])

    @cached_property
    def scatter(self) -> ScatterPanel:
        """Return the scatter plot of the rows, which is built when it is first wanted."""
        panel = ScatterPanel(self.workspace, self.theme, self.key, self.model)
        panel.chosen.connect(self.table.choose)
        panel.boxed.connect(self.table.select_names)
        panel.used.connect(self.use_current)
        panel.failed.connect(self.workspace.failed)
        self.results.addWidget(panel)
        return panel

    def column_menu(self) -> QMenu:
        """Return a new menu to sort and to choose columns."""
        return self.table.column_menu()

    def show_view(self, view: View) -> None:
        """Show the rows as a table or as a plot."""
        self.view = view
        if view == "scatter":
            self.scatter.show_rows()
            self._mark_points()
            self._order_tabs()
        self.show_rows()

    def show_rows(self) -> None:
        """Show what is left, or why nothing is."""
        if not self.model.rowCount():
            found = culprit(self._filter, self.model.all_records, self._latest)
            self.empty.explain(found, groups(self._filter), self.about(self._filter.query.text))
            self.results.setCurrentWidget(self.empty)
        else:
            self.results.setCurrentWidget(self.scatter if self.view == "scatter" else self.table)

    def enter(self) -> None:
        """Take the keyboard into what shows the rows."""
        if self.view == "scatter" and self.scatter.plot is not None:
            self.scatter.plot.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            self.table.enter()

    def judge(self) -> None:
        """Judge every record by the plan."""
        self.model.set_records(self.judged_rows())
        self.show_rows()
        self.count_facets()

    def refresh(self, _evaluation: Evaluation) -> None:
        """Show what follows from the plan; the record that it uses is chosen when the plan comes to use another."""
        if self._hardware is not self.workspace.catalog.hardware:
            self._hardware = self.workspace.catalog.hardware
            rows = self.plain_rows()
            self._names = self._named(rows)
            self.facets.follow(rows)
        self.judge()
        planned = self.planned()
        if planned != self._planned or self.table.current_id is None:
            self._planned = planned
            if planned is not None and planned != self.table.current_id:
                self.table.choose(planned)  # which has it described
                return
        self.describe_current()

    @Slot()
    def use_current(self) -> None:
        """Put the record under the keyboard into the plan."""
        if self.table.current_record is not None:
            self.use(self.table.current_record)

    @Slot()
    def compare_current(self) -> None:
        """Ask for the selected records to be put side by side, or for the one under the keyboard."""
        chosen = [self.model.identify(record) for record in self.table.selected_records]
        current = [] if self.table.current_id is None else [self.table.current_id]
        self.comparison_wanted.emit(tuple(chosen or current))

    def restore(self, sizes: Sequence[int]) -> None:
        """Arrange table and panes as they were left; `sizes` are the panes' widths at first.

        Widths of other panes than there are now, which an older version left, are passed over.
        """
        current = self.workspace.settings.current
        self.table.arrange(current.tables.get(self.key, self.table.usual))
        left = current.splitters.get(f"catalog-{self.key}", ())
        self.splitter.setSizes(list(left if len(left) == len(sizes) else sizes))
        self.table.arranged.connect(self._remember_table)
        self.splitter.splitterMoved.connect(self._remember_splitter)

    def _add_actions(self) -> None:
        for words, run in (
            ("&Use", self.use_current),
            ("Co&mpare", self.compare_current),
            ("&Copy rows", self.table.copy_selected),
        ):
            action = QAction(words, self.table)
            action.triggered.connect(run)
            self.table.addAction(action)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def _order_tabs(self) -> None:
        """Let the tab key go through the plot before the details: what is built late comes last by itself."""
        layout = self.scatter.layout()
        if layout is not None:
            set_tab_order((self.table, *tab_stops(layout)))

    @Slot()
    def _on_reset(self) -> None:
        self.counted.emit()
        if self.view == "scatter":
            self.scatter.show_rows()

    @Slot()
    def _mark_points(self) -> None:
        if self.view == "scatter":
            chosen = [self.model.identify(record) for record in self.table.selected_records]
            self.scatter.mark(self.table.current_id, chosen)

    @Slot()
    def describe_current(self) -> None:
        """Describe the record under the keyboard in the pane."""
        record = self.model.find(self.table.current_id)
        if record is None:
            self.detail.clear()
        else:
            self.detail.describe(self.describe(record))

    @Slot()
    def _remember_table(self) -> None:
        self.workspace.settings.keep_table(self.key, self.table.layout_now())

    @Slot()
    def _remember_splitter(self) -> None:
        splitters = self.workspace.settings.current.splitters
        sizes = {f"catalog-{self.key}": tuple(self.splitter.sizes())}
        self.workspace.settings.update(splitters={**splitters, **sizes})
