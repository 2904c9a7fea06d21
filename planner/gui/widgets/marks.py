"""Verdicts and ages of prices as mark, word and colour: never the colour alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from PySide6.QtCore import QSize, Slot
from PySide6.QtWidgets import QLabel, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_row
from planner.memory.result import Verdict
from planner.present.names import VERDICT_WORDS
from planner.present.prices import Age, age_of

if TYPE_CHECKING:
    from planner.gui.widgets.tables.cells import Mark

_ROLES: Final[dict[Verdict, str]] = {"fits": "ok", "tight": "warn", "does-not-fit": "bad"}
AGE_ROLES: Final[Mapping[Age, str]] = {
    "fresh": "ok",
    "recent": "ok",
    "ageing": "warn",
    "old": "bad",
    "history": "bad",
    "undated": "muted",
}


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
        in_row(self._mark, (self._words, 1), owner=self, spacing=theme.spacing.tiny)
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


class _Aged(Protocol):
    @property
    def age_days(self) -> int | None: ...


def age_mark(row: _Aged) -> "Mark":
    """Return how the age of a row is set off."""
    from planner.gui.widgets.tables.cells import Mark  # the colours alone are needed from the start on

    return Mark("time", AGE_ROLES[age_of(row.age_days)])
