"""The Prices dialog, which lists, fetches and accepts rental prices, and manages the user's own offers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from PySide6.QtCore import QObject, QSize, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QWidget,
)

from planner.base import Stop
from planner.cost.price_feeds.download import Fetcher
from planner.cost.price_feeds.refresh import ProviderOutcome, Refresh, accept_held_back_prices, discard_held_back_prices
from planner.cost.price_feeds.registry import HOSTS, SOURCES, PriceSource
from planner.cost.price_feeds.store import PriceStore, StoredPrices, offers_in_use, read_offers
from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import check_box, push_button
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.labels import age_icon, make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.paths import prices_dir
from planner.present.cost.offers import OFFER_COLUMNS, ListedOffer, listed_offers, outcome_lines, state_lines

_KEY: Final = "prices"
_SIZE: Final = QSize(1274, 740)
_SMALLEST: Final = QSize(820, 560)
_LOG_HEIGHT: Final = 110


class _FetchProgress(QObject):
    """Passes progress of a fetch to the window's thread: finished sources, all sources, title of the next source."""

    stepped = Signal(int, int, str)


class PricesDialog(QDialog):
    """Dialog that lists, fetches, accepts and adds rental prices; every change is applied to the catalog.

    `settled` is emitted when the prices may have changed. Only `fetch` uses the network. `now` returns the time from
    which ages are counted.
    """

    settled = Signal()

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        parent: QWidget,
        store: PriceStore | None = None,
        sources: tuple[PriceSource, ...] = SOURCES,
        fetcher: Callable[[frozenset[str], Stop], Fetcher] = Fetcher,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(parent)
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._store, self._sources, self._fetcher = store or PriceStore(prices_dir()), sources, fetcher
        self._now = now
        self._steps = _FetchProgress()
        self._stop: Event | None = None
        self.state = make_label(wrap=True)
        self.about = make_label(role="muted", wrap=True)
        self.held = make_label(role="warn", wrap=True)
        self.search = QLineEdit(placeholderText="Search by provider, GPU or region")
        self.search.setAccessibleName("Search offers")
        self.search.setToolTip("Show only offers that contain this text")
        self.history = check_box(
            "Include offers older than twelve months",
            "Also list offers that are left out by default because of their age",
        )
        self.model = RecordTableModel(OFFER_COLUMNS, lambda row: row.id, self)
        self.table = RecordTable(self.model, theme, markers={"age": age_icon}, name="All offers in use")
        self.log = QPlainTextEdit(readOnly=True)
        self.log.setMaximumHeight(_LOG_HEIGHT)
        self._progress = QProgressBar()
        self.refresh_button = QPushButton("&Fetch prices now")
        self.cancel_button = push_button("Cance&l", "Stop fetching")
        self.accept_button = push_button("&Accept large changes", "Use the fetched prices although they changed a lot")
        self.discard_button = push_button(
            "&Discard large changes", "Drop the fetched prices that changed a lot, and keep the previous ones"
        )
        self.bundled_button = push_button(
            "", "Switch between the prices that came with GPU Planner and those fetched since"
        )
        self.add_button = push_button("Add from a f&ile…", "Add your own offers from a file")
        self.remove_button = push_button("&Remove my offer", "Remove the selected offer that you added")
        self.setWindowTitle("Prices")
        self.setMinimumSize(_SMALLEST)
        self._lay_out()
        self.resize(_SIZE)
        self._connect()
        self.show_state()

    def show_state(self) -> None:
        """Describe the prices in use, and list the offers."""
        stored, today = self._store.read(), self._now().date()
        first, *rest = state_lines(stored, self._workspace.catalog.cost.bundled_offers, today)
        self.state.setText(first)
        self.about.setText("; ".join(rest))
        names = ", ".join(part.provider for part in stored.held.parts)
        self.held.setText(
            f"On hold because the price changed a lot: {names}. Check them before you accept them." if names else ""
        )
        for widget in (self.held, self.accept_button, self.discard_button):
            widget.setVisible(bool(names))
        self.bundled_button.setText(
            "Use the fetched prices &again" if stored.use_bundled else "&Back to bundled prices"
        )
        self.bundled_button.setEnabled(bool(stored.snapshot.parts))
        self._list_offers(stored)

    @Slot()
    def fetch(self) -> None:
        """Fetch rental prices from all sources in the background."""
        self._stop = Event()
        bundled = self._workspace.catalog.cost.bundled_offers
        refresh = Refresh(self._store, self._workspace.catalog.hardware, bundled, self._now())
        work = partial(refresh.run, self._fetcher(HOSTS, self._stop.is_set), self._sources, self._steps.stepped.emit)
        self._set_busy(busy=True)
        self._tasks.run(_KEY, work, self._show_outcomes, self._show_error, self._stop.set)

    @Slot()
    def cancel(self) -> None:
        """Cancel fetching; the current prices stay in use."""
        self._tasks.cancel(_KEY)
        self._set_busy(busy=False)
        self.log.setPlainText("Cancelled; the previous prices stay in use.")

    def add_from(self, path: Path) -> None:
        """Add the offers in the file at `path` as the user's own; they replace own offers with the same ids."""
        with self._reporting():
            added = read_offers(path)
            others = [offer for offer in self._store.read().own if offer.id not in {new.id for new in added}]
            self._store.set_own((*others, *added))
            self.log.setPlainText("Added {}.".format(", ".join(offer.id for offer in added)))
        self._apply_stored_prices()

    @Slot()
    def remove_chosen(self) -> None:
        """Remove the selected offer if it is the user's own."""
        row = self.model.find(self.table.current_id)
        if row is not None and row.offer.own:
            with self._reporting():
                self._store.set_own(offer for offer in self._store.read().own if offer.id != row.offer.id)
            self._apply_stored_prices()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Cancel fetching."""
        self._tasks.cancel(_KEY)
        super().closeEvent(event)

    def done(self, result: int) -> None:
        """Cancel fetching."""
        self._tasks.cancel(_KEY)
        super().done(result)

    def _show_outcomes(self, outcomes: tuple[ProviderOutcome, ...]) -> None:
        self._set_busy(busy=False)
        self.log.setPlainText("\n".join(outcome_lines(outcomes)))
        self._apply_stored_prices()

    def _show_error(self, error: BaseException) -> None:
        self._set_busy(busy=False)
        if not isinstance(error, PlannerError):
            raise error
        self.log.setPlainText(f"{error.message}\n{error.hint}".strip())

    @Slot(int, int, str)
    def _show_progress(self, finished_sources: int, all_sources: int, source_title: str) -> None:
        self._progress.setRange(0, all_sources)
        self._progress.setValue(finished_sources)
        self._progress.setFormat(source_title)

    def _set_busy(self, *, busy: bool) -> None:
        self._progress.setVisible(busy)
        self.cancel_button.setVisible(busy)
        self.refresh_button.setEnabled(not busy)

    def _apply_stored_prices(self) -> None:
        """Apply the stored prices to the catalog, and show these prices."""
        # A copy of the catalog, since the old one caches the prices it has read.
        self._workspace.set_catalog(replace(self._workspace.catalog, prices=self._store.folder))
        self.show_state()
        self.settled.emit()

    def _change_prices(self, change: Callable[[PriceStore], object]) -> None:
        """Change the stored prices with the function `change`, and show the result."""
        with self._reporting():
            change(self._store)
        self._apply_stored_prices()

    @Slot()
    def _choose_file(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(self, "Add offers", "", "Offers (*.json)")
        if chosen:
            self.add_from(Path(chosen))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Show a `PlannerError` that is raised in this `with` block in the dialog's log."""
        try:
            yield
        except PlannerError as error:
            self.log.setPlainText(f"{error.message}\n{error.hint}".strip())

    def _list_offers(self, stored: StoredPrices) -> None:
        today = self._now().date()
        offers = offers_in_use(self._workspace.catalog.cost.bundled_offers, stored)
        shown = [offer for offer in offers if self.history.isChecked() or not offer.is_history(today)]
        self.model.set_records(listed_offers(shown, self._workspace.catalog.hardware, today))
        self._filter_offers()

    @Slot()
    def _filter_offers(self) -> None:
        words = self.search.text().lower().split()
        self.model.set_filter(
            None if not words else lambda rows: {row.id for row in rows if _contains_words(row, words)}
        )

    @Slot(object)
    def _on_current_offer_changed(self, row: ListedOffer | None) -> None:
        self.remove_button.setEnabled(row is not None and row.offer.own)

    def _connect(self) -> None:
        self._steps.stepped.connect(self._show_progress)
        self.refresh_button.clicked.connect(self.fetch)
        self.cancel_button.clicked.connect(self.cancel)
        self.accept_button.clicked.connect(lambda: self._change_prices(accept_held_back_prices))
        self.discard_button.clicked.connect(lambda: self._change_prices(discard_held_back_prices))
        self.bundled_button.clicked.connect(lambda: self._change_prices(_toggle_bundled_prices))
        self.add_button.clicked.connect(self._choose_file)
        self.remove_button.clicked.connect(self.remove_chosen)
        self.search.textChanged.connect(self._filter_offers)
        self.history.toggled.connect(self.show_state)
        self.table.current_changed.connect(self._on_current_offer_changed)

    def _lay_out(self) -> None:
        space = self._theme.spacing
        hosts = ", ".join(sorted(HOSTS))
        self.refresh_button.setToolTip(f"Connects to {hosts}. Prices are fetched only on request.")
        self.log.setAccessibleName("Log of price fetching")
        self.log.setToolTip("What was fetched, and from where")
        self.log.setPlaceholderText(f"Fetching connects to {hosts}; only the request is sent.")
        self.remove_button.setEnabled(False)
        held_buttons = (self.accept_button, self.discard_button)
        in_column(
            self.state,
            self.about,
            self.held,
            in_row(self.refresh_button, self.cancel_button, *held_buttons, self.bundled_button, STRETCH),
            in_row((self.search, 1), self.history, self.add_button, self.remove_button),
            self._progress,
            (self.table, 1),
            self.log,
            closing_buttons(self),
            owner=self,
            margins=None,
            spacing=space.small,
        )
        self._set_busy(busy=False)


def _toggle_bundled_prices(store: PriceStore) -> None:
    store.use_bundled(not store.read().use_bundled)


def _contains_words(row: ListedOffer, words: list[str]) -> bool:
    text = " ".join((row.offer.provider, row.offer.instance, row.card, row.offer.region or "")).lower()
    return all(word in text for word in words)
