"""The status line: catalog, age of prices, progress, adjustments, and the last undo step."""

from datetime import UTC, datetime
from functools import partial
from typing import Final

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QProgressBar, QStatusBar

from planner.gui.tasks import TaskRunner
from planner.gui.theme import set_style_role
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import AGE_ROLES, ElidedLabel, make_label
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.present.cost.prices import age_of, age_phrase, days_since, newest_age_days
from planner.present.format import capitalized, date, integer

_QUICK_MS: Final = 200


class StatusLine(QStatusBar):
    """Status line with the catalog, the age of its prices, the progress of background work, and the last undo step."""

    def __init__(self, workspace: Workspace, tasks: TaskRunner) -> None:
        super().__init__()
        self.setSizeGripEnabled(False)
        self._workspace = workspace
        self._last_step = make_label()
        self._adjusted = ElidedLabel("", "muted")
        self._sample = link_button("Sample plan", "This is an example. Click to plan for your own model and GPU.")
        self._sample.clicked.connect(partial(workspace.navigator.tab_requested.emit, "start"))
        self._has_plan = True
        self._progress = QProgressBar()
        self._progress.setRange(0, 0)
        self._progress.setMaximumWidth(120)
        self._progress.setTextVisible(False)
        self._progress.setAccessibleName("Working")
        self._progress.hide()
        self._shown_catalog = workspace.catalog
        self._catalog_text = make_label(_catalog_text(workspace.catalog))
        self.addWidget(self._catalog_text)
        self.prices = make_label()
        self.prices.setToolTip(
            "Age of the price used in the cost; without a cost, of the newest offer. All prices: Plan › Prices."
        )
        self.prices.hide()
        self.addWidget(self.prices)
        self.addWidget(self._adjusted, 1)
        self.addPermanentWidget(self._sample)
        self.addPermanentWidget(self._progress)
        self.addPermanentWidget(self._last_step)
        self._slow = QTimer(self, singleShot=True, interval=_QUICK_MS)
        self._slow.timeout.connect(self._progress.show)
        tasks.busy_changed.connect(self._show_busy)
        workspace.undo_stack.undoTextChanged.connect(self._show_last_undo_step)
        workspace.undo_stack.indexChanged.connect(self._adjusted.clear)
        workspace.adjusted.connect(self._show_adjustment_sentence)
        workspace.changed.connect(self._show_catalog)
        workspace.file_changed.connect(self._show_sample)
        workspace.changed.connect(self._show_sample)

    @Slot()
    def show_prices(self) -> None:
        """Show the age of the price that decides the plan's cost, else of the newest price, once prices are read."""
        from planner.present.cost.summary import used_price_date  # not needed to open the window

        today, cost = datetime.now(UTC).date(), self._workspace.cost
        used = used_price_date(cost.estimate.result) if cost is not None and cost.estimate is not None else None
        if used is None:
            name, days = "Latest rental offer", newest_age_days(self._workspace.catalog.offers, today)
        else:
            name, days = f"{capitalized(used[0])} used", days_since(used[1], today)
        self.prices.setText(f"{name}: {age_phrase(days)}")
        set_style_role(self.prices, AGE_ROLES[age_of(days)])
        self.prices.show()

    @Slot(bool)
    def _show_busy(self, busy: bool) -> None:
        """Show the progress bar if work takes longer than a moment."""
        if not busy:
            self._slow.stop()
            self._progress.hide()
        elif not self._slow.isActive() and not self._progress.isVisible():
            self._slow.start()

    def show_sample(self, has_plan: bool) -> None:
        """Say that the plan is a sample while it is one, if the page has a plan (`has_plan`)."""
        self._has_plan = has_plan
        self._show_sample()

    @Slot()
    def _show_sample(self) -> None:
        self._sample.setVisible(self._has_plan and self._workspace.is_sample)

    @Slot()
    def _show_catalog(self) -> None:
        """Show the date and size of the catalog, if the catalog was replaced since the last call."""
        if self._shown_catalog is not self._workspace.catalog:
            self._shown_catalog = self._workspace.catalog
            self._catalog_text.setText(_catalog_text(self._shown_catalog))

    @Slot(str)
    def _show_adjustment_sentence(self, sentence: str) -> None:
        self._adjusted.setText(sentence)
        self._adjusted.setAccessibleName(sentence)

    @Slot(str)
    def _show_last_undo_step(self, label: str) -> None:
        self._last_step.setText(f"Undo: {label}" if label else "")


def _catalog_text(catalog: Catalog) -> str:
    cards, models = catalog.hardware.gpus, catalog.models.records
    newest = max((gpu.provenance.as_of for gpu in cards if not gpu.own), default=None)
    return f"Catalog of {date(newest)}  ·  {integer(len(cards))} accelerators  ·  {integer(len(models))} models"
