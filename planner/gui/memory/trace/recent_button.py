"""Button with a menu of what was traced recently."""

from collections.abc import Callable, Iterable
from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QMenu

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton

_MOST_CHARACTERS: Final = 100


class RecentButton(IconButton):
    """Button whose menu lists `entries()`, each a text and what it does."""

    def __init__(
        self, theme: Theme, title: str, entries: Callable[[], Iterable[tuple[str, Callable[[], object]]]]
    ) -> None:
        super().__init__(theme, "chevron-down", title)
        self._entries = entries
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self._fill)
        self.clicked.connect(lambda: self._menu.popup(self.mapToGlobal(self.rect().bottomLeft())))

    @Slot()
    def _fill(self) -> None:
        self._menu.clear()
        for text, choose in self._entries():
            self._menu.addAction(_shortened(text).replace("&", "&&"), choose)
        if self._menu.isEmpty():
            self._menu.addAction("None yet").setEnabled(False)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
