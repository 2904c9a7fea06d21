"""The Monitor tab: readings of the cards, their diagnosis, and their comparison with the plan."""

from collections.abc import Sequence
from time import monotonic, process_time, time
from typing import TYPE_CHECKING, ClassVar, Final

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QCloseEvent, QHideEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QPushButton, QStackedWidget, QWidget

from planner.fleet.connection import FleetConnection
from planner.gui.monitor.card_lines import CardLines
from planner.gui.monitor.controller import Controller
from planner.gui.monitor.dialogs import VerdictDialog
from planner.gui.monitor.feed import Diagnoser, Feed
from planner.gui.monitor.notices import AlertNotifier, EmptyState, FaultList, HeadlinePanel, UnfinishedBanner
from planner.gui.monitor.plan_strip import PlanLines, PlanStrip
from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.monitor.plots.plot_list import AxisRange
from planner.gui.monitor.processes import Processes
from planner.gui.monitor.toolbar import ReplayBar, Toolbar
from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import CalmTimer
from planner.gui.widgets.labels import ElidedLabel
from planner.gui.widgets.layout import in_column, laid_out_at_once, scrolled
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.monitor.energy import UsedEnergy, energy_used
from planner.monitor.readings.faults import LINK_FAULTS
from planner.monitor.readings.inventory import Inventory
from planner.plan.evaluate import Evaluation
from planner.present.monitor.card_details import card_details
from planner.present.monitor.events import clock_time, fault_views
from planner.present.monitor.headline import card_line, machine_headline, numbered_card_name
from planner.present.monitor.readings import CardReadings, card_rows, driver_line, host_line, monitoring_cost_text
from planner.present.monitor.totals import Totals, card_totals, energy_in_text

if TYPE_CHECKING:
    from planner.gui.monitor.fleet.fleet_page import FleetPage

