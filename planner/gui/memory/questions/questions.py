"""The questions about the workload, made from the declarations of its fields: a column of forms under headings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.memory.questions.inputs import label_of, make_input, situation_of, tooltip_of
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.layout import FlowLayout
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.memory.software import serving_memory
from planner.plan.answers.draft import WORKLOAD
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.plan.parallel import sharing_summary
from planner.present.plan.settings import choices_in, in_sentence, summary
from planner.workload.choices import Task
from planner.workload.fields import TASKS, WorkloadField, fields_of
from planner.workload.option import GROUPS, Group, Situation
from planner.workload.rules import reader
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training, Workload

_WIDEST_LABEL = "Compute precision"
_DEGREES = ("tensor", "pipeline", "context", "expert", "data")


@dataclass
class _Part:
    """A section of the form: its fields, and the inputs of those that had a meaning so far."""

    group: Group
    form: LabelledForm
    fields: Sequence[WorkloadField]
    lines: Mapping[str, int]
    section: Section | None


class Questions(QWidget):
    """A column of questions about the fields of `task` in `groups`. `grown` says that questions were added."""

    grown = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, task: Task, groups: Sequence[Group]) -> None:
        super().__init__()
        self.workspace, self.theme = workspace, theme
        self._defaults: Workload = TASKS[task]()
        self._inputs: dict[str, Field] = {}
        self._offered: dict[str, Sequence[tuple[object, str]]] = {}
        self._from_scratch = False
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.spacing.small)
        declared = sorted(fields_of(task).values(), key=lambda one: not one.option.leads)
        self._parts = [self._part(group, [one for one in declared if one.group == group]) for group in groups]

    def field(self, name: str) -> Field:
        """Return the input for the workload's field `name`.

        Raises:
            KeyError: If there is no such question, or it had no meaning so far.
        """
        return self._inputs[name]

    def asked(self, name: str) -> Field | None:
        """Return the input for `name` if there is such a question, and it had a meaning so far."""
        return self._inputs.get(name)

    def set_goal(self, goal: str) -> None:
        """Take over what the person wants of the model: where it is made from scratch, all of it is trained."""
        self._from_scratch = goal == "train"

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the workload of the plan; fields that may stay open say what applies instead.

        There are no questions about a traced module: nothing is shown of it. A section without a question is left out.
        """
        situation = situation_of(evaluation, from_scratch=self._from_scratch)
        if situation is None:
            return
        before = len(self._inputs)
        for part in self._parts:
            self._refresh(part, situation, evaluation)
        if len(self._inputs) > before:
            self.grown.emit()

    def _part(self, group: Group, fields: Sequence[WorkloadField]) -> _Part:
        form, heading = new_form(self.theme), GROUPS[group]
        section = remembered_section(self.workspace, self.theme, heading, form) if heading else None
        self._layout.addWidget(section or form)
        return _Part(group, form, fields, {one.name: form.reserve() for one in fields}, section)

    def _refresh(self, part: _Part, situation: Situation, evaluation: Evaluation) -> None:
        asked = [one for one in part.fields if one.is_asked(situation)]
        for one in asked:
            if one.name not in self._inputs:
                # Few plans need all of them; the start of the window does not wait for the others.
                self._ask(one, part)
            self._show(one, situation, evaluation)
        for one in part.fields:
            if one.name in self._inputs:
                part.form.set_row_visible(self._inputs[one.name], one in asked)
        if part.section is not None:
            part.section.setVisible(bool(asked))
            part.section.set_marked(part.form.differs)
            part.section.set_summary(_summary(part.group, asked, situation))

    def _show(self, one: WorkloadField, situation: Situation, evaluation: Evaluation) -> None:
        made, value = self._inputs[one.name], value_of(evaluation.plan.workload, one.name)
        if isinstance(made, ChoiceField):
            offered = tuple(choices_in(one, situation, value).items())
            if offered != self._offered.get(one.name):
                self._offered[one.name] = offered
                made.set_options(offered)
        elif isinstance(made, NumberField) and one.is_optional:
            implied = value_of(_in_use(evaluation), one.name)
            made.set_implied(implied if isinstance(implied, int) else None)
        made.set_value(value)

    def _ask(self, one: WorkloadField, part: _Part) -> None:
        made = self._inputs[one.name] = make_input(one, self.theme, self.workspace)
        name, step = one.name, in_sentence(one.title)
        part.form.add(
            label_of(one), made, lambda: value_of(self._defaults, name), tooltip_of(one), line=part.lines[name]
        )
        bind(
            self.workspace,
            made,
            lambda value: self.workspace.answer(step, {f"{WORKLOAD}{name}": value}),
            partial(self._explain, name, step),
        )

    def _explain(self, name: str, step: str, error: PlannerError) -> str:
        """Say why an answer is not allowed; with a number of GPUs that does not do, which ones would."""
        part, _, degree = name.partition(".")
        if part != "parallel" or degree not in _DEGREES:
            return explained(error)
        from planner.plan.answers.degrees import possible_degrees  # few numbers are not possible

        found = possible_degrees(self.workspace.before(step), name, self.workspace.catalog)
        return f"{explained(error)} {would_do(found)}"


