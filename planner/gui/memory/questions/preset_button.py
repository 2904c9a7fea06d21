"""Button that starts a plan from a published recipe."""

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QPushButton

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.popover import SearchPopover
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace

if TYPE_CHECKING:
    from planner.plan.recipes.preset import Preset

_LIST_WIDTH = 620


class PresetButton(QPushButton):
    """Button that opens the list of recipes; the chosen recipe becomes the plan as one undo step."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Start from a recipe…")
        self.setToolTip("Published training and inference setups, with their sources.")
        set_style_role(self, "link")
        self._workspace, self._theme = workspace, theme
        self.clicked.connect(self.open)
        workspace.navigator.preset_requested.connect(self.open)

    @cached_property
    def popover(self) -> SearchPopover:
        """Return the list of recipes, built on first use."""
        popover = SearchPopover(self, self._theme, "Search recipes")
        popover.chosen.connect(self._apply_preset)
        return popover

    @Slot()
    def open(self) -> None:
        """Open the list of recipes below the button."""
        # Imported here and below, on first use, to keep the start of the window fast.
        from planner.plan.recipes.preset import load_presets
        from planner.present.plan.starting_points import preset_detail

        hardware = self._workspace.catalog.hardware
        choices = [
            Choice(preset, preset.title, preset_detail(preset, hardware), words=f"{preset.id} {preset.summary}")
            for preset in load_presets()
        ]
        self.popover.offer(self, choices, width=_LIST_WIDTH)

    @Slot(object)
    def _apply_preset(self, preset: "Preset") -> None:
        from planner.plan.recipes.preset import with_preset
        from planner.present.plan.starting_points import preset_notes

        workspace = self._workspace
        with workspace.reporting():
            model = preset.own_model
            plan = with_preset(workspace.plan if model is None else workspace.plan.evolve(model=model), preset)
            workspace.end_gesture()
            workspace.apply(preset.title, model=plan.model, workload=plan.workload, gpu=plan.gpu, count=plan.count)
            workspace.end_gesture()
            first, *others = preset_notes(preset)
            workspace.noticed.emit(first, " ".join((*others, ", ".join(preset.sources))))
