"""The Monitor tab: readings of the cards, their diagnosis, and their comparison with the plan."""

from time import monotonic, process_time, time
from typing import ClassVar, Final

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QCloseEvent, QHideEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from planner.gui.monitor.card_lines import CardLines
from planner.gui.monitor.controller import Controller
from planner.gui.monitor.diagnoser import Diagnoser
from planner.gui.monitor.dialogs import VerdictDialog
from planner.gui.monitor.feed import Feed
from planner.gui.monitor.headline import EmptyState, HeadlinePanel
from planner.gui.monitor.notices import AlertNotifier, FaultList, UnfinishedBanner
from planner.gui.monitor.plan_strip import PlanLines, PlanStrip
from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.monitor.plots.time_view import TimeSpanView
from planner.gui.monitor.processes import Processes
from planner.gui.monitor.toolbar import ReplayBar, Toolbar
from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.labels import ElidedLabel
from planner.gui.widgets.layout import in_column, scrolled
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.monitor.history import History
from planner.plan.evaluate import Evaluation
from planner.present.monitor.events import fault_views
from planner.present.monitor.headline import card_line, machine_headline, numbered_card_name
from planner.present.monitor.readings import card_rows, driver_line, host_line, monitoring_cost_text

# Few steps, so that the axis seldom changes.
_SPAN_STEPS_SECONDS: Final = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0)
_SHARE_INTERVAL_SECONDS: Final = 2.0
_MINUTE_MS: Final = 60_000


class GrowingSpan:
    """Grows the displayed time span in steps from a minute to the chosen span, which would be mostly empty at first.

    It stops growing as soon as the user zooms, pans or chooses a span.
    """

    def __init__(self, view: TimeSpanView) -> None:
        self._view = view
        self._full_seconds: float | None = None
        self._shown_seconds: float | None = None

    def set_full_span(self, full_seconds: float | None) -> None:
        """Set the span up to which `grow_to_readings` grows, in seconds; None stands for everything."""
        self._full_seconds, self._shown_seconds = full_seconds, full_seconds
        self._view.set_span(full_seconds)

    def set_fixed_span(self, seconds: float | None) -> None:
        """Show a span of `seconds`, None for everything, and stop growing."""
        self._full_seconds = None
        self._view.set_span(seconds)

    def grow_to_readings(self, history: History) -> None:
        """Show the smallest step that contains all readings, up to the full span."""
        start, end, full_seconds = history.start, history.end, self._full_seconds
        if start is None or end is None or full_seconds is None:
            return
        if not self._view.follow or self._view.span != self._shown_seconds:
            self._full_seconds = None
            return
        fitting = next((step for step in _SPAN_STEPS_SECONDS if step >= end - start), full_seconds)
        if min(fitting, full_seconds) != self._shown_seconds:
            self._shown_seconds = min(fitting, full_seconds)
            self._view.set_span(self._shown_seconds)


class OwnCpuShare:
    """Share of a core that this process uses, measured over at least two seconds so that the figure is steady."""

    def __init__(self) -> None:
        self._at, self._spent = monotonic(), process_time()
        self.fraction: float | None = None

    def measure(self) -> float | None:
        """Return the fraction of a core in the last interval, None during the first two seconds."""
        elapsed = monotonic() - self._at
        if elapsed >= _SHARE_INTERVAL_SECONDS:
            spent = process_time()
            self.fraction = (spent - self._spent) / elapsed
            self._at, self._spent = monotonic(), spent
        return self.fraction


