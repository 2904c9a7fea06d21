"""Buttons of the left column: find the cards that fit, and compare the plan with something else."""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
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

_WIDTH, _HEIGHT = 680, 460
_PLANS: Final = "Plans (*.json);;All files (*)"


class FindCardsButton(QPushButton):
    """Button that opens the list of fitting cards, which is built on first use to keep the start fast."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Find &cards that fit…")
        self._workspace, self._theme = workspace, theme
        self.clicked.connect(self.open)

    @cached_property
    def cards(self) -> "FittingCards":
        """Return the list of fitting cards."""
        from planner.gui.memory.fitting_cards import FittingCards

        return FittingCards(self._workspace, self._theme)

    @cached_property
    def popover(self) -> Popover:
        """Return the popover with the list."""
        made = Popover(self, self._theme, self.cards)
        self.cards.done.connect(made.close)
        return made

    @Slot()
    def open(self) -> None:
        """Find the cards and show them."""
        self.cards.refresh()
        self.popover.open_below(self, _WIDTH, _HEIGHT)


class CompareButton(QPushButton):
    """Menu button that pins a plan to compare the current plan with."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Compare &with…")
        self._workspace, self._theme = workspace, theme
        menu = QMenu(self)
        menu.addAction("This plan as it is &now", lambda: self.pin(workspace.plan))
        menu.addAction("Another &card…", self._offer_cards)
        menu.addAction("Another &model…", self._offer_models)
        menu.addAction("A &recipe…", self._offer_recipes)
        menu.addAction("A saved p&lan…", self.choose_file)
        menu.addSeparator()
        menu.addAction("Lo&g of a run…", partial(workspace.navigator.log_requested.emit, None))
        self.setMenu(menu)

    # Built on first use, to keep the start of the window fast.

    @cached_property
    def cards(self) -> SearchPopover:
        """Return the list of cards."""
        return self._made("Search cards", self._pin_card)

    @cached_property
    def models(self) -> SearchPopover:
        """Return the list of models."""
        return self._made("Search models", self._pin_model)

    @cached_property
    def recipes(self) -> SearchPopover:
        """Return the list of recipes."""
        return self._made("Search recipes", self._pin_recipe)

    def pin(self, plan: Plan) -> None:
        """Pin `plan` for comparison."""
        with self._workspace.reporting():
            self._workspace.pin.put(plan)

    @Slot()
    def choose_file(self) -> None:
        """Ask for a plan file and pin it."""
        name, _ = QFileDialog.getOpenFileName(self, "Compare with a plan", "", _PLANS)
        if name:
            with self._workspace.reporting():
                self._workspace.pin.put(load_plan(Path(name)))

    def _made(self, placeholder: str, take: Callable[[object], None]) -> SearchPopover:
        popover = SearchPopover(self, self._theme, placeholder)
        popover.chosen.connect(take)
        return popover

    @Slot()
    def _offer_cards(self) -> None:
        self.cards.offer(self, card_choices(self._workspace), self._workspace.plan.gpu)

    @Slot()
    def _offer_models(self) -> None:
        self.models.offer(self, model_choices(self._workspace), self._workspace.plan.model.id)

    @Slot()
    def _offer_recipes(self) -> None:
        from planner.plan.recipes.preset import load_presets
        from planner.present.plan.starting_points import preset_detail

        hardware = self._workspace.catalog.hardware
        choices = [Choice(one.id, one.title, preset_detail(one, hardware)) for one in load_presets()]
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
