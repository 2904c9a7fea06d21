"""What can be done in the Monitor tab beside looking: recording, replaying, marking, settings, the check-up."""

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QInputDialog, QMenu, QWidget

from planner.errors import PlannerError
from planner.gui.monitor.doctor_dialog import DoctorDialog
from planner.gui.monitor.feed import Feed
from planner.gui.monitor.replay import Loader
from planner.gui.monitor.settings import MonitorSettings
from planner.gui.monitor.settings_dialog import SettingsDialog
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.record_export import to_tsv
from planner.gui.workspace import Workspace
from planner.monitor.recording.export import export
from planner.monitor.recording.recording import Recording
from planner.monitor.recording.summary import summary
from planner.paths import resources_dir
from planner.present.recording import SUMMARY_COLUMNS, recording_line, summary_line

DEMO: Final = resources_dir() / "demo" / "training.gpurec"

_LOADING: Final = "monitor recording"
_RECORDINGS: Final = "Recordings (*.gpurec)"
_OPENED: Final = "Recordings and logs (*.gpurec *.csv *.log *.txt *.json);;All files (*)"
_TABLES: Final = "Table (*.csv);;Parquet (*.parquet)"
_EXPORTING: Final = "monitor export"
_SUMMING: Final = "monitor summary"


class Desk(QObject):
    """Asks what has to be asked, and tells the feed; `settled` says that the settings are others."""

    settled = Signal()

    def __init__(self, feed: Feed, workspace: Workspace, theme: Theme, tasks: TaskRunner, tab: QWidget) -> None:
        super().__init__(tab)
        self._feed, self._workspace, self._theme, self._tasks, self._tab = feed, workspace, theme, tasks, tab
        self.dialog: QDialog | None = None

    @property
    def settings(self) -> MonitorSettings:
        """Return what is remembered."""
        return self._workspace.settings.current.monitor

    def change(self, **changes: object) -> None:
        """Remember other settings."""
        self._workspace.settings.update(monitor=self.settings.evolve(**changes))

    def menu(self) -> QMenu:
        """Return the menu of what is wanted more rarely; the release of the driver reads as what it would do."""
        menu = QMenu(self._tab)
        menu.addAction(self.tr("Show a &demo"), self.show_demo)
        menu.addAction(self.tr("&What works here…"), self.show_doctor)
        export = menu.addAction(self.tr("&Export the recording…"), self.choose_export)
        total = menu.addAction(self.tr("Copy what the recording &came to"), self.copy_summary)
        menu.addSeparator()
        menu.addAction(self.tr("&Alerts and settings…"), self.open_settings)
        release = menu.addAction("", self.toggle_release)
        menu.aboutToShow.connect(lambda: release.setText(self.release_words()))
        for action in (export, total):
            menu.aboutToShow.connect(lambda action=action: action.setEnabled(not self._feed.is_live))
        return menu

    def release_words(self) -> str:
        """Return what `toggle_release` would do."""
        return self.tr("&Take up the GPU again") if self._feed.is_released else self.tr("&Release the GPU")

    @Slot()
    def toggle_release(self) -> None:
        """Let the driver go, or take it up again."""
        if self._feed.is_released:
            self._feed.resume()
        else:
            self._feed.release()

    @Slot()
    def toggle_recording(self) -> None:
        """Ask for a file and record into it, or end what is recorded."""
        if self._feed.recorded_to is not None:
            self._feed.stop_recording()
            return
        name = f"gpu-{datetime.now().astimezone():%Y-%m-%d-%H%M}.gpurec"
        chosen, _ = QFileDialog.getSaveFileName(self._tab, self.tr("Record"), name, _RECORDINGS)
        if chosen:
            self.record_to(Path(chosen))

    def record_to(self, path: Path) -> None:
        """Record into `path`; a failure is shown across the window."""
        with self._workspace.reporting():
            self._feed.record_to(path)

    @Slot()
    def choose_recording(self) -> None:
        """Ask for a recording or a log, and play it."""
        chosen, _ = QFileDialog.getOpenFileName(self._tab, self.tr("Replay"), "", _OPENED)
        if chosen:
            self.open(Path(chosen))

    @Slot()
    def show_demo(self) -> None:
        """Play the demo that comes with the program."""
        self._load(Loader(DEMO, is_demo=True))

    def open(self, path: Path) -> None:
        """Play the recording or log at `path`; it is read in the background."""
        self._load(Loader(path))

    @Slot()
    def choose_export(self) -> None:
        """Ask for a file, and write the recording that is shown as a table."""
        chosen, _ = QFileDialog.getSaveFileName(self._tab, self.tr("Export"), "recording.csv", _TABLES)
        if chosen:
            self.export_to(Path(chosen))

    def export_to(self, path: Path) -> None:
        """Write the recording that is shown as CSV or Parquet, in the background."""
        replay = self._feed.replay
        if replay is not None:
            work = partial(export, replay.loaded.recording, path)
            self._tasks.run(_EXPORTING, work, partial(self._tell_exported, path), self._fail)

    @Slot()
    def copy_summary(self) -> None:
        """Put what the recording came to on the clipboard: energy, averages, peaks."""
        replay = self._feed.replay
        if replay is not None:
            self._tasks.run(_SUMMING, partial(_summed_up, replay.loaded.recording), _copy, self._fail)

    def _tell_exported(self, path: Path, rows: int) -> None:
        self._workspace.noticed.emit(self.tr("Exported {0} rows to {1}.").format(rows, path), "")

    @Slot()
    def ask_mark(self) -> None:
        """Ask for a note, and put it at the time that is shown now."""
        if self._feed.now is not None:
            self.ask_mark_at(self._feed.now)

    @Slot(float)
    def ask_mark_at(self, at: float) -> None:
        """Ask for a note, and put it at a time."""
        dialog = QInputDialog(self._tab.window())
        dialog.setWindowTitle(self.tr("Mark this moment"))
        dialog.setLabelText(self.tr("Note:"))
        dialog.textValueSelected.connect(lambda text: self._feed.add_mark(at, text.strip() or self.tr("mark")))
        self.show(dialog)

    @Slot()
    def open_settings(self) -> None:
        """Ask what to be told of."""
        dialog = SettingsDialog(self.settings, self._theme, self._tab.window())
        dialog.chosen.connect(self._settle)
        self.show(dialog)

    @Slot()
    def show_doctor(self) -> None:
        """Say what works on this machine."""
        self.show(DoctorDialog(self._feed.live_latest, self._theme, self._tasks, self._tab.window()))

    def cancel(self) -> None:
        """Wait for no recording any more."""
        self._tasks.cancel(_LOADING)
        self._tasks.cancel(_EXPORTING)
        self._tasks.cancel(_SUMMING)

    def _load(self, loader: Loader) -> None:
        self._tasks.run(_LOADING, loader.load, self._feed.play, self._fail, loader.stop)

    def _fail(self, error: BaseException) -> None:
        known = error if isinstance(error, PlannerError) else PlannerError(f"The recording could not be read: {error}")
        self._workspace.failed.emit(known)

    def show(self, dialog: QDialog) -> None:
        """Open a dialog that does not hold up the window."""
        self.dialog = dialog
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    @Slot(object)
    def _settle(self, settings: MonitorSettings) -> None:
        self._workspace.settings.update(monitor=settings)
        self._feed.set_rules(settings.alerts)
        self.settled.emit()


def _summed_up(recording: Recording) -> str:
    """Return what a recording is and came to, card by card; it is read through once."""
    found = summary(recording)
    return f"{recording_line(recording)}\n{summary_line(found)}\n{to_tsv(SUMMARY_COLUMNS, found.cards)}"


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
