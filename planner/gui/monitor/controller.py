"""Controller of the Monitor tab: recording, replay, marks, settings and the check of this machine."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Final

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QDialog, QFileDialog, QInputDialog, QMenu, QWidget

from planner.errors import PlannerError, RecordingError
from planner.gui.monitor.dialogs import DoctorDialog, SpeedDialog, SummaryDialog
from planner.gui.monitor.feed import Feed
from planner.gui.monitor.replay import LoadedRecording, RecordingLoader
from planner.gui.monitor.settings import MonitorSettings, UnfinishedRecording
from planner.gui.monitor.settings_dialog import SettingsDialog
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import choose_report_file, open_once
from planner.gui.workspace import Workspace
from planner.monitor.recording.export import export
from planner.monitor.recording.log_import import open_recording
from planner.monitor.recording.recording import MonitorRecording
from planner.monitor.recording.summary import RecordingSummary, summarize_recording
from planner.monitor.supervisor.remote import RemoteAddress
from planner.paths import resources_dir
from planner.present.monitor.events import elapsed_text
from planner.present.trackers.run import TrackerName
from planner.present.trackers.tracking import LiveTracking, TrackedRun, export_to_tracker

DEMO: Final = resources_dir() / "demo" / "training.gpurec"
_LOADING: Final = "monitor recording"
_RECORDINGS: Final = "Recordings (*.gpurec)"
_OPENED: Final = "Recordings and logs (*.gpurec *.csv *.log *.txt *.json);;All files (*)"
_MOST_MACHINES: Final = 8
_TABLES: Final = "Table (*.csv);;Parquet (*.parquet)"
_ENDINGS: Final = (".csv", ".parquet")
_EXPORTING: Final = "monitor export"
_SUMMING: Final = "monitor summary"
_REPORTING: Final = "monitor report"
_TRACKING: Final = "monitor tracking"
_UNTRACKED: Final = "The recording goes on without it."
_RecordingWithSummary = tuple[MonitorRecording, RecordingSummary]


class Controller(QObject):
    """Runs the Monitor tab's actions and dialogs; `settings_changed` follows a change in the settings dialog."""

    settings_changed = Signal()

    def __init__(self, feed: Feed, workspace: Workspace, theme: Theme, tasks: TaskRunner, tab: QWidget) -> None:
        super().__init__(tab)
        self._feed, self._workspace, self._theme, self._tasks, self._tab = feed, workspace, theme, tasks, tab
        self._recorded_since = 0.0
        self.dialog: QDialog | None = None
        workspace.changed.connect(self._record_plan)
        feed.tracking_ended.connect(self._close_tracking)

    @property
    def settings(self) -> MonitorSettings:
        """Return the stored settings of the Monitor tab."""
        return self._workspace.settings.current.monitor

    def change_settings(self, **changes: object) -> None:
        """Store changed settings of the Monitor tab, by field name."""
        self._workspace.settings.update(monitor=self.settings.evolve(**changes))

    def store_recorded_path(self, path: Path | None) -> None:
        """Store immediately which file is being recorded, so that the next start can report its interruption."""
        self._recorded_since = monotonic()
        own = UnfinishedRecording.by_this_process(path or Path())
        others = (recording for recording in self.settings.unfinished if not recording.is_of_same_process(own))
        self._store_unfinished((*others, *([own] if path is not None else [])))

    def forget_recording(self, path: Path) -> None:
        """Offer the interrupted recording `path` no longer."""
        self._store_unfinished(tuple(one for one in self.settings.unfinished if Path(one.path) != path))

    def _store_unfinished(self, recordings: tuple[UnfinishedRecording, ...]) -> None:
        self.change_settings(unfinished=recordings)
        self._workspace.settings.flush()

    @property
    def recording_status(self) -> str:
        """Return `recording NAME for DURATION`, or an empty text if nothing is being recorded."""
        path = self._feed.recording_path
        duration = elapsed_text(monotonic() - self._recorded_since)
        tracked = " and a tracker's run" if self._feed.is_tracked else ""
        return "" if path is None else f"recording {path.name}{tracked} for {duration}"

    def more_menu(self) -> QMenu:
        """Return the toolbar's menu of less common actions."""
        menu = QMenu(self._tab)
        menu.addAction("Show a &demo", self.show_demo)
        menu.addAction("Another &machine…", self.choose_machine)
        here = menu.addAction("Back to t&his machine", self.watch_this_machine)
        menu.aboutToShow.connect(lambda: here.setEnabled(self._feed.machine is not None))
        menu.addAction("&Check this machine…", self.show_doctor)
        export = menu.addAction("&Export the recording…", self.choose_export)
        track = menu.addAction("Export to an experiment &tracker…", self.choose_tracker)
        summary = menu.addAction("Recording &summary…", self.show_summary)
        menu.addSeparator()
        menu.addAction("&Alerts and settings…", self.open_settings)
        release = menu.addAction("", self.toggle_driver_connection)
        menu.aboutToShow.connect(lambda: release.setText(self.driver_connection_text()))
        for action in (export, summary):
            menu.aboutToShow.connect(lambda action=action: action.setEnabled(not self._feed.is_live))
        menu.aboutToShow.connect(lambda: track.setEnabled(not self._feed.is_live or self._can_be_tracked))
        return menu

    def driver_connection_text(self) -> str:
        """Return the menu text of the action that disconnects from the driver or reconnects to it."""
        return "Reconnect to the dri&ver" if self._feed.is_released else "Disconnect from the dri&ver"

    @Slot()
    def toggle_driver_connection(self) -> None:
        """Disconnect from the driver, or reconnect to the driver."""
        if self._feed.is_released:
            self._feed.resume()
        else:
            self._feed.release()

    @Slot()
    def choose_machine(self) -> None:
        """Ask for another machine, and read it instead of this one."""
        from planner.gui.monitor.connect_dialogs import MachineDialog  # seldom opened

        dialog = MachineDialog(self.settings.machines, self._theme, self._tab.window())
        dialog.chosen.connect(self.watch_machine)
        self.open_dialog(dialog)

    @Slot(object)
    def watch_machine(self, address: RemoteAddress | None) -> None:
        """Read another machine, and remember it; None stands for this one. A recording must be stopped before."""
        if self._feed.recording_path is not None:
            self._workspace.noticed.emit("Stop the recording first.", "It holds the readings of one machine.")
            return
        if address is not None:
            others = (name for name in self.settings.machines if name != str(address))
            self.change_settings(machines=(str(address), *others)[:_MOST_MACHINES])
        self._feed.watch(address)

    @Slot()
    def watch_this_machine(self) -> None:
        """Read this machine again."""
        if self._feed.machine is not None:
            self.watch_machine(None)

    @Slot()
    def toggle_recording(self) -> None:
        """Ask for a file and start recording, or stop the current recording and show its summary."""
        recorded = self._feed.recording_path
        if recorded is not None:
            self._feed.stop_recording()
            self._summarize(partial(_load_with_summary, recorded))
            return
        place = "gpu" if self._feed.machine is None else self._feed.machine.host.replace(":", "-")
        name = f"{place}-{datetime.now().astimezone():%Y-%m-%d-%H%M}.gpurec"
        chosen, _ = QFileDialog.getSaveFileName(self._tab, "Record", name, _RECORDINGS)
        if chosen:
            path = Path(chosen)
            self.record_to(path if path.suffix else path.with_suffix(DEMO.suffix))

    def record_to(self, path: Path) -> None:
        """Record the readings and the plan to `path`; a failure is shown in the banner."""
        with self._workspace.reporting():
            self._feed.record_to(path)
            self._record_plan()

    @Slot()
    def _record_plan(self) -> None:
        self._feed.note_plan(self._workspace.plan)

    @Slot()
    def choose_recording(self) -> None:
        """Ask for the file of a recording or a log, and replay its readings."""
        chosen, _ = QFileDialog.getOpenFileName(self._tab, "Replay", "", _OPENED)
        if chosen:
            self.open_recording_file(Path(chosen))

    @Slot()
    def show_demo(self) -> None:
        """Replay the demo that is part of the program."""
        self._load_and_play(RecordingLoader(DEMO, is_demo=True))

    def open_recording_file(self, path: Path) -> None:
        """Replay the recording or log at `path`, which is loaded in the background."""
        self._load_and_play(RecordingLoader(path))

    @Slot()
    def choose_export(self) -> None:
        """Ask for a file name, and export the replayed recording as a table."""
        recording = self._replayed_recording()
        if recording is not None:
            self._choose_export_file(recording)

    @Slot()
    def choose_tracker(self) -> None:
        """Ask for an experiment tracker and a folder for a run of the replayed recording, or of the one in progress."""
        recorded = self._feed.recording_path
        if self._feed.is_live and recorded is not None and self._can_be_tracked:
            self._ask_tracker(recorded, lambda tracker, folder: self.track_live(folder, tracker, recorded), live=True)
        elif (recording := self._replayed_recording()) is not None:
            self._ask_tracker(recording.path, lambda tracker, folder: self.track_in(folder, tracker, recording))

    def _ask_tracker(self, path: Path, track: Callable[[TrackerName, Path], None], *, live: bool = False) -> None:
        from planner.gui.monitor.dialogs import TrackerDialog  # seldom opened

        dialog = TrackerDialog(path.name, path.absolute().parent / "runs", self._theme, self._tab.window(), live=live)
        dialog.chosen.connect(track)
        self.open_dialog(dialog)

    @property
    def _can_be_tracked(self) -> bool:
        """Return whether a recording is in progress that no tracker is told of."""
        return self._feed.recording_path is not None and not self._feed.is_tracked

    def track_live(self, folder: Path, tracker: TrackerName, recorded: Path) -> None:
        """Write the recording in progress to a tracker's run in `folder` as well, from now on."""
        start = partial(LiveTracking, folder, tracker, recorded.stem, self._workspace.catalog)
        self._workspace.noticed.emit(f"Opening a run in {folder}…", "")
        self._tasks.run(_TRACKING, start, partial(self._start_tracking, recorded), self._show_error)

    def _start_tracking(self, recorded: Path, tracking: LiveTracking) -> None:
        self._feed.track(tracking, self._workspace.plan)
        if self._feed.is_tracked:
            self._workspace.noticed.emit(f"{recorded.name} is also written to {tracking.folder} until it ends.", "")

    @Slot(object)
    def _close_tracking(self, tracking: LiveTracking) -> None:
        """Write the end of a tracker's run in the background, and say where it is."""
        self._tasks.run(_TRACKING, tracking.close, lambda _: self._show_tracked(tracking), self._show_error)

    def _show_tracked(self, tracking: LiveTracking) -> None:
        if tracking.failure is not None:
            hint = _UNTRACKED if self._feed.recording_path is not None else ""
            self._workspace.failed.emit(RecordingError(tracking.folder, tracking.failure, hint))
        elif tracking.result is not None:
            self._on_tracked(tracking.result)

    def track_in(self, folder: Path, tracker: TrackerName, recording: MonitorRecording) -> None:
        """Export a recording to a run of a tracker in `folder`, in the background."""
        stopped = Event()
        work = partial(
            export_to_tracker, recording, folder, tracker, self._workspace.catalog, is_stopped=stopped.is_set
        )
        self._workspace.noticed.emit(f"Exporting {recording.path.name} to {folder}…", "")
        self._tasks.run(_EXPORTING, work, self._on_tracked, self._show_error, stopped.set)

    def _on_tracked(self, run: TrackedRun) -> None:
        self._workspace.noticed.emit(f"Exported {run.values:,} values to {run.place}.", f"Show: {run.view_command}")

    def export_to(self, path: Path, recording: MonitorRecording) -> None:
        """Export a recording as CSV or Parquet in the background."""
        self._tasks.run(
            _EXPORTING, partial(export, recording, path), partial(self._on_exported, path), self._show_error
        )

    @Slot()
    def choose_report(self) -> None:
        """Ask for a file name, and write the report on the replayed recording to it."""
        recording = self._replayed_recording()
        if recording is None:
            return
        path = choose_report_file(self._tab, Path(recording.path.with_suffix(".html").name))
        if path is not None:
            write = partial(_write_report, path, recording, self.settings.usd_per_kwh)
            self._tasks.run(_REPORTING, write, self._on_report_written, self._show_error)

    def _on_report_written(self, path: Path) -> None:
        self._workspace.noticed.emit(f"Wrote the report to {path}.", "")

    @Slot()
    def show_summary(self) -> None:
        """Show the summary of the replayed recording: energy, cost, averages and peaks."""
        recording = self._replayed_recording()
        if recording is not None:
            self._summarize(partial(_with_summary, recording))

    def _replayed_recording(self) -> MonitorRecording | None:
        """Return the replayed recording; during live readings show a notice and return None."""
        if self._feed.replay is not None:
            return self._feed.replay.loaded.recording
        self._workspace.noticed.emit("Open a recording first.", "The tab shows this machine live.")
        return None

    @Slot(object)
    def _choose_export_file(self, recording: MonitorRecording) -> None:
        default_name = recording.path.with_suffix(".csv").name
        chosen, kind = QFileDialog.getSaveFileName(self._tab, "Export", default_name, _TABLES)
        if chosen:
            self.export_to(_with_table_suffix(Path(chosen), kind), recording)

    def _summarize(self, work: Callable[[], _RecordingWithSummary]) -> None:
        self._tasks.run(_SUMMING, work, self._show_summary, self._show_error)

    def _show_summary(self, result: _RecordingWithSummary) -> None:
        recording, summary = result
        dialog = SummaryDialog(recording, summary.at_price(self.settings.usd_per_kwh), self._theme, self._tab.window())
        dialog.tariff_chosen.connect(lambda usd: self.change_settings(usd_per_kwh=usd))
        dialog.replay_wanted.connect(lambda recording: self.open_recording_file(recording.path))
        dialog.export_wanted.connect(self._choose_export_file)
        self.open_dialog(dialog)

    def _on_exported(self, path: Path, rows: int) -> None:
        self._workspace.noticed.emit(f"Exported {rows} rows to {path}.", "")

    @Slot()
    def ask_mark(self) -> None:
        """Ask for the text of a mark, and add the mark at the displayed time."""
        if self._feed.now is not None:
            self.ask_mark_at(self._feed.now)

    @Slot(float)
    def ask_mark_at(self, at: float) -> None:
        """Ask for the text of a mark, and add the mark at time `at`."""
        dialog = QInputDialog(self._tab.window())
        dialog.setWindowTitle("Mark this moment")
        dialog.setLabelText("Note:")
        dialog.textValueSelected.connect(lambda text: self._feed.add_mark(at, text.strip() or "mark"))
        self.open_dialog(dialog)

    @Slot()
    def ask_speed(self) -> None:
        """Open the dialog for a measured speed, which replaces the plan's estimated speed."""
        self.open_dialog(SpeedDialog(self._workspace, self._theme, self._tab.window()))

    @Slot()
    def open_settings(self) -> None:
        """Open the dialog for alerts and settings of the Monitor tab."""
        dialog = SettingsDialog(self.settings, self._theme, self._tab.window())
        dialog.chosen.connect(self._store_settings)
        self.open_dialog(dialog)

    @Slot()
    def show_doctor(self) -> None:
        """Open the dialog that checks this machine; another one can only be checked there."""
        if self._feed.machine is not None:
            self._workspace.noticed.emit(
                f"{self._feed.machine.host} cannot be checked from here.", "Run there: gpu-planner monitor --doctor"
            )
            return
        self.open_dialog(DoctorDialog(self._feed.live_latest, self._theme, self._tasks, self._tab.window()))

    def cancel_tasks(self) -> None:
        """Cancel loading, exporting and summarizing."""
        self._tasks.cancel(_LOADING)
        self._tasks.cancel(_EXPORTING)
        self._tasks.cancel(_SUMMING)
        self._tasks.cancel(_REPORTING)

    def _load_and_play(self, loader: RecordingLoader) -> None:
        self._tasks.run(_LOADING, loader.load, self._play, self._show_error, loader.stop)

    def _play(self, loaded: LoadedRecording) -> None:
        self._feed.play(loaded)
        self._workspace.succeeded.emit()

    def _show_error(self, error: BaseException) -> None:
        planner_error = (
            error if isinstance(error, PlannerError) else PlannerError(f"The recording could not be read: {error}")
        )
        self._workspace.failed.emit(planner_error)

    def open_dialog(self, dialog: QDialog) -> None:
        """Open a dialog without blocking the window."""
        self.dialog = dialog
        dialog.finished.connect(self._on_finished)
        open_once(dialog)

    @Slot()
    def _on_finished(self) -> None:
        if self.sender() is self.dialog:
            self.dialog = None

    @Slot(object)
    def _store_settings(self, settings: MonitorSettings) -> None:
        self._workspace.settings.update(monitor=settings)
        self._feed.set_rules(settings.alerts)
        self.settings_changed.emit()


def _with_summary(recording: MonitorRecording) -> _RecordingWithSummary:
    """Return a recording and its summary, which requires reading the whole file."""
    return recording, summarize_recording(recording)


def _load_with_summary(path: Path) -> _RecordingWithSummary:
    return _with_summary(open_recording(path))


def _write_report(path: Path, recording: MonitorRecording, usd_per_kwh: float | None) -> Path:
    # Reports load what a start of the window does not need.
    from planner.present.report.recording_report import report_on_recording
    from planner.present.report.write import write_report

    write_report(report_on_recording(recording, datetime.now().astimezone().date(), usd_per_kwh), path)
    return path


def _with_table_suffix(path: Path, kind: str) -> Path:
    """Return `path`, with .csv or .parquet as chosen in the dialog (`kind`) unless `path` has one of these suffixes."""
    if path.suffix in _ENDINGS:
        return path
    return path.with_name(f"{path.name}{_ENDINGS[1] if 'Parquet' in kind else _ENDINGS[0]}")
