"""The main window: plan bar, tabs, status line and banner."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QByteArray, QEvent, QMargins, QPoint, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QIcon, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QDialog,
    QFrame,
    QMainWindow,
    QMenu,
    QProgressBar,
    QSizePolicy,
    QStackedWidget,
    QStatusBar,
    QToolButton,
    QWidget,
)

from planner.cost.terms import days_since
from planner.errors import NoFormulaError, PlannerError
from planner.gui.actions import ActionSet
from planner.gui.commands import declare
from planner.gui.documents import Documents
from planner.gui.explainer import Explainer
from planner.gui.navigator import Navigator
from planner.gui.palette import CommandPalette
from planner.gui.plan_bar import PlanBar
from planner.gui.settings import Scheme, WindowSettings
from planner.gui.tab import START, TABS, Tab, TabEntry
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import IconButton, link_button, push_button
from planner.gui.widgets.dialogs import dropped_path, open_once
from planner.gui.widgets.labels import AGE_ROLES, ElidedLabel, make_label
from planner.gui.widgets.layout import STRETCH, InReadingOrder, focus_by_key, focus_stops, hairline, in_column, in_row
from planner.gui.workspace import Workspace
from planner.paths import resources_dir
from planner.plan.catalog import Catalog
from planner.present.cost.prices import age_of, age_phrase, newest_age_days
from planner.present.format import date, integer

if TYPE_CHECKING:
    # Imported by `TabEntry.build` when first shown: together they take longer than the rest of a start.
    from planner.gui.catalog.tab import CatalogTab
    from planner.gui.cost.tab import CostTab
    from planner.gui.monitor.tab import MonitorTab

_QUICK_MS: Final = 200
_FIRST_WORD: Final = re.compile(r"[a-z]+ ")
_START_SIZE: Final = QSize(1280, 800)
_SMALLEST_SIZE: Final = QSize(960, 600)
_NARROW: Final = 1200
_FRAME: Final = QMargins(0, 32, 0, 0)
"""Room for the title bar, whose height is unknown before the window is shown."""


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
        from planner.present.cost.summary import used_price  # not needed to open the window

        today, cost = datetime.now(UTC).date(), self._workspace.cost
        used = used_price(cost.estimate.result) if cost is not None and cost.estimate is not None else None
        if used is None:
            days = newest_age_days(self._workspace.catalog.offers, today)
            self.prices.setText(f"Latest rental offer: {age_phrase(days)}")
        else:
            days = days_since(used.day, today)
            self.prices.setText(used.sentence(today))
        is_own = used is not None and used.certainty == "yours"
        set_style_role(self.prices, "muted" if is_own else AGE_ROLES[age_of(days)])
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


class Banner(QFrame):
    """Banner with one message; `trace_requested` carries the network that the message offers to trace."""

    trace_requested = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "banner")
        self._message = make_label(font=theme.font(bold=True), wrap=True, selectable=True)
        self._hint = make_label(role="muted", wrap=True, selectable=True)
        dismiss = IconButton(theme, "close", "Dismiss this message")
        dismiss.clicked.connect(self.hide)
        self._traceable = ""
        self._is_past_error = False
        self.trace = push_button(
            "&Trace it…", "Count the model's memory by tracing it with fake tensors: no GPU needed"
        )
        self.trace.clicked.connect(lambda: self.trace_requested.emit(self._traceable))
        in_row(
            (in_column(self._message, self._hint, spacing=theme.spacing.tiny), 1),
            (self.trace, 0, Qt.AlignmentFlag.AlignTop),
            (dismiss, 0, Qt.AlignmentFlag.AlignTop),
            owner=self,
            margins=(theme.spacing.medium, theme.spacing.small),
        )
        self.hide()

    @property
    def text(self) -> str:
        """Return the message of the banner."""
        return self._message.text()

    @property
    def hint(self) -> str:
        """Return the hint or the details below the message."""
        return self._hint.text()

    def show_error(self, error: PlannerError) -> None:
        """Show the message and the hint of an error."""
        set_style_role(self, "", "tone")
        self._show_message(error.message, error.hint, f"Error: {error.message}")
        # What fails in part may still change the plan in the same turn of the event loop.
        QTimer.singleShot(0, self, self._note_error)
        if isinstance(error, NoFormulaError):
            self._traceable = error.traceable
            self.trace.show()

    def show_notice(self, message: str, details: str) -> None:
        """Show a notice, with its details below the message."""
        set_style_role(self, "notice", "tone")
        self._show_message(message, details, message)

    @Slot()
    def hide_past_error(self) -> None:
        """Hide an error, because something later succeeded; a notice stays until it is dismissed."""
        if self._is_past_error:
            self.hide()

    @Slot()
    def _note_error(self) -> None:
        self._is_past_error = self.property("tone") != "notice"

    def _show_message(self, message: str, details: str, name: str) -> None:
        self._is_past_error = False
        # A message begins with a name, which keeps its spelling, or with a word.
        first = _FIRST_WORD.match(message)
        self._message.setText(f"{message[0].upper()}{message[1:]}" if first else message)
        self._hint.setText(details)
        self._hint.setVisible(bool(details))
        self.setAccessibleName(name)
        self.trace.hide()
        self.show()

    @Slot()
    def dismiss(self) -> None:
        """Hide the banner."""
        self.hide()


class TabList(QWidget):
    """List with a button for each tab; the arrow keys move between the buttons. `chosen` carries the tab's key."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._buttons: dict[str, QToolButton] = {}
        self._icons: dict[str, str] = {}
        self._group = QButtonGroup(self)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_style_role(self, "sunken")
        self._layout = in_column(STRETCH, owner=self, margins=theme.spacing.small, spacing=theme.spacing.tiny)
        theme.changed.connect(self._update_icons)

    def add(self, key: str, title: str, icon: str, tooltip: str) -> None:
        """Append the button of a tab."""
        button = QToolButton(self)
        button.setText(title)
        button.setAccessibleName(title)
        button.setToolTip(tooltip)
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setIconSize(QSize(self._theme.icon_side + self._theme.spacing.medium, self._theme.icon_side))
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_style_role(button, "tab")
        button.clicked.connect(partial(self.chosen.emit, key))
        self._group.addButton(button)
        self._layout.insertWidget(self._layout.count() - 1, button)
        self._buttons[key], self._icons[key] = button, icon
        self._update_icons()

    def set_apart(self, key: str) -> None:
        """Leave a gap below the button of a page that is not one of the tabs."""
        self._layout.insertSpacing(self._layout.indexOf(self._buttons[key]) + 1, self._theme.spacing.medium)

    def set_current(self, key: str) -> None:
        """Check the button of the current tab."""
        self._buttons[key].setChecked(True)
        self._update_icons()

    def set_brief(self, is_brief: bool) -> None:
        """Show only the icons, or also the titles."""
        styles = Qt.ToolButtonStyle
        style = styles.ToolButtonIconOnly if is_brief else styles.ToolButtonTextBesideIcon
        for button in self._buttons.values():
            button.setToolButtonStyle(style)

    @Slot()
    def _update_icons(self) -> None:
        for key, button in self._buttons.items():
            button.setIcon(self._theme.icon(self._icons[key], "accent" if button.isChecked() else "muted"))