def _summary(group: Group, fields: Sequence[WorkloadField], situation: Situation) -> str:
    """Return what a folded section says: of how GPUs share the work as one does, else field by field."""
    return sharing_summary(situation.used, situation.count) if group == "sharing" else summary(fields, situation)


def _in_use(evaluation: Evaluation) -> Workload:
    """Return the workload with its defaults filled in, and those of its engine on this card."""
    used = evaluation.workload
    if evaluation.architecture is None or not isinstance(used, Inference):
        return used
    program = serving_memory(used.profile, evaluation.architecture)
    settings = program.settings_in_use(evaluation.architecture, used, evaluation.gpu)
    return used.model_copy(update={"engine": settings})


def value_of(workload: Workload, name: str) -> object:
    """Return the workload's field `name`; adapters that are left open have their defaults."""
    part, _, inner = name.partition(".")
    if part == "lora" and isinstance(workload, Training) and workload.lora is None:
        return getattr(Lora(), inner)
    return reader(workload)(name)


def explained(error: PlannerError) -> str:
    """Return an error as it stands beside the field that it is about."""
    if isinstance(error, SpecError):
        return error.explained
    return " ".join(part for part in (error.message, error.hint) if part)


def would_do(found: tuple[int, ...]) -> str:
    """Return `1, 2 or 4 would do.`."""
    return f"{fmt.listing(tuple(map(fmt.integer, found)), 'or')} would do." if found else ""


def bind(
    workspace: Workspace,
    field: Field,
    change: Callable[[object], None],
    explain: Callable[[PlannerError], str] = explained,
) -> None:
    """Let `field` change the plan; what is not allowed is said beside the field, and the plan stays as it was."""

    def apply(value: object) -> None:
        try:
            change(value)
        except PlannerError as error:
            field.show_problem(explain(error))

    field.edited.connect(apply)
    field.finished.connect(workspace.end_gesture)


def new_form(theme: Theme) -> LabelledForm:
    """Return an empty form whose labels line up with those of the other forms."""
    form = LabelledForm(theme)
    form.set_label_width(_label_width(theme))
    return form


def _label_width(theme: Theme) -> int:
    # In bold, since that is how a label marks a value that differs from its default.
    return QFontMetrics(theme.font(bold=True)).horizontalAdvance(_WIDEST_LABEL)


def remembered_section(workspace: Workspace, theme: Theme, title: str, body: QWidget) -> Section:
    """Return a section that is open again at the next start if it was left open."""
    section = Section(theme, title, body)
    section.set_title_width(_label_width(theme) + theme.spacing.small)
    section.set_open(title in workspace.settings.current.open_sections)

    def remember(opened: bool) -> None:
        others = [name for name in workspace.settings.current.open_sections if name != title]
        workspace.settings.update(open_sections=(*others, title) if opened else tuple(others))

    section.toggled.connect(remember)
    return section


def at_the_left(*buttons: QWidget) -> QWidget:
    """Return a line of `buttons` that breaks where there is no room."""
    line = QWidget()
    layout = FlowLayout(0)
    line.setLayout(layout)
    for button in buttons:
        layout.addWidget(button)
    return line
