"""The few questions about the workload that decide most, for the plan bar's popover."""

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from planner.errors import SpecError
from planner.gui.theme import Theme, mark
from planner.gui.widgets.choice_field import ChoiceField
from planner.gui.widgets.field import Field
from planner.gui.widgets.labelled_form import LabelledForm
from planner.gui.widgets.number_field import NumberField
from planner.gui.workspace import Workspace
from planner.present.format import integer
from planner.present.plan.settings import in_sentence, setting_title
from planner.workload.workload import Training

_TASKS = (("inference", "Run"), ("training", "Train"))


class WorkloadSummary(QWidget):
    """Task, sequences and their length; `more_wanted` asks for the tab with all the rest."""

    more_wanted = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self._task = ChoiceField(theme, _TASKS)
        self._sequences = NumberField(1, 1_000_000)
        self._length = NumberField(1, 100_000_000, placeholder="as the model allows")
        form = LabelledForm(theme)
        form.add("I want &to", self._task, lambda: "inference")
        form.add("&Sequences", self._sequences, lambda: 1, hint="At once on each card")
        form.add("Tokens &each", self._length, lambda: None, hint="Prompt and answer, or one training sequence")
        more = QPushButton("All settings…")
        mark(more, "link")
        more.clicked.connect(self.more_wanted)
        layout = QVBoxLayout(self)
        layout.addWidget(form)
        layout.addWidget(more)
        self.setFocusProxy(self._task)
        self._task.edited.connect(lambda task: self._apply(self._task, "task", {"workload.task": task}))
        self._sequences.edited.connect(partial(self._apply_number, self._sequences))
        self._length.edited.connect(partial(self._apply_number, self._length))
        for field in (self._task, self._sequences, self._length):
            field.finished.connect(workspace.end_gesture)
        workspace.changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the plan's workload."""
        workload, full = self._workspace.plan.workload, self._workspace.evaluation.workload
        training = isinstance(workload, Training)
        with QSignalBlocker(self):
            self._task.set_value(workload.task)
            self._sequences.set_value(workload.micro_batch if isinstance(workload, Training) else workload.batch)
            own = workload.sequence_length if isinstance(workload, Training) else workload.context_length
            self._length.set_value(own)
            used = full.sequence_length if isinstance(full, Training) else full.context_length
            self._length.set_placeholder(f"{integer(used)} by default" if used else "as the model allows")
        self._sequences.set_name(setting_title("micro_batch" if training else "batch"))

    def _apply_number(self, field: NumberField, value: object) -> None:
        training = isinstance(self._workspace.plan.workload, Training)
        if field is self._sequences:
            name = "micro_batch" if training else "batch"
        else:
            name = "sequence_length" if training else "context_length"
        self._apply(field, in_sentence(setting_title(name)), {f"workload.{name}": value})

    def _apply(self, field: Field, label: str, answer: Mapping[str, object]) -> None:
        try:
            self._workspace.answer(label, answer)
        except SpecError as error:
            field.show_problem(error.reason)