class MainWindow(InReadingOrder, QMainWindow):
    """Main window of the application, which shows one workspace; `page` is shown first, by default the last tab."""

    tab_shown = Signal(str)
    workspace: Workspace
    navigator: Navigator
    documents: Documents
    plan_bar: PlanBar

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        places: Sequence[TabEntry] = TABS,
        page: str | None = None,
    ) -> None:
        super().__init__()
        self.places = tuple(places)
        self.workspace, self.theme, self.tasks = workspace, theme, tasks
        self.navigator = workspace.navigator
        self.documents = Documents(workspace, tasks, self)
        self.plan_bar = PlanBar(workspace, theme, tasks)
        self.banner = Banner(theme)
        self._tab_list = TabList(theme)
        self._pages = QStackedWidget()
        self._tabs: dict[str, Tab] = {}
        self._last_tab = WindowSettings().tab
        self._status = StatusLine(workspace, tasks)
        self._lay_out()
        self._restore_geometry_and_tab(page)
        self.explainer = Explainer(workspace, theme, self)
        self.commands = ActionSet(theme, declare(self), self)
        self._fill_menus()
        self._connect()
        self._update_title()
        self._pages.setFocus()

    @property
    def tab(self) -> Tab:
        """Return the current tab."""
        shown = self._pages.currentWidget()
        if not isinstance(shown, Tab):
            raise TypeError("no tab is shown")
        return shown

    @Slot(str)
    def show_tab(self, key: str) -> None:
        """Show the tab `key` or the Start page, which is created now unless it was prepared."""
        tab = self._created_tab(key)
        self._add_page(tab)
        self.theme.catch_up(tab)
        tab.catch_up()  # before it is shown, which spares laying it out twice
        self._pages.setCurrentWidget(tab)
        self._tab_list.set_current(key)
        is_tab = key != START.key
        self.plan_bar.setVisible(is_tab)
        self._status.show_sample(is_tab)
        if is_tab:
            self._last_tab = key
        self.workspace.settings.update(tab=key)
        self.tab_shown.emit(key)

    @Slot()
    def leave_start(self) -> None:
        """Show the tab from before the Start page."""
        self.show_tab(self._last_tab)

    def prepare_tabs(self) -> Iterator[object]:
        """Create all tabs before they are shown, in steps that are too short to be noticed."""
        for place in self.places:
            tab = self._created_tab(place.key)
            yield None
            self._add_page(tab)
            yield None
            yield from tab.prepare()

    def show_fitting_cards(self) -> None:
        """Show the Catalog tab with only the cards on which the plan fits."""
        self.show_tab("catalog")
        self.tab.show_fitting_cards()

    def monitor(self) -> "MonitorTab":
        """Show and return the Monitor tab."""
        self.show_tab("monitor")
        return cast("MonitorTab", self.tab)

    def catalog(self) -> "CatalogTab":
        """Show and return the Catalog tab."""
        self.show_tab("catalog")
        return cast("CatalogTab", self.tab)

    def cost(self) -> "CostTab":
        """Show and return the Cost tab."""
        self.show_tab("cost")
        return cast("CostTab", self.tab)

    def choose_scheme(self, scheme: Scheme) -> None:
        """Switch to the system's, the light or the dark color scheme."""
        self.theme.apply(scheme)
        self.workspace.settings.update(scheme=scheme)
        self.commands.refresh()

    def go_to_next_pane(self) -> None:
        """Give the keyboard to the next part of the window: the plan bar, the list of tabs, or a part of the tab."""
        panes = [pane for pane in (self.plan_bar, self._tab_list, *self.tab.panes) if pane.isVisible()]
        focused = QApplication.focusWidget()
        at = next((at for at, pane in enumerate(panes) if focused is not None and pane.isAncestorOf(focused)), -1)
        for pane in (*panes[at + 1 :], *panes[: at + 1]):
            if stop := next(focus_stops(pane), None):
                focus_by_key(stop)
                return

    def open_palette(self) -> None:
        """Open the command palette."""
        self.commands.refresh()
        self._command_palette.open()

    @cached_property
    def _command_palette(self) -> CommandPalette:
        return CommandPalette(self, self.theme, self.workspace, self.commands, self.explainer)

    def recover_plans(self) -> QDialog | None:
        """Open and return the dialog of the plans that windows left without saving them."""
        from planner.gui.recovery import RecoveryDialog  # few windows need it

        if self.documents.autosave is None:
            return None
        dialog = RecoveryDialog(self.documents.autosave, self.documents, self.workspace, self.theme, self)
        open_once(dialog)
        return dialog

    @Slot(object)
    def show_error(self, error: PlannerError) -> None:
        """Show an error in the banner until it is dismissed."""
        self.banner.show_error(error)

    def fit_to_screen(self) -> None:
        """Shrink and move the window so that the screen shows all of it, at any scale."""
        screen = self.screen().availableGeometry()
        most = screen.marginsRemoved(_FRAME).size()
        self.setMinimumSize(_SMALLEST_SIZE.boundedTo(most))
        self.resize(self.size().boundedTo(most))
        # A window's position is that of its frame.
        corner = screen.topLeft() + QPoint(most.width() - self.width(), most.height() - self.height())
        self.move(max(screen.left(), min(self.x(), corner.x())), max(screen.top(), min(self.y(), corner.y())))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the titles of the tabs and the questions out of a narrow window."""
        super().resizeEvent(event)
        self._tab_list.set_brief(self._is_narrow)
        for tab in self._tabs.values():
            tab.set_narrow(self._is_narrow)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a single file or folder."""
        if dropped_path(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the dropped plan, model, folder, training file, trace, log, module or recording."""
        path = dropped_path(event)
        if path is not None:
            event.acceptProposedAction()
            self.documents.open(path)

    def changeEvent(self, event: QEvent) -> None:
        """Look for changes of the plan's file when the person comes back from another program or window."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.documents.check_file()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask about unsaved changes before closing, and store the window's geometry."""
        if not self.documents.may_quit():
            event.ignore()
            return
        self.navigator.trace_cancel_requested.emit()
        for tab in self._tabs.values():
            tab.shut_down()
        self.workspace.settings.update(geometry=self.saveGeometry().toBase64().toStdString())
        event.accept()

    def _created_tab(self, key: str) -> Tab:
        if key not in self._tabs:
            place = next(place for place in (START, *self.places) if place.key == key)
            self._tabs[key] = place.build(self.workspace, self.theme, self.tasks)
        return self._tabs[key]

    def _add_page(self, tab: Tab) -> None:
        if self._pages.indexOf(tab) < 0:
            tab.set_narrow(self._is_narrow)
            self._pages.addWidget(tab)

    @property
    def _is_narrow(self) -> bool:
        return self.width() < _NARROW

    def _lay_out(self) -> None:
        self.setWindowIcon(QIcon(str(resources_dir() / "icons" / "gpu-planner.svg")))
        self.setAcceptDrops(True)
        self.setMinimumSize(_SMALLEST_SIZE)
        for place in (START, *self.places):
            self._tab_list.add(place.key, place.title, place.icon, place.title)
        self._tab_list.set_apart(START.key)
        middle = in_row(self._tab_list, hairline(Qt.Orientation.Vertical), (self._pages, 1), spacing=0)
        center = QWidget()
        in_column(self.plan_bar, hairline(Qt.Orientation.Horizontal), self.banner, (middle, 1), owner=center, spacing=0)
        self.setCentralWidget(center)
        self.setStatusBar(self._status)

    def _restore_geometry_and_tab(self, page: str | None) -> None:
        settings = self.workspace.settings.current
        self.resize(_START_SIZE)
        if settings.geometry is not None:
            self.restoreGeometry(QByteArray.fromBase64(settings.geometry.encode()))
        known = [place.key for place in (START, *self.places)]
        self.show_tab(page or (settings.tab if settings.tab in known else WindowSettings().tab))

    def _fill_menus(self) -> None:
        bar = self.menuBar()
        menus = self.commands.fill(bar)
        self._recent = QMenu("&Recent", self)
        self._recent.aboutToShow.connect(self._fill_recent_menu)
        menus["File"].insertMenu(self.commands["file.save"], self._recent)
        for menu in menus.values():
            menu.aboutToShow.connect(self.commands.prepare)
        palette = self.commands["view.palette"]
        search = IconButton(self.theme, "search", "Search commands, GPUs and models")
        search.setParent(bar)
        search.setText(palette.shortcut().toString(QKeySequence.SequenceFormat.NativeText))
        search.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        search.clicked.connect(palette.trigger)
        set_style_role(search, "quiet")
        bar.setCornerWidget(search)

    def _connect(self) -> None:
        workspace, navigator = self.workspace, self.navigator
        workspace.failed.connect(self.show_error)
        workspace.noticed.connect(self.banner.show_notice)
        for succeeded in (workspace.changed, workspace.file_changed, workspace.succeeded):
            succeeded.connect(self.banner.hide_past_error)
        self.banner.trace_requested.connect(self.documents.trace_network)
        workspace.changed.connect(self.commands.refresh)
        workspace.pin.changed.connect(self.commands.refresh)
        workspace.tracing_changed.connect(self.commands.refresh)
        workspace.file_changed.connect(self._update_title)
        navigator.tab_requested.connect(self.show_tab)
        navigator.fitting_cards_requested.connect(self.show_fitting_cards)
        navigator.hardware_requested.connect(lambda: self.cost().choose_hardware())
        navigator.model_file_requested.connect(self.documents.choose_model)
        navigator.model_folder_requested.connect(self.documents.choose_model_folder)
        navigator.hub_model_requested.connect(self.documents.open_hub)
        navigator.file_requested.connect(self.documents.open)
        navigator.hardware_choice_requested.connect(lambda: self.cost().choose_hardware())
        navigator.demo_requested.connect(lambda: self.monitor().controller.show_demo())
        navigator.recording_requested.connect(lambda path: self.monitor().controller.open_recording_file(path))
        navigator.start_left.connect(self.leave_start)
        self.tab_shown.connect(self.commands.refresh)
        navigator.questions_requested.connect(lambda: self.tab.open_questions())
        self.plan_bar.priced.connect(self._status.show_prices)
        self.plan_bar.unpriced.connect(self._status.prices.hide)
        self._tab_list.chosen.connect(self.show_tab)

    @Slot()
    def _update_title(self) -> None:
        path = self.workspace.path
        self.setWindowTitle("GPU Planner" if path is None else f"{path.name}[*] – GPU Planner")
        self.setWindowModified(path is not None and self.workspace.modified)
        self.commands.refresh()

    @Slot()
    def _fill_recent_menu(self) -> None:
        self._recent.clear()
        for name in self.workspace.settings.current.recent:
            self._recent.addAction(name, partial(self.documents.open, Path(name)))
        if self._recent.isEmpty():
            self._recent.addAction("No plans yet").setEnabled(False)