_SHARE_INTERVAL_SECONDS: Final = 2.0
_MINUTE_MS: Final = 60_000
_SECOND_PASS_MS: Final = 30


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
    """The Monitor tab: cards, processes and plots in a scrolled page, events below it; tests can pass a `feed`."""

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
        self.machine = ElidedLabel(role="muted", is_live=True)
        self.reconnect = QPushButton("Reconnect to the driver")
        self.reconnect.setToolTip("Read the GPUs again")
        self.plots = PlotGrid(theme, self.feed.history, workspace.settings)
        self.more.aboutToShow.connect(self._replace_plots_menu)
        self.processes = Processes(workspace, theme)
        self.process_section = Section(theme, "Processes", self.processes)
        self.fleet: FleetPage | None = None
        self.is_paused = False
        self._was_released_while_hidden = False
        self._cpu_share = OwnCpuShare()
        self._plots_menu: QMenu | None = None
        self._plan_lines = PlanLines(self.plots, "plan")
        self._hidden_timer = QTimer(self, singleShot=True)
        self._hidden_timer.timeout.connect(self._release_while_hidden)
        # Processes and plots follow the cards once these are painted: together they would block the window.
        self._second_pass = CalmTimer(self, _SECOND_PASS_MS)
        self._second_pass.timeout.connect(self._update_processes_and_plots)
        # Likewise what a comparison with the plan adds, which moves all plots.
        self._compared_pass = CalmTimer(self)
        self._compared_pass.timeout.connect(self._on_updated)
        self._lay_out()
        self._connect()
        self._show_source()
        self.process_section.set_open(settings.shows_processes)
        self.unfinished_banner.show_offers(settings.interrupted_recordings)

    def refresh(self, _evaluation: Evaluation) -> None:
        """Compare the readings with the changed plan."""
        self.plan_strip.discard_batch_size()
        self._update_views()

    def copy_result(self) -> str:
        """Return the headline, the cards and the faults as text."""
        if self.fleet is not None and self._pages.currentWidget() is self.fleet:
            return self.fleet.copy_result()
        heading = (self.toolbar.source.text(), self.machine.text())
        parts = [*heading, self.headline.text, *self.cards.texts, self.cards.totals_text, *self.faults.texts]
        return "\n".join(filter(None, parts))

    def focus_search(self) -> None:
        """Expand the section of processes and focus its search field; of a fleet, that of its cards."""
        if self.fleet is not None and self._pages.currentWidget() is self.fleet:
            self.fleet.search.setFocus()
            return
        self.process_section.set_open(True)
        self._on_processes_toggled(True)
        self.processes.search.setFocus()

    def shut_down(self) -> None:
        """Stop the recording and disconnect from the driver."""
        self._hidden_timer.stop()
        if self.fleet is not None:
            self.fleet.shut_down()
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
        self.feed.set_seen(True)
        if self._was_released_while_hidden:
            self._was_released_while_hidden = False
            self.feed.resume()
        # The readings have changed even if the plan has not.
        self._stale = True
        super().showEvent(event)

    def catch_up(self) -> None:
        """Wait until the tab is shown, since readings change until then."""
        if self.isVisible():
            super().catch_up()

    def hideEvent(self, event: QHideEvent) -> None:
        """Read less often, and start the timer that disconnects from the driver while the tab is hidden."""
        super().hideEvent(event)
        self.feed.set_seen(False)
        minutes = self.controller.settings.release_after_minutes
        if minutes is not None:
            self._hidden_timer.start(round(minutes * _MINUTE_MS))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Shut down when the tab is closed, which happens only if it is a window of its own."""
        self.shut_down()
        super().closeEvent(event)

    @Slot()
    def show_fleet(self) -> None:
        """Show the fleet that was shown before, or ask where it is."""
        last = self.controller.settings.fleet
        if self.fleet is not None and self.fleet.feed.is_connected:
            self._pages.setCurrentWidget(self.fleet)
        else:
            self.ask_fleet(last)

    @Slot()
    def ask_fleet(self, last: FleetConnection | None = None) -> None:
        """Ask where a fleet is and how to sign in, and show it."""
        from planner.gui.monitor.connect_dialogs import ConnectDialog  # seldom opened

        dialog = ConnectDialog(last or self.controller.settings.fleet, self.theme, self.window())
        dialog.chosen.connect(self.connect_fleet)
        self.controller.open_dialog(dialog)

    @Slot(object, str)
    def connect_fleet(self, connection: FleetConnection, typed_secret: str = "") -> None:
        """Show the cards of a fleet instead of this machine's, which are still read."""
        if self.fleet is None:
            from planner.gui.monitor.fleet.fleet_page import FleetPage  # seldom used

            self.fleet = FleetPage(self.workspace, self.theme)
            self.fleet.local_wanted.connect(lambda: self._pages.setCurrentIndex(0))
            self.fleet.connect_wanted.connect(self.ask_fleet)
            self._pages.addWidget(self.fleet)
        self.controller.change_settings(fleet=connection)
        self._pages.setCurrentWidget(self.fleet)
        self.fleet.connect_to(connection, typed_secret)

    @Slot()
    def _release_while_hidden(self) -> None:
        if self.feed.needs_driver_while_hidden:
            self._hidden_timer.start()
        elif not self.feed.is_released:
            self._was_released_while_hidden = True
            self.feed.release()

    @Slot()
    def _on_updated(self) -> None:
        if self.feed.machine is None:
            self.workspace.note_devices(self.feed.live_latest.inventory.devices)
        if self.isVisible() and not (self.is_paused and self.feed.is_live):
            self._update_views()

    @Slot()
    def _show_source(self) -> None:
        """Show the new source of readings, live or a replay."""
        replay = self.feed.replay
        self.is_paused = False
        self.diagnoser.reset()
        # The stored time span for live readings, and everything for a recording.
        span = self.controller.settings.span_seconds if replay is None else None
        self.toolbar.choose_span(span)
        self.plots.set_history(self.feed.history, span)
        self.toolbar.set_paused(False)
        live = "Live" if self.feed.machine is None else f"Live · {self.feed.machine.host}"
        self.toolbar.set_source(live if replay is None else replay.loaded.title, is_live=replay is None)
        self.replay_bar.set_replay(replay)
        # A process of another machine cannot be ended from here, and its number may be that of one here.
        self.processes.set_live(replay is None and self.feed.machine is None)
        self.plan_strip.set_recording(None if replay is None else replay.loaded.recording)
        self._update_views()

    def _update_views(self) -> None:
        latest = self.feed.latest
        rows = card_rows(latest)
        diagnoses = self.diagnoser.diagnose()
        self.plan_strip.compare(latest, is_under_filled=self.diagnoser.is_under_filled)
        # A diagnosis that all cards share is already the headline.
        is_shared = len({(view.title, view.tone) for view in diagnoses.values()}) < 2
        shares = self._plan_lines.draw(latest.inventory.devices, self.plan_strip.expected)
        lines = [card_line(row) for row in rows]
        is_released = self.feed.is_live and self.feed.is_released
        is_empty = not rows and not self.feed.is_released
        # At once, so that what a new fault moves is not given a size twice, which takes long for plots.
        with laid_out_at_once(self.faults):
            self.cards.show_cards(lines, {} if is_shared else diagnoses, shares, self._totals(rows))
            self.cards.setVisible(bool(rows))
            faults = fault_views(latest, self._displayed_wall_seconds(), below_headline=is_empty)
            self.faults.show_faults(faults, are_folded=is_empty)
            is_cut_off = self.feed.is_live and any(fault.kind in LINK_FAULTS for fault in latest.inventory.faults)
            self.reconnect.setVisible(is_released or (is_cut_off and not is_empty))
            self.reconnect.setText("Connect again" if is_cut_off else "Reconnect to the driver")
            self.headline.show_headline(
                machine_headline(self.diagnoser.verdicts, latest.inventory, is_released=is_released)
            )
            self.empty_state.setVisible(is_empty)
            self.empty_state.show_buttons(is_remote=self.feed.machine is not None, is_cut_off=is_cut_off)
        self._update_machine_line()
        self.replay_bar.refresh()
        if not self._second_pass.isActive():  # on a busy machine, the next readings would put it off again and again
            self._second_pass.start()

    @Slot()
    def _update_processes_and_plots(self) -> None:
        self.processes.show_processes(self.feed.latest)
        self.plots.refresh()
        view, now = self.plots.view, self.feed.now
        if not self.feed.is_live:
            view.move_cursor(now)
        if now is not None:
            devices = self.feed.latest.inventory.devices
            self.cards.show_courses(self.feed.history, devices, AxisRange(view.start, view.end), now)

    @Slot(float)
    def _show_clicked_time(self, time: float) -> None:
        """Move the replay, if there is one, to a clicked time, so that all parts of the tab show that time."""
        if self.feed.replay is not None:
            self.feed.replay.show_time(time)

    @Slot(object)
    def _restore_cursor(self, time: float | None) -> None:
        """Put the cursor of a replay back to the displayed time once the pointer has left the plots."""
        if time is None and not self.feed.is_live:
            self._second_pass.start()

    def _totals(self, rows: Sequence[CardReadings]) -> Totals | None:
        """Return the totals of several cards, with the energy used in the displayed time span up to now."""
        return None if len(rows) < 2 else card_totals(rows, *self._used_energy())

    def _used_energy(self) -> tuple[UsedEnergy | None, float]:
        """Return the energy that the cards used in the displayed time span up to now, and its length in seconds."""
        history, now = self.feed.history, self.feed.now
        if history.start is None or now is None:
            return None, 0.0
        start = max(self.plots.view.start, history.start)
        return energy_used(history, self.feed.latest.inventory.devices, start, now), now - start

    def _displayed_wall_seconds(self) -> float:
        return time() if self.feed.is_live else self.feed.latest.wall_seconds or 0.0

    def _update_machine_line(self) -> None:
        latest = self.feed.latest
        is_known = latest.inventory != Inventory(machine=latest.inventory.machine)  # something has answered
        driver = driver_line(latest.inventory) if is_known else ""
        energy = "" if len(latest.inventory.devices) > 1 else energy_in_text(*self._used_energy())
        self.machine.setText("  ·  ".join(filter(None, (latest.inventory.machine, energy, driver, host_line(latest)))))
        window, history = self._cpu_share.measure(), self.feed.history
        watched = 0.0 if history.start is None or history.end is None else history.end - history.start
        is_started = self.feed.is_live and watched >= _SHARE_INTERVAL_SECONDS  # to start takes a whole core
        cost = monitoring_cost_text(latest.cost, window) if is_started else ""
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
            details = card_details(row, self.workspace.catalog.hardware)
            self.controller.open_dialog(
                VerdictDialog(numbered_card_name(row), diagnosis, details, checklist, self.theme, self.window())
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
        self.plots.view.set_span(seconds)
        self._show_displayed_span()

    @Slot()
    def _show_displayed_span(self) -> None:
        """Say in the toolbar which time span is displayed, also after zooming and panning."""
        view = self.plots.view
        until = None if view.follow else clock_time(self.feed.history.wall_of(view.end))
        self.toolbar.show_span(None if view.shows_all else view.span, until)

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
        self.plots.fill(self._area)
        parts = (self.toolbar, self.replay_bar, self.unfinished_banner, (self._area, 1), self.plots.band_row)
        local = QWidget()
        in_column(*parts, owner=local, margins=(space.medium, space.small), spacing=space.small)
        self._pages = QStackedWidget()
        self._pages.addWidget(local)
        in_column((self._pages, 1), owner=self, spacing=0)
        in_column(
            self.headline,
            self.empty_state,
            self.faults,
            (self.reconnect, 0, Qt.AlignmentFlag.AlignLeft),
            self.cards,
            self.plan_strip,
            self.machine,
            self.process_section,
            (self.plots, 1),
            owner=body,
            spacing=space.tiny,
        )

    def _connect(self) -> None:
        feed, controller, toolbar = self.feed, self.controller, self.toolbar
        feed.updated.connect(self._on_updated)
        feed.switched.connect(self._show_source)
        feed.recording_changed.connect(self._on_recording_changed)
        feed.failed.connect(self.workspace.failed)
        controller.settings_changed.connect(lambda: toolbar.set_alerts(is_on=controller.settings.alerts.is_on))
        self.unfinished_banner.opened.connect(controller.open_recording_file)
        self.unfinished_banner.offer_ended.connect(controller.forget_recording)
        toolbar.pause.clicked.connect(self.toggle_pause)
        toolbar.live.clicked.connect(feed.go_live)
        toolbar.record.clicked.connect(controller.toggle_recording)
        toolbar.open.clicked.connect(controller.choose_recording)
        toolbar.fleet.clicked.connect(self.show_fleet)
        toolbar.note.clicked.connect(controller.ask_mark)
        toolbar.alerts.clicked.connect(controller.open_settings)
        toolbar.span_chosen.connect(self._on_span_chosen)
        toolbar.interval_chosen.connect(self._on_interval_chosen)
        self.empty_state.replay.clicked.connect(controller.choose_recording)
        self.empty_state.demo.clicked.connect(controller.show_demo)
        self.empty_state.doctor.clicked.connect(controller.show_doctor)
        self.empty_state.again.clicked.connect(feed.resume)
        self.empty_state.another.clicked.connect(controller.choose_machine)
        self.empty_state.here.clicked.connect(controller.watch_this_machine)
        self.plan_strip.updated.connect(self._compared_pass.start)
        self.reconnect.clicked.connect(feed.resume)
        self.plots.clicked.connect(self._show_clicked_time)
        self.plots.mark_wanted.connect(controller.ask_mark_at)
        self.plots.view.cursor_moved.connect(self._restore_cursor)
        self.plots.view.moved.connect(self._show_displayed_span)
        self._area.verticalScrollBar().valueChanged.connect(self.plots.draw_visible)
        self.plots.failed.connect(self.workspace.failed)
        self.cards.opened.connect(self._show_diagnosis)
        self.plan_strip.speed_wanted.connect(controller.ask_speed)
        self.headline.opened.connect(self._show_diagnosis)
        self.process_section.toggled.connect(self._on_processes_toggled)
        self.processes.summarised.connect(self.process_section.set_summary)
