"""Which model, and what is to be done with it."""

from functools import partial
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from planner.gui.choices import choose_model, hub_choice, model_choices, model_detail
from planner.gui.memory.questions.preset_button import PresetButton
from planner.gui.memory.questions.questions import at_the_left, bind, new_form
from planner.gui.memory.words import Options
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.inputs.choice_field import PickerField, RadioField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.workload.workload import Training, Workload

GOALS: Final[Options] = (("fine-tune", "Fine-tune"), ("train", "Train"), ("run", "Run"))


class Subject(QWidget):
    """The model with its size, ways to start from something else, and what is wanted.

    Fine-tuning all of a network and training it take the same memory, so the plan does not know them apart: `goal` is
    what the person said last where both are meant. `goal_chosen` follows when only that changed.
    """

    goal_chosen = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.model = PickerField(
            theme,
            lambda: model_choices(workspace),
            lambda value: str(value).rpartition("/")[2],
            "Search models, or hf:owner/name",
            hub_choice,
        )
        self.goal = "fine-tune"
        self.task = RadioField(theme, GOALS)
        self._detail = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.presets = PresetButton(workspace, theme)
        self._open = link_button(
            "&Open file…",
            "Plan for a model of your own. A file can be dropped into the window as well.",
        )
        self._trace = link_button(
            "Trace a mod&ule…",
            "Measure any PyTorch module of your own. A .py file can be dropped as well.",
        )
        self._form = form = new_form(theme)
        form.add("&Model", self.model, hint="The network to plan for.")
        form.add_below(self._detail)
        form.add_across(at_the_left(self.presets, self._open, self._trace))
        form.add("I want &to", self.task, hint="Teach the model something, make it from scratch, or use it.", wide=True)
        in_column(form, owner=self)
        bind(workspace, self.model, partial(self._choose, workspace))
        bind(workspace, self.task, partial(self._want, workspace))
        self._open.clicked.connect(workspace.navigator.model_file_requested)
        self._trace.clicked.connect(partial(workspace.navigator.trace_requested.emit, None))

    def _choose(self, workspace: Workspace, key: object) -> None:
        choose_model(workspace, key)
        # A model of the Hub is the plan's only once it was read.
        self.model.set_value(workspace.plan.model.id)

    def _want(self, workspace: Workspace, goal: object) -> None:
        before, self.goal = self.goal, str(goal)
        answer: dict[str, object] = {"workload.task": "inference" if goal == "run" else "training"}
        held = workspace.workload_of("training")
        if goal == "train":
            answer |= {"workload.method": "full", "workload.trainable": ()}
        elif goal == "fine-tune" and before == "train" and isinstance(held, Training) and not _tunes(held):
            answer["workload.method"] = "lora"
        workspace.answer("task", answer)
        self.goal_chosen.emit()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the model and the task of the plan."""
        choice = evaluation.plan.model
        self.model.set_value(choice.id)
        self._detail.setText(model_detail(evaluation.parameters, evaluation.max_context))
        self._detail.setToolTip(choice.path or choice.id)
        self.goal = _goal_of(evaluation.plan.workload, self.goal)
        self.task.set_value(self.goal)
        self._form.set_row_visible(self.task, evaluation.traced is None)


def _goal_of(workload: Workload, said: str) -> str:
    if not isinstance(workload, Training):
        return "run"
    return said if said == "train" and not _tunes(workload) else "fine-tune"


def _tunes(workload: Training) -> bool:
    return workload.adapts or bool(workload.trainable)
