"""Tells alerts on the desktop where it has a place for that, and across the window in any case."""

from functools import cached_property

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QSystemTrayIcon, QWidget

from planner.gui.monitor.feed import Feed
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.monitor.alerts import Alert
from planner.present.monitor.events import alert_sentence


class Notifier(QObject):
    """Puts each alert of a feed on the time line, and tells it."""

    def __init__(self, feed: Feed, workspace: Workspace, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._feed, self._workspace, self._theme = feed, workspace, theme
        feed.alerted.connect(self._tell)

    def close(self) -> None:
        """Take the icon off the desktop."""
        if "_tray" in self.__dict__ and self._tray is not None:
            self._tray.hide()

    @cached_property
    def _tray(self) -> QSystemTrayIcon | None:
        if not QSystemTrayIcon.isSystemTrayAvailable():
            return None
        tray = QSystemTrayIcon(self._theme.icon("monitor"), self)
        tray.setToolTip("GPU Planner: alerts of the cards")
        tray.show()
        return tray

    @Slot(object)
    def _tell(self, alert: Alert) -> None:
        sentence = alert_sentence(alert)
        self._feed.mark_live(alert.at_seconds, sentence)
        self._workspace.noticed.emit(sentence, "An alert of the monitor; its settings are in the Monitor tab.")
        if self._tray is not None and QSystemTrayIcon.supportsMessages():
            self._tray.showMessage("GPU Planner", sentence, self._theme.icon("monitor"))
