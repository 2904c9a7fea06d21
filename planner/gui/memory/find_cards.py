"""The button that lists the cards that the plan fits on."""

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QPushButton

from planner.gui.theme import Theme
from planner.gui.widgets.popover import Popover
from planner.gui.workspace import Workspace

if TYPE_CHECKING:
    from planner.gui.memory.fitting_cards import FittingCards

_WIDTH, _HEIGHT = 680, 460


class FindCardsButton(QPushButton):
    """Opens the list, which is made when it is first opened: the start of the window does not wait for it."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Find &cards that fit…")
        self._workspace, self._theme = workspace, theme
        self.clicked.connect(self.open)

    @cached_property
    def cards(self) -> "FittingCards":
        """Return the list."""
        from planner.gui.memory.fitting_cards import FittingCards

        return FittingCards(self._workspace, self._theme)

    @cached_property
    def popover(self) -> Popover:
        """Return what holds the list."""
        made = Popover(self, self._theme, self.cards)
        self.cards.done.connect(made.close)
        return made

    @Slot()
    def open(self) -> None:
        """Find the cards and show them."""
        self.cards.refresh()
        self.popover.open_below(self, _WIDTH, _HEIGHT)
