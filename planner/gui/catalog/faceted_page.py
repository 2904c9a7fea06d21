"""A page whose records are narrowed: by words, facets and ranges at its side, and chips above the rows."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.catalog.chips import ChipRow
from planner.gui.catalog.empty import EmptyResult
from planner.gui.catalog.facets import FacetPanel
from planner.gui.catalog.filters import NameSearch, RecordFilter, conditions, culprit, groups
from planner.gui.catalog.page import Page
from planner.gui.settings import TableLayout
from planner.gui.theme import Theme
from planner.gui.widgets.cells import Marker
from planner.gui.workspace import Workspace
from planner.present.columns import Column

_COUNT_DELAY_MS: Final = 50


class FacetedPage(Page):
    """Shows what passes `filter`, which begins as `everything`; filters are saved in the settings' field `saved_in`.

    `rows` are records of the kind, of which nothing beside their own figures need be known. Subclasses say what of a
    search that finds nothing is known otherwise.
    """

    everything: ClassVar[RecordFilter]
    saved_in: ClassVar[str]

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        columns: Sequence[Column[Any]],
        usual: TableLayout,
        markers: Mapping[str, Marker],
        rows: Sequence[Any],
    ) -> None:
        super().__init__(workspace, theme, columns, usual, markers)
        self._filter = self.everything
        self._latest = ""
        self._names = self._named(rows)
        self.facets = FacetPanel(theme, workspace.settings, self.everything, rows)
        self.chips = ChipRow(theme)
        self.empty = EmptyResult(theme, self.everything)
        # The counts are for the eye that wanders to the side; the table answers a keystroke first.
        self._counting = QTimer(self, singleShot=True, interval=_COUNT_DELAY_MS)
        self._counting.timeout.connect(self.count_facets)
        self.middle = QVBoxLayout()
        self._lay_out_panes()
        self.facets.changed.connect(self.narrow)
        self.chips.lifted.connect(self.narrow)
        self.empty.lifted.connect(self.narrow)

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

    def offer_values_of(self, rows: Sequence[Any]) -> None:
        """Look for names among `rows`, and offer the values that they have."""
        self._names = self._named(rows)
        self.facets.follow(rows)

    def nothing(self) -> QWidget:
        """Return what names the filter that removed the last row."""
        found = culprit(self._filter, self.model.all_records, self._latest)
        self.empty.explain(found, groups(self._filter), self.about(self._filter.query.text))
        return self.empty

    def about(self, _text: str) -> str:
        """Return what is known of what is searched for though the page has no such record."""
        return ""

    @Slot()
    def count_facets(self) -> None:
        """Show how many records each value of a facet would show."""
        self.facets.show_counts(self._filter.counts(self._having_words()))

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

    def _lay_out_panes(self) -> None:
        self.results.addWidget(self.empty)
        middle = QWidget()
        middle.setLayout(self.middle)
        self.middle.setContentsMargins(0, 0, 0, 0)
        self.middle.setSpacing(self.theme.spacing.small)
        self.middle.addWidget(self.chips)
        self.middle.addWidget(self.results, 1)
        for pane in (self.facets, middle, self.detail):
            self.splitter.addWidget(pane)
        self.splitter.setStretchFactor(1, 1)
