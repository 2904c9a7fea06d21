"""Which model, and what is to be done with it."""

from functools import partial

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from planner.gui.choices import choose_model, hub_choice, model_choices, model_detail
from planner.gui.memory.picker_field import PickerField
from planner.gui.memory.questions import bind, new_form
from planner.gui.memory.radio_field import RadioField
from planner.gui.memory.words import TASKS
from planner.gui.theme import Theme, mark
from planner.gui.widgets.flow_layout import FlowLayout
from planner.gui.widgets.label import make_label
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation


class Subject(QWidget):
    """The model with its size, a way to open one's own, and the task."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.model = PickerField(
            theme,
            lambda: model_choices(workspace),
            lambda value: str(value).rpartition("/")[2],
            self.tr("Search models, or hf:owner/name"),
            hub_choice,
        )
        self.task = RadioField(theme, TASKS)
        self._detail = make_label(role="muted", font=theme.font("small"), wrap=True)
        self._open = QPushButton(self.tr("Open &file…"))
        mark(self._open, "link")
        self._open.setToolTip(self.tr("Plan for a model of your own. A file can be dropped into the window as well."))
        self._trace = QPushButton(self.tr("Trace a mo&dule…"))
        mark(self._trace, "link")
        self._trace.setToolTip(self.tr("Measure any PyTorch module of your own. A .py file can be dropped as well."))
        self._form = form = new_form(theme)
        form.add("&Model", self.model, hint="The network to plan for.")
        form.add_below(self._detail)
        form.add_below(_at_the_left(self._open, self._trace))
        form.add("I want &to", self.task, hint="Train the model, or run it.")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(form)
        bind(workspace, self.model, partial(self._choose, workspace))
        bind(workspace, self.task, lambda value: workspace.apply_workload("task", task=value))
        self._open.clicked.connect(workspace.model_file_requested)
        self._trace.clicked.connect(partial(workspace.trace_requested.emit, None))

    def _choose(self, workspace: Workspace, key: object) -> None:
        choose_model(workspace, key)
        # A model of the Hub is the plan's only once it was read.
        self.model.set_value(workspace.plan.model.id)

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the model and the task of the plan."""
        choice = evaluation.plan.model
        self.model.set_value(choice.id)
        self._detail.setText(model_detail(evaluation.parameters, evaluation.max_context))
        self._detail.setToolTip(choice.path or choice.id)
        self.task.set_value(evaluation.plan.workload.task)
        self._form.set_row_visible(self.task, evaluation.traced is None)


def _at_the_left(*buttons: QPushButton) -> QWidget:
    line = QWidget()
    layout = FlowLayout(0)
    line.setLayout(layout)
    for button in buttons:
        layout.addWidget(button)
    return line
