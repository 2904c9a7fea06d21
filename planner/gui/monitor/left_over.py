"""A strip that offers the recording that was cut off when the program ended."""

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from planner.gui.monitor.unfinished import unfinished_words
from planner.gui.theme import Theme, mark
from planner.gui.widgets.elided_label import ElidedLabel
from planner.gui.widgets.icon_button import IconButton


class LeftOver(QFrame):
    """Hidden while there is none; `opened` carries the file, `settled` says that it was opened or is not wanted."""

    opened = Signal(object)
    settled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        mark(self, "banner")
        mark(self, "notice", "tone")
        self._path: Path | None = None
        self._words = ElidedLabel()
        self.open = QPushButton("Open &it")
        self.dismiss = IconButton(theme, "close", "Dismiss this message; the file stays")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(*(theme.spacing.medium, theme.spacing.tiny) * 2)
        layout.addWidget(self._words, 1)
        layout.addWidget(self.open)
        layout.addWidget(self.dismiss)
        self.open.clicked.connect(self._on_opened)
        self.dismiss.clicked.connect(self._settle)
        self.hide()

    def offer(self, path: Path | None) -> None:
        """Offer this file; none takes the strip away."""
        self._path = path
        self.setVisible(path is not None)
        if path is not None:
            self._words.setText(" ".join(unfinished_words(path)))

    def _on_opened(self) -> None:
        if self._path is not None:
            self.opened.emit(self._path)
        self._settle()

    def _settle(self) -> None:
        self.offer(None)
        self.settled.emit()
