"""A verdict as mark, word and colour: never the colour alone."""

from typing import Final

from PySide6.QtCore import QSize, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.memory.result import Verdict
from planner.present.memory.verdict import VERDICT_WORDS

_ROLES: Final[dict[Verdict, str]] = {"fits": "ok", "tight": "warn", "does-not-fit": "bad"}


def verdict_mark(verdict: Verdict | None) -> tuple[str, str]:
    """Return the icon and the colour role of a verdict."""
    return ("unknown", "muted") if verdict is None else (verdict, _ROLES[verdict])


class VerdictBadge(QWidget):
    """The mark and the words side by side."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._verdict: Verdict | None = None
        self._mark = QLabel()
        self._words = make_label(font=theme.font(bold=True))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addWidget(self._mark)
        layout.addWidget(self._words, 1)
        theme.changed.connect(self._dress)

    def set_verdict(self, verdict: Verdict | None, words: str = "") -> None:
        """Show a verdict; without `words` it says what the verdict is called."""
        self._verdict = verdict
        self._words.setText(words or ("Unknown" if verdict is None else VERDICT_WORDS[verdict]))
        self.setAccessibleName(self._words.text())
        self._dress()

    @Slot()
    def _dress(self) -> None:
        icon, role = verdict_mark(self._verdict)
        side = self._theme.icon_side
        self._mark.setPixmap(self._theme.icon(icon, role).pixmap(QSize(side, side), self.devicePixelRatio()))
        mark(self._words, role)
