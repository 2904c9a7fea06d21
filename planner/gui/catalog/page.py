"""Base class of the catalog pages: filters, a table or plot of records, and details of the current record."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QSplitter, QStackedWidget, QToolButton, QWidget

from planner.gui.catalog.column_popover import ColumnPopover
from planner.gui.catalog.describe import RecordSummary
from planner.gui.catalog.detail import DetailPane
from planner.gui.catalog.facets import FacetPanel
from planner.gui.catalog.filters import (
    FITTING_VERDICTS,
    FilterCondition,
    NameSearch,
    RecordFilter,
    blocking_condition,
    conditions,
    grouped_conditions,
)
from planner.gui.catalog.lookups import Lookups
from planner.gui.catalog.scatter_panel import ScatterPanel
from planner.gui.settings import TableLayout, View
from planner.gui.theme import Theme, set_style_role
from planner.gui.threads import CalmTimer
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label, verdict_icon
from planner.gui.widgets.layout import STRETCH, FlowLayout, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.hardware.kinds import describe_kinds
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.columns import Column
from planner.present.memory.verdict import fitting_sentence

_COUNT_DELAY_MS: Final = 50
_HIDDEN_MS: Final = 50
_WIDE: Final = 1250
_MOST_EXTRA: Final = 120
"""From which width of the page the details grow, and by how many pixels at most."""


class ChipRow(QWidget):
    """Row with a removable chip per filter condition; `lifted` carries the filter without the removed condition."""

    lifted = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[FilterCondition, ...] = ()
        self._chips: list[QToolButton] = []
        self._flow = FlowLayout(theme.spacing.tiny)
        self._flow.setContentsMargins(theme.spacing.small, 0, 0, 0)
        self.setLayout(self._flow)
        self.hide()
        theme.changed.connect(self._update_chip_icons)

    def show_conditions(self, conditions: Sequence[FilterCondition]) -> None:
        """Show one chip per condition."""
        if tuple(conditions) == self._shown:
            return
        self._shown = tuple(conditions)
        for chip in self._chips:
            self._flow.removeWidget(chip)
            chip.setParent(None)
            chip.deleteLater()  # deferred: this chip may be the sender of the current click
        self._chips = [self._make_chip(condition) for condition in self._shown]
        self._update_chip_icons()
        self.setVisible(bool(self._chips))

    def _make_chip(self, condition: FilterCondition) -> QToolButton:
        chip = QToolButton()
        set_style_role(chip, "chip")
        chip.setText(condition.words)
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        chip.setAccessibleName(f"Remove the filter {condition.words}")
        chip.setToolTip(chip.accessibleName())
        chip.clicked.connect(partial(self.lifted.emit, condition.lifted))
        self._flow.addWidget(chip)
        return chip

    def _update_chip_icons(self) -> None:
        for chip in self._chips:
            chip.setIcon(self._theme.icon("close", "muted"))


class EmptyResult(QWidget):
    """Page shown when no record matches; `lifted` carries the filter without the condition that the user removed.

    `everything` is the filter without conditions; its kind names the records.
    """

    lifted = Signal(object)

    def __init__(self, theme: Theme, everything: RecordFilter) -> None:
        super().__init__()
        self._wider = self._everything = everything
        self._noun = everything.kind.noun
        self._words = make_label(font=theme.font("title"), wrap=True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._about = make_label(wrap=True)
        self._about.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._button = push_button("", "Show results again")
        in_column(
            STRETCH,
            self._words,
            self._about,
            (self._button, 0, Qt.AlignmentFlag.AlignHCenter),
            (STRETCH, 2),
            owner=self,
            margins=theme.spacing.huge,
            spacing=theme.spacing.large,
        )
        self._button.clicked.connect(self._on_remove_clicked)

    def explain(
        self, removable: tuple[FilterCondition, int] | None, active: Sequence[FilterCondition], about: str = ""
    ) -> None:
        """Explain why no record matches: name the `removable` condition, or else all `active` conditions.

        `removable` is a condition with the number of records that match without it. `about` explains why the catalog
        has no records for the search term.
        """
        if removable is None:
            self._wider = self._everything
            self._words.setText(f"No {self._noun} matches all filters.")
            listed = " · ".join(condition.words for condition in active)
            more = f"Removing a single filter is not enough: {listed}"
            self._button.setText("Clear all filters")
        else:
            condition, count = removable
            self._wider = condition.lifted
            left = fmt.plural(count, self._noun)
            quoted = condition.words if condition.words.startswith("“") else f"“{condition.words}”"
            self._words.setText(f"With {quoted}, no {self._noun} is left. Without it, there are {left}.")
            more = ""
            self._button.setText(f"Remove {quoted}")
        self._button.show()
        about_text = "\n".join(filter(None, (more, about)))
        self._about.setText(about_text)
        self._about.setVisible(bool(about_text))

    def ask_to_wait(self, text: str) -> None:
        """Show what is still loading, without which no record can match."""
        self._words.setText(text)
        self._about.hide()
        self._button.hide()

    @Slot()
    def _on_remove_clicked(self) -> None:
        self.lifted.emit(self._wider)


class Page(QWidget):
    """Catalog page with filters, records and details of the current record.

    The page shows the records that pass `filter`, initially `everything`; saved filters are in the settings' field
    `saved_in`. `counted` follows each change of the shown rows, `searched` carries a search text that the program set,
    `comparison_requested` the ids of records to compare. Subclasses provide the records with verdicts and details, put
    a record into the plan and name the initial record.
    """

    counted = Signal()
    searched = Signal(str)
    comparison_requested = Signal(object)
    key: ClassVar[str]
    title: ClassVar[str]
    noun: ClassVar[str]
    export_fields: ClassVar[tuple[str, ...]]
    everything: ClassVar[RecordFilter]
    saved_in: ClassVar[str]
    column_groups: ClassVar[Mapping[str, Sequence[str]]]
    column_sets: ClassVar[Mapping[str, Sequence[str]]] = {}

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        lookups: Lookups,
        columns: Sequence[Column[Any]],
        default_layout: TableLayout,
        price_key: str,
    ) -> None:
        super().__init__()
        self.workspace, self.theme, self.lookups = workspace, theme, lookups
        self.model = RecordTableModel(columns, attrgetter("id"), self, then=price_key)
        self.table = RecordTable(
            self.model, theme, default_layout, {"fits": lambda row: verdict_icon(row.verdict)}, name=self.title
        )
        self.detail = DetailPane(theme)
        self._filter = self.everything
        self._latest = ""
        self._hardware = workspace.catalog.hardware
        rows = self.rows_without_verdicts()
        self._names = self._name_index(rows)
        self.facets = FacetPanel(theme, workspace.settings, self.everything, rows)
        self.chips = ChipRow(theme)
        self.empty = EmptyResult(theme, self.everything)
        # The table responds to a keystroke first; the facet counts follow after a delay.
        self._counting = CalmTimer(self, _COUNT_DELAY_MS)
        self._counting.timeout.connect(self.count_facets)
        self._judging, self._describing = CalmTimer(self), CalmTimer(self)
        self._judging.timeout.connect(self._show_lookup_results)
        self._describing.timeout.connect(self.describe_current)
        self.results = QStackedWidget()
        for result in (self.table, self.empty):
            self.results.addWidget(result)
        self.view: View = "table"
        self._planned: str | None = None
        self._first: str | None = None
        self._is_opened = False
        self._default_widths: tuple[int, ...] = ()
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setChildrenCollapsible(False)
        middle = QWidget()
        self.middle = in_column(self.chips, (self.results, 1), owner=middle, spacing=theme.spacing.small)
        for pane in (self.facets, middle, self.detail):
            self.splitter.addWidget(pane)
        self.splitter.setStretchFactor(1, 1)
        in_row(self.splitter, owner=self)
        self._add_context_actions()
        self.table.current_changed.connect(self.describe_current)
        self.table.record_activated.connect(self.use)
        self.detail.used.connect(self.use_current)
        self.detail.comparison_requested.connect(self.compare_current)
        self.model.modelReset.connect(self._on_rows_changed)
        self.table.selectionModel().selectionChanged.connect(self._mark_selected_points)
        self.table.current_changed.connect(self._mark_selected_points)
        for narrowed in (self.facets.changed, self.chips.lifted, self.empty.lifted):
            narrowed.connect(self.narrow)
        lookups.results_arrived.connect(self._on_lookup_results)

    def rows_without_verdicts(self) -> Sequence[Any]:
        """Return a table row for every record of the catalog; the rows have no verdicts of the plan."""
        raise NotImplementedError

    def rows_with_verdicts(self) -> Sequence[Any]:
        """Return a table row for every record of the catalog; each row has the plan's verdict on its record."""
        raise NotImplementedError

    def describe(self, record: Any) -> RecordSummary:  # noqa: ANN401  # each page has records of its own
        """Return the details of `record` under the plan."""
        raise NotImplementedError

    def use(self, record: Any) -> None:  # noqa: ANN401  # as above
        """Put `record` into the plan."""
        raise NotImplementedError

    def export_rows(self) -> list[dict[str, object]]:
        """Return the shown records as flat rows with sources."""
        raise NotImplementedError

    def name_and_price(self, record: Any) -> tuple[str, float | None]:  # noqa: ANN401  # as above
        """Return the name and the price in US dollars of `record`, None if it is not known."""
        raise NotImplementedError

    def can_be_combined(self, _record: Any) -> bool:  # noqa: ANN401  # as above
        """Return whether as many of `record` as the plan needs can work on one model."""
        return True

    def price_phrase(self, record: Any) -> str:  # noqa: ANN401  # as above
        """Return the known price of `record`, for a sentence."""
        return fmt.money(self.name_and_price(record)[1])

    def planned(self) -> str | None:
        """Return the id of the record in the plan, or None without one: then the first row is described."""
        raise NotImplementedError

    def sentence(self) -> str:
        """Return on how many of the listed records the plan fits, and the cheapest of these."""
        rows = self.model.records
        if not rows:
            return f"No {self.noun} matches the filters."
        listed = fmt.plural(len(rows), self.noun if self._filter.is_empty else f"matching {self.noun}")
        surely, tightly = ([row for row in rows if row.verdict == verdict] for verdict in FITTING_VERDICTS)
        prices = ((*self.name_and_price(row), row) for row in surely or tightly if self.can_be_combined(row))
        priced = [(usd, name, row) for name, usd, row in prices if usd is not None]
        _, name, row = min(priced, key=itemgetter(0, 1), default=(None, "", None))
        cheapest = f"{name}, {self.price_phrase(row)}" if priced else ""
        return fitting_sentence(len(surely), len(tightly), f"{listed}{self.each_text()}", cheapest)

    @property
    def searched_kinds(self) -> str:
        """Return what the kinds of hardware are that the search names; empty if it names none or finds nothing."""
        return describe_kinds(self._filter.query.text) if self.model.records else ""

    def each_text(self) -> str:
        """Return how many of each record the plan is for, if that is not part of the record."""
        return ""

    @property
    def filter(self) -> RecordFilter:
        """Return the current filter."""
        return self._filter

    def search(self, text: str) -> None:
        """Show only records that contain every word of `text` and lie within the bounds in `text`."""
        self.narrow(self._filter.with_query(text=text), "text")

    def narrow(self, new_filter: RecordFilter, latest: str = "") -> None:
        """Apply the filter `new_filter`; `latest` is the key of the condition that was changed last."""
        text_before = self._filter.query.text
        self._filter, self._latest = new_filter, latest
        self.table.show_searched_columns(new_filter.bounded_keys)
        self.model.set_filter(None if new_filter.is_empty else self._matching_ids)
        self.show_rows()
        if self.detail.is_describing is (self.table.current_record is None):
            self.describe_current()
        self._counting.start()
        self.facets.show_filter(new_filter)
        self.chips.show_conditions([found for found in conditions(new_filter) if found.key != "text"])
        if new_filter.query.text != text_before:
            self.searched.emit(new_filter.query.text)

    def about(self, _text: str) -> str:
        """Explain why the page has no records for what the search text names; empty without an explanation."""
        return ""

    @Slot()
    def count_facets(self) -> None:
        """Update the counts of the facet values, and the ranges of the listed values."""
        self.facets.show_counts(self._filter.counts(self._rows_with_search_words()), self.model.records)

    @Slot()
    def _on_lookup_results(self) -> None:
        """Show the results; a hidden page does so after a visible one."""
        self._judging.start(0 if self.isVisible() else _HIDDEN_MS)

    @Slot()
    def _show_lookup_results(self) -> None:
        """Show the verdicts first, and then the details and the counts, which together would block the window."""
        self._take_verdicts()
        self._describing.start()
        self._counting.start()

    def _matching_ids(self, _rows: Sequence[Any]) -> frozenset[str]:
        if self._filter.by_name_only:
            return self._names.ids_containing(self._filter.parsed.words)
        return self._filter.passing(self._rows_with_search_words())

    def _rows_with_search_words(self) -> Sequence[Any]:
        if not self._filter.parsed.words:
            return self.model.all_records
        names = self._names.ids_containing(self._filter.parsed.words)
        return [row for name in names if (row := self.model.find(name)) is not None]

    def _name_index(self, rows: Sequence[Any]) -> NameSearch:
        return NameSearch([self.everything.kind.record_of(row) for row in rows])

    @cached_property
    def scatter(self) -> ScatterPanel:
        """Return the scatter plot of the rows, built on first use."""
        panel = ScatterPanel(self.workspace, self.theme, self.key, self.model)
        panel.chosen.connect(self.table.choose)
        panel.boxed.connect(self.table.select_names)
        panel.used.connect(self.use_current)
        panel.failed.connect(self.workspace.failed)
        self.results.addWidget(panel)
        return panel

    def open_columns(self, anchor: QWidget) -> None:
        """Open the choice of columns below `anchor`."""
        ColumnPopover(self.table, self.theme, self.column_groups, self.column_sets).open_at(anchor)

    def show_view(self, view: View) -> None:
        """Switch between table and scatter plot."""
        self.view = view
        if view == "scatter":
            self.scatter.show_rows()
            self._mark_selected_points()
        self.show_rows()

    def show_rows(self) -> None:
        """Show the matching rows, or explain why no row matches or none is known to match yet."""
        if not self.model.rowCount() and self.lookups.prices is None and "rent" in self._filter.bounded_keys:
            self.empty.ask_to_wait("Rental prices are being read…")
            self.results.setCurrentWidget(self.empty)
        elif not self.model.rowCount():
            found = blocking_condition(self._filter, self.model.all_records, self._latest)
            self.empty.explain(found, grouped_conditions(self._filter), self.about(self._filter.query.text))
            self.results.setCurrentWidget(self.empty)
        else:
            self.results.setCurrentWidget(self.scatter if self.view == "scatter" else self.table)

    def enter(self) -> None:
        """Focus the table or the plot."""
        if self.view == "scatter" and self.scatter.plot is not None:
            self.scatter.plot.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            self.table.enter()

    def update_verdicts(self) -> None:
        """Update every record's verdict for the plan."""
        self._take_verdicts()
        self.count_facets()

    def _take_verdicts(self) -> None:
        self.model.set_records(self.rows_with_verdicts())
        self.show_rows()

    def refresh(self, _evaluation: Evaluation) -> None:
        """Update the records for the plan; a card or system that is new in the plan is selected."""
        if self._hardware is not self.workspace.catalog.hardware:
            self._hardware = self.workspace.catalog.hardware
            rows = self.rows_without_verdicts()
            self._names = self._name_index(rows)
            self.facets.add_rows(rows)
        self.update_verdicts()
        planned = self.planned()
        if planned != self._planned or self.table.current_id is None:
            self._planned = planned
            if planned is not None and planned != self.table.current_id:
                # On opening, the table stays at its top, where the best choices are.
                self.table.choose(planned, scrolls=self.table.current_id is not None)  # which also describes it
                return
        if not self._follow_first_row():
            self.describe_current()

    def _follow_first_row(self) -> bool:
        """Make the first row current, which describes it, as long as neither the plan nor the user chose a record."""
        current = self.table.current_id
        if self._planned is not None or current not in (None, self._first) or not self.model.rowCount():
            return False
        self._first = self.model.identify(self.model.record(0))
        if self._first == current:
            return False
        self.table.choose(self._first, scrolls=False)
        return True

    @Slot()
    def use_current(self) -> None:
        """Put the current record into the plan."""
        if self.table.current_record is not None:
            self.use(self.table.current_record)

    @Slot()
    def compare_current(self) -> None:
        """Request a comparison of the selected records, or of the current record."""
        current = self.table.current_record
        records = self.table.selected_records or (() if current is None else (current,))
        self.comparison_requested.emit(tuple(map(self.model.identify, records)))

    def restore(self, sizes: Sequence[int]) -> None:
        """Restore the table layout and the pane widths from the settings; `sizes` are the default pane widths.

        Stored widths for another number of panes, from an older version, are ignored.
        """
        current = self.workspace.settings.current
        self.table.arrange(current.tables.get(self.key, self.table.default_layout))
        left = current.splitters.get(f"catalog-{self.key}", ())
        self._default_widths = () if len(left) == len(sizes) else tuple(sizes)
        self.splitter.setSizes(list(self._default_widths or left))
        self.table.arranged.connect(self._store_table_layout)
        self.splitter.splitterMoved.connect(self._store_pane_widths)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the details more room in a wide window, unless the user has set the widths."""
        super().resizeEvent(event)
        if self._default_widths:
            first, _, last = self._default_widths
            last += min(_MOST_EXTRA, max(0, (self.width() - _WIDE) // 3))
            self.splitter.setSizes([first, max(1, self.width() - first - last), last])

    def _add_context_actions(self) -> None:
        for title, run in (
            ("&Use", self.use_current),
            ("Co&mpare", self.compare_current),
            ("&Copy rows", self.table.copy_selected),
        ):
            action = QAction(title, self.table)
            action.triggered.connect(run)
            self.table.addAction(action)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    @Slot()
    def _on_rows_changed(self) -> None:
        if self._first is not None:
            self._follow_first_row()
        self.counted.emit()
        if self.view == "scatter":
            self.scatter.show_rows()

    @Slot()
    def _mark_selected_points(self) -> None:
        if self.view == "scatter":
            chosen = [self.model.identify(record) for record in self.table.selected_records]
            self.scatter.mark(self.table.current_id, chosen)

    @Slot()
    def describe_current(self) -> None:
        """Show the details of the current record, or say that the filters hide it; on opening, after the table."""
        if not self._is_opened:
            self._is_opened = True
            self._describing.start()
            return
        if self.table.current_record is not None:
            self.detail.describe(self.describe(self.table.current_record))
            return
        hidden = self.model.find(self.table.current_id)
        self.detail.clear("" if hidden is None else self.name_and_price(hidden)[0])

    @Slot()
    def _store_table_layout(self) -> None:
        self.workspace.settings.keep_table(self.key, self.table.layout_now())

    @Slot()
    def _store_pane_widths(self) -> None:
        self._default_widths = ()
        splitters = self.workspace.settings.current.splitters
        sizes = {f"catalog-{self.key}": tuple(self.splitter.sizes())}
        self.workspace.settings.update(splitters={**splitters, **sizes})