class MonitorTab(Tab):
    """The Monitor tab: cards at the top, plots below, processes at the bottom; tests can pass a `feed`."""

    key: ClassVar[str] = "monitor"
    title: ClassVar[str] = "Monitor"
    icon_name: ClassVar[str] = "monitor"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner, feed: Feed | None = None) -> None:
        super().__init__(workspace, theme, tasks)
        settings = workspace.settings.current.monitor
        self.feed = feed or Feed(settings.interval_seconds, settings.alerts)
        self.feed.setParent(self)
        self.controller = Controller(self.feed, workspace, theme, tasks, self)
        self.diagnoser = Diagnoser(self.feed)
        self.notifier = AlertNotifier(self.feed, workspace, theme, self)
        self.more = self.controller.more_menu()
        self.toolbar = Toolbar(theme, settings, self.more)
        self.replay_bar = ReplayBar(theme)
        self.unfinished_banner = UnfinishedBanner(theme)
        self.headline = HeadlinePanel(theme)
        self.faults = FaultList(theme)
        self.cards = CardLines(theme)
        self.empty_state = EmptyState(theme)
        self.plan_strip = PlanStrip(workspace, theme, tasks)
        self.machine = ElidedLabel(role="muted")
        self.reconnect = QPushButton("Reconnect to the driver")
        self.reconnect.setToolTip("Read the cards again")
        self.plots = PlotGrid(theme, self.feed.history, workspace.settings)
        self._growing_span = GrowingSpan(self.plots.view)
        self.more.aboutToShow.connect(self._replace_plots_menu)
        self.processes = Processes(workspace, theme)
        self.process_section = Section(theme, "Processes", self.processes)
        self.is_paused = False
        self._was_released_while_hidden = False
        self._cpu_share = OwnCpuShare()
        self._plots_menu: QMenu | None = None
        self._plan_lines = PlanLines(self.plots, "plan")
        self._hidden_timer = QTimer(self, singleShot=True)
        self._hidden_timer.timeout.connect(self._release_while_hidden)
        # Processes and plots follow the cards in the next pass of the event loop: together they would block the window.
        self._second_pass = QTimer(self, singleShot=True, interval=0)
        self._second_pass.timeout.connect(self._update_processes_and_plots)
        self._lay_out()
        self._connect()
        self._show_source()
        self.process_section.set_open(settings.shows_processes)
        if settings.unfinished is not None:
            self.unfinished_banner.show_offer(settings.unfinished.interrupted_path)

    def refresh(self, _evaluation: Evaluation) -> None:
        """Compare the readings with the changed plan."""
        self.plan_strip.discard_batch_size()
        self._update_views()

    def copy_result(self) -> str:
        """Return the headline, the cards and the faults as text."""
        heading = (self.toolbar.source.text(), self.machine.text())
        return "\n".join([*heading, self.headline.text, *self.cards.texts, *self.faults.texts]).strip()

    def focus_search(self) -> None:
        """Expand the section of processes and focus its search field."""
        self.process_section.set_open(True)
        self._on_processes_toggled(True)
        self.processes.search.setFocus()

    def shut_down(self) -> None:
        """Stop the recording and disconnect from the driver."""
        self._hidden_timer.stop()
        self.controller.cancel_tasks()
        self.plan_strip.cancel()
        self.notifier.close()
        self.feed.stop()

    @Slot()
    def toggle_pause(self) -> None:
        """Pause or resume the view; readings continue in the background."""
        if self.feed.replay is not None:
            self.replay_bar.toggle()
            return
        self.is_paused = not self.is_paused
        self.toolbar.set_paused(self.is_paused)
        self._update_views()

    def showEvent(self, event: QShowEvent) -> None:
        """Start reading, or reconnect to the driver if the tab disconnected while hidden."""
        self._hidden_timer.stop()
        self.feed.start()
        if self._was_released_while_hidden:
            self._was_released_while_hidden = False
            self.feed.resume()
        # The readings have changed even if the plan has not.
        self._stale = True
        super().showEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        """Start the timer that disconnects from the driver while the tab is hidden."""
        super().hideEvent(event)
        minutes = self.controller.settings.release_after_minutes
        if minutes is not None:
            self._hidden_timer.start(round(minutes * _MINUTE_MS))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Shut down when the tab is closed, which happens only if it is a window of its own."""
        self.shut_down()
        super().closeEvent(event)

    @Slot()
    def _release_while_hidden(self) -> None:
        if self.feed.needs_driver_while_hidden:
            self._hidden_timer.start()
        elif not self.feed.is_released:
            self._was_released_while_hidden = True
            self.feed.release()

    @Slot()
    def _on_updated(self) -> None:
        self.workspace.note_devices(self.feed.live_latest.inventory.devices)
        if self.isVisible() and not (self.is_paused and self.feed.is_live):
            self._update_views()

    @Slot()
    def _show_source(self) -> None:
        """Show the new source of readings, live or a replay."""
        replay = self.feed.replay
        self.is_paused = False
        self.diagnoser.reset()
        self.plots.set_history(self.feed.history)
        self._show_default_span()
        self.toolbar.set_paused(False)
        self.toolbar.set_source("Live" if replay is None else replay.loaded.title, is_live=replay is None)
        self.replay_bar.set_replay(replay)
        self.processes.set_live(replay is None)
        self.plan_strip.set_recording(None if replay is None else replay.loaded.recording)
        self._update_views()

    def _update_views(self) -> None:
        latest = self.feed.latest
        rows = card_rows(latest)
        diagnoses = self.diagnoser.diagnose()
        self.plan_strip.compare(latest, is_under_filled=self.diagnoser.is_under_filled)
        # The diagnosis of a single card is already the headline.
        shares = self._plan_lines.draw(latest.inventory.devices, self.plan_strip.expected)
        self.cards.show_cards([card_line(row) for row in rows], diagnoses if len(rows) > 1 else {}, shares)
        self.cards.setVisible(bool(rows))
        self.faults.show_faults(fault_views(latest, self._displayed_wall_seconds()))
        is_released = self.feed.is_live and self.feed.is_released
        self.reconnect.setVisible(is_released)
        self.headline.show_headline(
            machine_headline(self.diagnoser.verdicts, latest.inventory, is_released=is_released)
        )
        self.empty_state.setVisible(not rows and not self.feed.is_released)
        self._update_machine_line()
        self.replay_bar.refresh()
        self._second_pass.start()

    @Slot()
    def _update_processes_and_plots(self) -> None:
        self.processes.show_processes(self.feed.latest)
        self._growing_span.grow_to_readings(self.feed.history)
        self.plots.refresh()
        if not self.feed.is_live:
            self.plots.view.move_cursor(self.feed.now)

    def _displayed_wall_seconds(self) -> float:
        return time() if self.feed.is_live else self.feed.latest.wall_seconds or 0.0

    def _update_machine_line(self) -> None:
        latest = self.feed.latest
        self.machine.setText("  ·  ".join(part for part in (driver_line(latest), host_line(latest)) if part))
        cost = monitoring_cost_text(latest.cost, self._cpu_share.measure()) if self.feed.is_live else ""
        self.toolbar.cost.setText("  ·  ".join(part for part in (self.controller.recording_status, cost) if part))

    @Slot()
    def _replace_plots_menu(self) -> None:
        """Replace the submenu of plots by one that lists the plots with readings now."""
        before, self._plots_menu = self._plots_menu, self.plots.plots_menu()
        if before is not None:
            before.deleteLater()
        self.more.addMenu(self._plots_menu)

    @Slot(str)
    def _show_diagnosis(self, uuid: str) -> None:
        diagnosis, rows = self.diagnoser.diagnose().get(uuid), card_rows(self.feed.latest)
        row = next((row for row in rows if row.device.uuid == uuid), None)
        if diagnosis is not None and row is not None:
            checklist = self.diagnoser.checklist(uuid)
            self.controller.open_dialog(
                VerdictDialog(numbered_card_name(row), diagnosis, checklist, self.theme, self.window())
            )

    @Slot(bool)
    def _on_processes_toggled(self, is_open: bool) -> None:
        self.controller.change_settings(shows_processes=is_open)
        if is_open:
            # After the layout has placed them.
            QTimer.singleShot(0, self, lambda: self._area.ensureWidgetVisible(self.processes))

    @Slot(object)
    def _on_span_chosen(self, seconds: float | None) -> None:
        self.controller.change_settings(span_seconds=seconds)
        self._growing_span.set_fixed_span(seconds)

    def _show_default_span(self) -> None:
        """Show the stored time span for live readings, and everything for a recording."""
        span = self.controller.settings.span_seconds if self.feed.is_live else None
        self.toolbar.show_span(span)
        self._growing_span.set_full_span(span)

    @Slot(float)
    def _on_interval_chosen(self, seconds: float) -> None:
        self.controller.change_settings(interval_seconds=seconds)
        self.feed.set_interval(seconds)

    @Slot()
    def _on_recording_changed(self) -> None:
        path = self.feed.recording_path
        self.toolbar.set_recording(is_on=path is not None)
        self.toolbar.record.setToolTip("" if path is None else str(path))
        self.controller.store_recorded_path(path)

    def _lay_out(self) -> None:
        space = self.theme.spacing
        body = QWidget()
        self._area = scrolled(body)
        fixed = (self.toolbar, self.replay_bar, self.unfinished_banner, self._area)
        in_column(*fixed, owner=self, margins=(space.medium, space.small), spacing=space.small)
        in_column(
            self.headline,
            self.faults,
            self.empty_state,
            (self.reconnect, 0, Qt.AlignmentFlag.AlignLeft),
            self.cards,
            self.plan_strip,
            self.machine,
            (self.plots, 1),
            self.process_section,
            owner=body,
            spacing=space.small,
        )

    def _connect(self) -> None:
        feed, controller, toolbar = self.feed, self.controller, self.toolbar
        feed.updated.connect(self._on_updated)
        feed.switched.connect(self._show_source)
        feed.recording_changed.connect(self._on_recording_changed)
        feed.failed.connect(self.workspace.failed)
        controller.settings_changed.connect(lambda: toolbar.set_alerts(is_on=controller.settings.alerts.is_on))
        self.unfinished_banner.opened.connect(controller.open_recording_file)
        self.unfinished_banner.offer_ended.connect(lambda: controller.store_recorded_path(None))
        toolbar.pause.clicked.connect(self.toggle_pause)
        toolbar.live.clicked.connect(feed.go_live)
        toolbar.record.clicked.connect(controller.toggle_recording)
        toolbar.open.clicked.connect(controller.choose_recording)
        toolbar.note.clicked.connect(controller.ask_mark)
        toolbar.alerts.clicked.connect(controller.open_settings)
        toolbar.span_chosen.connect(self._on_span_chosen)
        toolbar.interval_chosen.connect(self._on_interval_chosen)
        self.empty_state.replay.clicked.connect(controller.choose_recording)
        self.empty_state.demo.clicked.connect(controller.show_demo)
        self.empty_state.doctor.clicked.connect(controller.show_doctor)
        self.plan_strip.updated.connect(self._on_updated)
        self.reconnect.clicked.connect(controller.toggle_driver_connection)
        self.plots.mark_wanted.connect(controller.ask_mark_at)
        self.plots.failed.connect(self.workspace.failed)
        self.cards.opened.connect(self._show_diagnosis)
        self.plan_strip.speed_wanted.connect(controller.ask_speed)
        self.headline.opened.connect(self._show_diagnosis)
        self.process_section.toggled.connect(self._on_processes_toggled)
        self.processes.summarised.connect(self.process_section.set_summary)
