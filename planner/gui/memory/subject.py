"""Form for the model and the task: fine-tune, train or run."""

from functools import partial
from typing import Final, cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from planner.gui.choices import SEARCH_MODELS, choose_model, hub_choice, model_choices, model_detail
from planner.gui.memory.questions.preset_button import PresetButton
from planner.gui.memory.questions.questions import bind, button_row, new_form
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.inputs.choice_field import PickerField, RadioField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.workload.choices import Goal
from planner.workload.workload import Training, Workload

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
        workspace.pursue(self.goal)
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
