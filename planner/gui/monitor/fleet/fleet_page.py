"""The fleet page of the Monitor tab: headline, heat map, the worst cards with search and facets, servers, one card."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QSplitter, QStackedWidget, QWidget

from planner.errors import PlannerError, SpecError
from planner.fleet.connection import SECRET_VARIABLE, FleetConnection
from planner.gui.monitor.fleet.card_panel import CardPanel, offer_plans
from planner.gui.monitor.fleet.fleet_feed import FleetFeed, FleetView
from planner.gui.monitor.fleet.heat_map import HeatMap, HeatScale, MapArea
from planner.gui.settings import TableLayout
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import IconButton, link_button, push_button
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.present import format as fmt
from planner.present.fleet import (
    FLEET_COLUMNS,
    HEATS,
    FleetRow,
    clock,
    energy_line,
    fleet_headline,
    matching_rows,
    server_line,
    worst_first,
)
from planner.present.monitor.plan_on_cards import plannable_cards
from planner.present.monitor.readings import short_card_name

_TABLE: Final = "fleet"
_ANY: Final = ""
_SPLIT: Final = (500, 500)
_MOST_SERVERS: Final = 4


class FleetPage(QWidget):
    """Shows a fleet; `local_wanted` is emitted by the choice of this machine, `connect_wanted` by another fleet's.

    What fails is said above the cards, which stay as they were read last.
    """

    local_wanted = Signal()
    connect_wanted = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self.feed = FleetFeed(workspace.catalog, self)
        self.view: FleetView | None = None
        self.local = push_button("This machine", "Show the GPUs of this machine again")
        self.another = push_button("Another fleet…", "Connect to a fleet, or change how to sign in")
        self.address = make_label(font=theme.font(bold=True))
        self.status = ElidedLabel(role="muted")
        self.refresh_button = IconButton(theme, "reset", "Read the fleet now")
        self.again = push_button("Try again", "Read the fleet now", "primary")
        self.change = push_button("Change the connection…", "Correct the address, or how to sign in")
        self.headline = make_label(font=theme.font("title", bold=True), wrap=True)
        self.energy = ElidedLabel(role="muted")
        self.problem = make_label(wrap=True, selectable=True)
        set_style_role(self.problem, "bad")
        self.notes = ElidedLabel(role="warn")
        self.heat = ChoiceBox(theme)
        self.heat.setAccessibleName("Quantity of the heat map")
        self.heat.setToolTip("Quantity by which the GPUs are colored")
        self.heat.addItems([heat.title for heat in HEATS])
        self.map = HeatMap(theme)
        self.scale = HeatScale(theme, self.map)
        self.search = QLineEdit(clearButtonEnabled=True, placeholderText="Search hosts, GPUs, pods, diagnoses (Ctrl+F)")
        self.search.setToolTip("Show only GPUs that have all these words")
        self.search.setAccessibleName("Search GPUs")
        self.diagnosis = self._facet("Diagnosis", "Show only GPUs with this diagnosis")
        self.kind = self._facet("Name of the GPU", "Show only GPUs of this name")
        self.plan = link_button("Plan for these GPUs…", "Set the plan's GPUs to those that are listed")
        self.menu = QMenu(self)
        self._model = RecordTableModel(FLEET_COLUMNS, lambda row: row.card.key, self)
        layout = TableLayout(shown=tuple(column.key for column in FLEET_COLUMNS), sort_key="diagnosis")
        self.table = RecordTable(self._model, theme, layout, name="GPUs of the fleet, the worst first")
        self.nothing = make_label("No GPU has all these words, this diagnosis and this name.", "muted")
        self.servers = make_label(role="muted", wrap=True, selectable=True)
        self.card = CardPanel(self.feed, workspace, theme)
        self._lay_out()
        self._connect()
        self._show_nothing()

    def connect_to(self, connection: FleetConnection, typed_secret: str = "") -> None:
        """Show another fleet; a secret that was typed is kept in memory only."""
        self.address.setText(connection.address)
        self._show_connecting()
        environment = dict(os.environ) | ({SECRET_VARIABLE: typed_secret} if typed_secret else {})
        self.feed.connect_to(connection, environment)

    def shut_down(self) -> None:
        """End all requests."""
        self.feed.close()

    def copy_result(self) -> str:
        """Return the headline, energy, servers and the listed cards as text."""
        lines = ["\t".join(column.text(row) for column in FLEET_COLUMNS) for row in self._model.records]
        return "\n".join(filter(None, (self.headline.text(), self.energy.text(), self.servers.text(), *lines)))

    def showEvent(self, event: QShowEvent) -> None:
        """Poll while the page is in sight."""
        super().showEvent(event)
        self.feed.set_wanted(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Do not poll while nobody looks."""
        super().hideEvent(event)
        self.feed.set_wanted(False)

    def _show_connecting(self) -> None:
        self._show_nothing()
        self.status.setText("connecting…")

    def _show_nothing(self) -> None:
        self.view = None
        self._take_focus_from(self._space, self._pages)
        for widget in (self.problem, self.notes, self.energy, self.servers, self.again, self.change):
            widget.hide()
        self.headline.setText("Connecting…")
        self._model.set_records(())
        self.map.show_rows((), None)
        self._pages.setCurrentIndex(0)
        self._pages.hide()
        self._space.show()

    def _take_focus_from(self, *hidden: QWidget) -> None:
        """Keep the focus on this page, which it would leave with what is hidden next."""
        focused = QApplication.focusWidget()
        if focused is not None and any(part.isAncestorOf(focused) for part in hidden):
            self.refresh_button.setFocus()

    @Slot()
    def _read_now(self) -> None:
        """Read the fleet again; a fleet that could not be read is connecting until it answers."""
        if self.view is None:
            self._show_connecting()
        self.feed.poll()

    @Slot(object)
    def _show_view(self, view: FleetView) -> None:
        self.view = view
        fleet = view.fleet
        self.problem.hide()
        self._take_focus_from(self._space)
        self._space.hide()
        self._pages.show()
        self.status.setText(f"read at {clock(fleet.at_seconds)}, every {fleet.interval_seconds:.0f}{fmt.THIN}s")
        self.headline.setText(fleet_headline(fleet, view.costs))
        _show_text(self.energy, energy_line(view.costs))
        _show_text(self.notes, "  ".join(fleet.notes))
        lines = [server_line(cost) for cost in view.servers[:_MOST_SERVERS]]
        if len(view.servers) > _MOST_SERVERS:
            lines.append(f"and {len(view.servers) - _MOST_SERVERS} more servers")
        _show_text(self.servers, "\n".join(lines))
        self._fill_facet(self.diagnosis, "All diagnoses", map(_diagnosis_group, view.rows))
        self._fill_facet(self.kind, "All GPUs", (short_card_name(row.card.device) for row in view.rows))
        self._show_found()
        opened = next((row for row in view.rows if row.card.key == self.card.key), None)
        if opened is not None and self._pages.currentIndex():
            self.card.show_card(opened, view)

    @Slot(object)
    def _show_problem(self, error: PlannerError) -> None:
        message = error.reason if isinstance(error, SpecError) else error.message
        self.problem.setText(" ".join(filter(None, (fmt.sentence(message), error.hint))))
        self.problem.show()
        if self.view is None:
            self.headline.setText("This fleet cannot be read.")
            self.again.show()
            self.change.show()
            self.status.setText("trying again every 30 s")
        else:
            self.status.setText(f"last read at {clock(self.view.fleet.at_seconds)}")

    @Slot()
    def _show_found(self) -> None:
        """Show the cards that match the search and the facets."""
        if self.view is None:
            return
        rows = matching_rows(self.view.rows, self.search.text())
        diagnosis, kind = self.diagnosis.currentData() or _ANY, self.kind.currentData() or _ANY
        rows = tuple(
            row
            for row in rows
            if diagnosis in (_ANY, _diagnosis_group(row)) and kind in (_ANY, short_card_name(row.card.device))
        )
        bar = self.table.verticalScrollBar()
        before = bar.value()
        self._model.set_records(worst_first(rows))
        bar.setValue(before)
        is_all = len(rows) == len(self.view.rows)
        self.nothing.setVisible(not rows)
        self.map.show_rows(self.view.rows, None if is_all else frozenset(row.card.key for row in rows))
        self.scale.refresh()

    @Slot(str)
    def open_card(self, key: str) -> None:
        """Show the past of a card."""
        row = None if self.view is None else next((row for row in self.view.rows if row.card.key == key), None)
        if row is not None and self.view is not None:
            self._pages.setCurrentIndex(1)
            self.card.open_card(row, self.view)

    @Slot()
    def show_cards(self) -> None:
        """Show all cards again."""
        self._pages.setCurrentIndex(0)
        self.table.setFocus()

    @Slot()
    def _offer_plans(self) -> None:
        if self.view is not None:
            listed: Sequence[FleetRow] = self._model.records
            matches = {row.card.key: self.view.prices.gpus(row.card.device) for row in listed}
            offer_plans(self._workspace, plannable_cards(matches), self.menu, self.plan)

    @Slot(int)
    def _show_heat(self, place: int) -> None:
        self.map.show_heat(HEATS[place])
        self.scale.refresh()

    @Slot()
    def _fit_map(self) -> None:
        """Leave the map no more height than its largest cells need."""
        below = self._upper.height() - self._map_area.geometry().bottom() - 1
        self._upper.setMaximumHeight(self._map_area.y() + self.map.largest_height + below)

    @Slot()
    def _store_layout(self) -> None:
        self._workspace.settings.keep_table(_TABLE, self.table.layout_now())

    def _facet(self, name: str, hint: str) -> ChoiceBox:
        box = ChoiceBox(self._theme)
        box.setAccessibleName(name)
        box.setToolTip(hint)
        box.setSizeAdjustPolicy(ChoiceBox.SizeAdjustPolicy.AdjustToContents)
        box.activated.connect(self._show_found)
        return box

    def _fill_facet(self, box: ChoiceBox, title: str, values: Iterable[str]) -> None:
        counts, chosen = Counter(values), box.currentData()
        with QSignalBlocker(box):
            box.clear()
            box.addItem(f"{title} ({sum(counts.values()):,})", _ANY)
            for value, count in counts.most_common():
                box.addItem(f"{value} ({count:,})", value)
            box.setCurrentIndex(max(box.findData(chosen), 0))

    def _lay_out(self) -> None:
        space = self._theme.spacing
        self._map_area = MapArea(self.map)
        self._upper = upper = QWidget()
        lower = QWidget()
        in_column(
            in_row(make_label("color by", "muted"), self.heat, self.scale, STRETCH, spacing=space.small),
            (self._map_area, 1),
            owner=upper,
            margins=(0, space.small),
            spacing=space.small,
        )
        in_column(
            in_row((self.search, 1), self.diagnosis, self.kind, STRETCH, self.plan, spacing=space.small),
            self.nothing,
            (self.table, 1),
            self.servers,
            owner=lower,
            margins=(0, space.small),
            spacing=space.small,
        )
        self._split = QSplitter(Qt.Orientation.Vertical)
        self._split.addWidget(upper)
        self._split.addWidget(lower)
        self._split.setSizes(_SPLIT)
        self._split.setChildrenCollapsible(False)
        self._space = QWidget()
        in_column(in_row(self.again, self.change, STRETCH, spacing=space.small), STRETCH, owner=self._space)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._split)
        self._pages.addWidget(self.card)
        in_column(
            in_row(self.local, self.another, self.address, (self.status, 1), self.refresh_button, spacing=space.small),
            self.headline,
            self.problem,
            self.energy,
            self.notes,
            (self._pages, 1),
            (self._space, 1),
            owner=self,
            margins=(space.medium, space.small),
            spacing=space.small,
        )

    def _connect(self) -> None:
        self.feed.updated.connect(self._show_view)
        self.feed.failed.connect(self._show_problem)
        self.local.clicked.connect(self.local_wanted)
        self.another.clicked.connect(self.connect_wanted)
        self.change.clicked.connect(self.connect_wanted)
        for button in (self.refresh_button, self.again):
            button.clicked.connect(self._read_now)
        self.heat.activated.connect(self._show_heat)
        self.search.textChanged.connect(self._show_found)
        self.map.opened.connect(self.open_card)
        self.map.placed.connect(self._fit_map)
        self.table.record_activated.connect(lambda row: self.open_card(row.card.key))
        self.table.arranged.connect(self._store_layout)
        self.plan.clicked.connect(self._offer_plans)
        self.card.closed.connect(self.show_cards)
        if (layout := self._workspace.settings.current.tables.get(_TABLE)) is not None:
            self.table.arrange(layout)


def _diagnosis_group(row: FleetRow) -> str:
    return "silent" if row.card.is_silent else row.diagnosis


def _show_text(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))
