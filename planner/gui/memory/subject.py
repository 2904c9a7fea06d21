"""Form for the model and the task: fine-tune, train or run, or a published recipe."""

from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from planner.gui.choices import SEARCH_MODELS, choose_model, hub_choice, model_choices, model_detail
from planner.gui.memory.questions import bind, button_row, new_form
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.inputs.choice_field import PickerField, RadioField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.popover import Choice, SearchPopover
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.workload.choices import Goal
from planner.workload.workload import Training, Workload

if TYPE_CHECKING:
    from planner.plan.recipes import Preset

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
        from planner.plan.recipes import load_presets
        from planner.present.plan.starting_points import preset_detail

        hardware = self._workspace.catalog.hardware
        choices = [
            Choice(preset, preset.title, preset_detail(preset, hardware), words=f"{preset.id} {preset.summary}")
            for preset in load_presets()
        ]
        self.popover.offer(self, choices, width=_LIST_WIDTH)

    @Slot(object)
    def _apply_preset(self, preset: "Preset") -> None:
        from planner.plan.recipes import with_preset
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


GOALS: Final[tuple[tuple[Goal, str], ...]] = (("fine-tune", "Fine-tune"), ("train", "Train"), ("run", "Run"))


class SubjectForm(QWidget):
    """Form for the model with its size, buttons for other starting points, and the task.

    Full fine-tuning and training from scratch take the same memory and are the same plan; `goal` remembers which of
    the two the user chose last. `goal_chosen` is emitted when only the goal changed.
    """

    goal_chosen = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.model = PickerField(
            theme,
            lambda: model_choices(workspace),
            lambda value: str(value).rpartition("/")[2],
            SEARCH_MODELS,
            partial(hub_choice, workspace),
        )
        self.goal: Goal = "fine-tune"
        self.task = RadioField(theme, GOALS)
        self._detail = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.presets = PresetButton(workspace, theme)
        self._open = link_button(
            "&Open file…",
            "Plan for your own model: its configuration, its weights, or a network in a .py file, which is traced. You "
            "can also drop the file or the model's folder into the window; File › Open model's folder… asks for one.",
        )
        self._trace = link_button(
            "Trace yo&ur code…",
            "Trace the memory of any PyTorch module or script. You can also drop a .py file into the window.",
        )
        self._form = form = new_form(theme)
        form.add("&Model", self.model, hint="The model to plan for.")
        form.add_below(self._detail)
        form.add_across(button_row(self.presets, self._open, self._trace))
        form.add(
            "I want &to", self.task, hint="Fine-tune the model, train it from scratch, or run inference.", wide=True
        )
        in_column(form, owner=self)
        bind(workspace, self.model, partial(self._choose_model, workspace))
        bind(workspace, self.task, partial(self._set_goal, workspace))
        self._open.clicked.connect(workspace.navigator.model_file_requested)
        self._trace.clicked.connect(partial(workspace.navigator.trace_requested.emit, None))

    def _choose_model(self, workspace: Workspace, key: object) -> None:
        choose_model(workspace, key)
        # A model from the Hub enters the plan only after its files were read.
        self.model.set_value(workspace.plan.model.id)

    def _set_goal(self, workspace: Workspace, goal: object) -> None:
        self.goal = cast("Goal", goal)
        workspace.set_goal(self.goal)
        self.goal_chosen.emit()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the model and the task of the plan."""
        choice = evaluation.plan.model
        self.model.set_value(choice.id)
        self._detail.setText(model_detail(evaluation.parameters, evaluation.max_context))
        self._detail.setToolTip(choice.path or choice.id)
        self.goal = _goal_of_workload(evaluation.plan.workload, self.goal)
        self.task.set_value(self.goal)
        self._form.set_row_visible(self.task, evaluation.traced is None)


def _goal_of_workload(workload: Workload, chosen: Goal) -> Goal:
    if not isinstance(workload, Training):
        return "run"
    return chosen if chosen == "train" and not workload.trains_part else "fine-tune"
