"""Buttons of the left column: find the cards that fit, and compare the plan with something else."""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFileDialog, QMenu, QPushButton

from planner.gui.choices import card_choices, model_choices
from planner.gui.theme import Theme
from planner.gui.widgets.popover import Popover, SearchPopover
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace
from planner.plan.files import load_plan
from planner.plan.plan import ModelChoice, Plan

if TYPE_CHECKING:
    from planner.gui.memory.fitting_cards import FittingCards

_LIST_WIDTH, _LIST_HEIGHT = 800, 460
_PLAN_FILES: Final = "Plans (*.json);;All files (*)"


class FindCardsButton(QPushButton):
    """Button that opens the list of fitting cards; the list is built on first use to keep the start fast.

    `advice_requested` is emitted when no card fits and the user asks what would help.
    """

    advice_requested = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Find cards that fit…")
        self.setToolTip("List the cards that this plan fits on")
        self._workspace, self._theme = workspace, theme
        self.clicked.connect(self.open)

    @cached_property
    def cards(self) -> "FittingCards":
        """Return the list of fitting cards."""
        from planner.gui.memory.fitting_cards import FittingCards

        cards = FittingCards(self._workspace, self._theme)
        cards.advice_requested.connect(self.advice_requested)
        return cards

    @cached_property
    def popover(self) -> Popover:
        """Return the popover with the list of fitting cards."""
        new_popover = Popover(self, self._theme, self.cards)
        self.cards.done.connect(new_popover.close)
        return new_popover

    @Slot()
    def open(self) -> None:
        """Find the cards on which the plan fits, and show the list."""
        self.cards.refresh()
        height = _LIST_HEIGHT if self.cards.model.records else self.popover.height_for(_LIST_WIDTH)
        self.popover.open_below(self, _LIST_WIDTH, height)


class CompareButton(QPushButton):
    """Menu button that pins a card, a model, a recipe, a saved plan or this plan for comparison."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Compare &with…")
        self.setToolTip("Pin a plan, and show it beside this one as you change settings")
        self._workspace, self._theme = workspace, theme
        menu = QMenu(self)
        menu.addAction("This plan as it is &now", lambda: self.pin(workspace.plan))
        menu.addAction("Another &card…", self._open_card_list)
        menu.addAction("Another &model…", self._open_model_list)
        menu.addAction("A &recipe…", self._open_recipe_list)
        menu.addAction("A saved p&lan…", self.choose_file)
        menu.addSeparator()
        menu.addAction("Lo&g of a run…", partial(workspace.navigator.log_requested.emit, None))
        self.setMenu(menu)

    # Built on first use, to keep the start of the window fast.

    @cached_property
    def cards(self) -> SearchPopover:
        """Return the searchable list of cards."""
        return self._make_popover("Search cards", self._pin_card)

    @cached_property
    def models(self) -> SearchPopover:
        """Return the searchable list of models."""
        return self._make_popover("Search models", self._pin_model)

    @cached_property
    def recipes(self) -> SearchPopover:
        """Return the searchable list of recipes."""
        return self._make_popover("Search recipes", self._pin_recipe)

    def pin(self, plan: Plan) -> None:
        """Pin `plan` for comparison."""
        with self._workspace.reporting():
            self._workspace.pin.put(plan)

    @Slot()
    def choose_file(self) -> None:
        """Ask for a plan file and pin its plan."""
        name, _ = QFileDialog.getOpenFileName(self, "Compare with a plan", "", _PLAN_FILES)
        if name:
            with self._workspace.reporting():
                self._workspace.pin.put(load_plan(Path(name)))

    def _make_popover(self, placeholder: str, on_chosen: Callable[[object], None]) -> SearchPopover:
        popover = SearchPopover(self, self._theme, placeholder)
        popover.chosen.connect(on_chosen)
        return popover

    @Slot()
    def _open_card_list(self) -> None:
        self.cards.offer(self, card_choices(self._workspace), self._workspace.plan.gpu)

    @Slot()
    def _open_model_list(self) -> None:
        self.models.offer(self, model_choices(self._workspace), self._workspace.plan.model.id)

    @Slot()
    def _open_recipe_list(self) -> None:
        from planner.plan.recipes.preset import load_presets
        from planner.present.plan.starting_points import preset_detail

        hardware = self._workspace.catalog.hardware
        choices = [Choice(preset.id, preset.title, preset_detail(preset, hardware)) for preset in load_presets()]
        self.recipes.offer(self, choices)

    @Slot(object)
    def _pin_card(self, key: object) -> None:
        plan = self._workspace.plan
        self.pin(plan.evolve(gpu=str(key), workload=plan.workload.evolve(gpus=())))

    @Slot(object)
    def _pin_model(self, key: object) -> None:
        self.pin(self._workspace.plan.evolve(model=ModelChoice(id=str(key))))

    @Slot(object)
    def _pin_recipe(self, key: object) -> None:
        from planner.plan.recipes.preset import find_preset, load_presets, with_preset

        with self._workspace.reporting():
            self._workspace.pin.put(with_preset(self._workspace.plan, find_preset(load_presets(), str(key))))
