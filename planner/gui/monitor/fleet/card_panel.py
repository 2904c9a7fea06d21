"""One card of a fleet: its diagnosis, what runs on it, and its past in the plots of the local monitor."""

from functools import partial
from typing import Final

from PySide6.QtCore import QPoint, Signal, Slot
from PySide6.QtWidgets import QMenu, QWidget

from planner.gui.monitor.fleet.fleet_feed import FleetFeed, FleetView
from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row, scrolled
from planner.gui.workspace import Workspace
from planner.monitor.history import History
from planner.plan.measured import plan_for_card
from planner.present import format as fmt
from planner.present.fleet import FleetRow, card_number
from planner.present.monitor.plan_on_cards import PlannableCards, plannable_cards

_SPANS: Final = (("1 hour", 3_600.0), ("6 hours", 21_600.0), ("24 hours", 86_400.0), ("7 days", 604_800.0))
_LEAST_PIXELS: Final = 400


def set_plan_cards(workspace: Workspace, offer: PlannableCards) -> None:
    """Set the plan's cards, in one undo step."""
    with workspace.step():
        planned = plan_for_card(workspace.plan, offer.gpu, offer.cards)
        workspace.apply("card", gpu=planned.gpu, count=planned.count, workload=planned.workload)
    workspace.noticed.emit(f"The plan is for {fmt.count_of(offer.cards, offer.gpu.name)} now.", "Undo with Ctrl+Z.")


def offer_plans(workspace: Workspace, offers: tuple[PlannableCards, ...], menu: QMenu, button: QWidget) -> None:
    """Set the plan's cards to the only offer, or show a menu of several below `button`."""
    menu.clear()
    for offer in offers:
        menu.addAction(fmt.count_of(offer.cards, offer.gpu.name), partial(set_plan_cards, workspace, offer))
    if len(offers) == 1:
        set_plan_cards(workspace, offers[0])
    elif offers:
        menu.popup(button.mapToGlobal(QPoint(0, button.height())))
    else:
        workspace.noticed.emit("None of these GPUs is in the catalog.", "")


class CardPanel(QWidget):
    """Shows one card; `closed` is emitted by its button back to the fleet."""

    closed = Signal()

    def __init__(self, feed: FleetFeed, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._feed, self._workspace = feed, workspace
        self._row: FleetRow | None = None
        self._view: FleetView | None = None
        self.back = push_button("Back to the fleet", "Show all GPUs again")
        self.title = make_label(font=theme.font("title", bold=True))
        self.explanation = make_label(wrap=True, selectable=True)
        self.facts = make_label(role="muted", wrap=True, selectable=True)
        self.status = make_label(role="muted")
        self.plan = link_button("Plan for these GPUs…", "Set the plan's GPUs to this one, or to all of its machine")
        self.menu = QMenu(self)
        self.span = ChoiceBox(theme)
        self.span.setAccessibleName("Displayed time span")
        self.span.setToolTip("Displayed time span")
        for title, seconds in _SPANS:
            self.span.addItem(title, seconds)
        self.plots = PlotGrid(theme, History(), workspace.settings)
        self._area = scrolled(self.plots)
        space = theme.spacing
        in_column(
            in_row(
                self.back, self.title, STRETCH, self.status, make_label("show", "muted"), self.span, spacing=space.small
            ),
            self.explanation,
            in_row((self.facts, 1), self.plan, spacing=space.small),
            (self._area, 1),
            self.plots.band_row,
            owner=self,
            spacing=space.small,
        )
        self.back.clicked.connect(self.closed)
        self.plan.clicked.connect(self._offer_plans)
        self.span.activated.connect(self._read_past)
        self._area.verticalScrollBar().valueChanged.connect(self.plots.draw_visible)
        self.plots.failed.connect(workspace.failed)
        feed.past_read.connect(self._show_past)

    @property
    def key(self) -> str | None:
        """Return the key of the shown card."""
        return None if self._row is None else self._row.card.key

    def open_card(self, row: FleetRow, view: FleetView) -> None:
        """Show another card, and read its past."""
        self.show_card(row, view)
        self.plots.set_history(History(), None)
        self._read_past()

    def show_card(self, row: FleetRow, view: FleetView) -> None:
        """Show the latest state of the card."""
        self._row, self._view = row, view
        card = row.card
        self.title.setText(f"{card.host} · GPU {card_number(card)} · {card.device.name}")
        self.explanation.setText(row.explanation or "Its diagnosis needs some more readings.")
        set_style_role(self.explanation, row.tone if row.tone in ("bad", "warn") else "")
        rent, since = view.prices.usd_per_hour(card.device)
        dated = f", oldest price of {fmt.date(since)}" if since else ""
        self.facts.setText(
            "  ·  ".join(
                filter(
                    None,
                    (
                        row.work and f"work: {row.work}",
                        f"exporter: {card.exporter}",
                        f"scraped at {', '.join(card.instances)}" if card.instances else "",
                        "" if rent is None else f"rent {fmt.money(rent)}/h (median on-demand{dated})",
                        f"id: {card.key}",
                    ),
                )
            )
        )

    @Slot()
    def _read_past(self) -> None:
        if self._row is None:
            return
        if not self._feed.has_past:
            self.status.setText("the past of GPUs needs a Prometheus")
            return
        self.status.setText("reading…")
        self._feed.read_past(self._row.card, self.span.currentData(), max(self.plots.width(), _LEAST_PIXELS))

    @Slot(object)
    def _show_past(self, history: History) -> None:
        self.status.setText("" if len(history.owners) else "no readings in this time")
        self.plots.set_history(history, None)
        self.plots.refresh()

    @Slot()
    def _offer_plans(self) -> None:
        if self._row is not None and self._view is not None:
            here = self._view.fleet.cards_of(self._row.card.host)
            alike = [card for card in here if card.device.name == self._row.card.device.name]
            matches = {card.key: self._view.prices.gpus(card.device) for card in alike}
            offer_plans(self._workspace, plannable_cards(matches), self.menu, self.plan)
