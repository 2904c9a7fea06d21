"""Verdicts and ages of prices as mark, word and colour: never the colour alone."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.labels import IconLabel, make_label
from planner.gui.widgets.layout import in_row
from planner.memory.result import Verdict
from planner.present.cost.prices import Age, age_of
from planner.present.memory.verdict import VERDICT_WORDS


class Mark(NamedTuple):
    """How something is set off: an icon before its text, and the role of its colour."""

    icon: str
    role: str


_ROLES: Final[dict[Verdict, str]] = {"fits": "ok", "tight": "warn", "does-not-fit": "bad"}
AGE_ROLES: Final[Mapping[Age, str]] = {
    "fresh": "ok",
    "recent": "ok",
    "ageing": "warn",
    "old": "bad",
    "history": "bad",
    "undated": "muted",
}


def verdict_mark(verdict: Verdict | None) -> Mark:
    """Return how a verdict is set off."""
    return Mark("unknown", "muted") if verdict is None else Mark(verdict, _ROLES[verdict])


class VerdictBadge(QWidget):
    """The mark and the words side by side."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._mark = IconLabel(theme)
        self._words = make_label(font=theme.font(bold=True))
        in_row(self._mark, (self._words, 1), owner=self, spacing=theme.spacing.tiny)

    def set_verdict(self, verdict: Verdict | None, words: str = "") -> None:
        """Show a verdict; without `words` it says what the verdict is called."""
        self._words.setText(words or ("Unknown" if verdict is None else VERDICT_WORDS[verdict]))
        self.setAccessibleName(self._words.text())
        found = verdict_mark(verdict)
        self._mark.show_icon(found)
        mark(self._words, found.role)


class _Aged(Protocol):
    @property
    def age_days(self) -> int | None: ...


def age_mark(row: _Aged) -> Mark:
    """Return how the age of a row is set off."""
    return Mark("time", AGE_ROLES[age_of(row.age_days)])
