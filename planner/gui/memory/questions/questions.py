"""Forms for the workload, generated from the declarations of its fields, and helpers shared by all forms."""

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
from planner.plan.editing.draft import WORKLOAD
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.plan.parallel import sharing_summary
from planner.present.plan.settings import in_sentence, offered_choices, settings_summary
from planner.workload.choices import Task
from planner.workload.fields import TASKS, WorkloadField, fields_of
from planner.workload.presentation import GROUPS, FieldContext, Group
from planner.workload.rules import field_reader
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training, Workload

_WIDEST_LABEL = "Compute precision"
_DEGREES = ("tensor", "pipeline", "context", "expert", "data")


@dataclass
class _Part:
    """A section of the form with its fields; `lines` are the form lines reserved for them."""

    group: Group
    form: LabelledForm
    fields: Sequence[WorkloadField]
    lines: Mapping[str, int]
    section: Section | None


class Questions(QWidget):
    """Column of forms for the fields of `task` in `groups`; `grown` is emitted when inputs were added."""

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
            KeyError: If there is no such question, or it has not applied so far.
        """
        return self._inputs[name]

    def asked(self, name: str) -> Field | None:
        """Return the input for `name`, or None if it has not been created."""
        return self._inputs.get(name)

    def set_goal(self, goal: str) -> None:
        """Set the goal: a model trained from scratch has no frozen parameters."""
        self._from_scratch = goal == "train"

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the workload of the plan; an empty optional field shows its default as a placeholder.

        Sections without questions are hidden. A traced module has no such questions.
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

    def _refresh(self, part: _Part, situation: FieldContext, evaluation: Evaluation) -> None:
        asked = [one for one in part.fields if one.is_shown(situation)]
        for one in asked:
            if one.name not in self._inputs:
                # Created on first use: few plans need all inputs, and creating them would delay the window.
                self._ask(one, part)
            self._show(one, situation, evaluation)
        for one in part.fields:
            if one.name in self._inputs:
                part.form.set_row_visible(self._inputs[one.name], one in asked)
        if part.section is not None:
            part.section.setVisible(bool(asked))
            part.section.set_marked(part.form.differs)
            part.section.set_summary(_summary(part.group, asked, situation))

    def _show(self, one: WorkloadField, situation: FieldContext, evaluation: Evaluation) -> None:
        made, value = self._inputs[one.name], field_value(evaluation.plan.workload, one.name)
        if isinstance(made, ChoiceField):
            offered = tuple(offered_choices(one, situation, value).items())
            if offered != self._offered.get(one.name):
                self._offered[one.name] = offered
                made.set_options(offered)
        elif isinstance(made, NumberField) and one.is_optional:
            implied = field_value(_in_use(evaluation), one.name)
            made.set_implied(implied if isinstance(implied, int) else None)
        made.set_value(value)

    def _ask(self, one: WorkloadField, part: _Part) -> None:
        made = self._inputs[one.name] = make_input(one, self.theme, self.workspace)
        name, step = one.name, in_sentence(one.title)
        part.form.add(
            label_of(one), made, lambda: field_value(self._defaults, name), tooltip_of(one), line=part.lines[name]
        )
        bind(
            self.workspace,
            made,
            lambda value: self.workspace.answer(step, {f"{WORKLOAD}{name}": value}),
            partial(self._explain, name, step),
        )

    def _explain(self, name: str, step: str, error: PlannerError) -> str:
        """Explain why an answer is not allowed; for an invalid parallel degree, list the valid ones."""
        part, _, degree = name.partition(".")
        if part != "parallel" or degree not in _DEGREES:
            return explained(error)
        from planner.plan.editing.degrees import possible_degrees  # rarely needed

        found = possible_degrees(self.workspace.before(step), name, self.workspace.catalog)
        return f"{explained(error)} {valid_values(found)}"


def _summary(group: Group, fields: Sequence[WorkloadField], situation: FieldContext) -> str:
    """Return the summary of a collapsed section."""
    return (
        sharing_summary(situation.workload, situation.count)
        if group == "sharing"
        else settings_summary(fields, situation)
    )


def _in_use(evaluation: Evaluation) -> Workload:
    """Return the workload with its defaults filled in, including those of its engine on this card."""
    used = evaluation.workload
    if evaluation.architecture is None or not isinstance(used, Inference):
        return used
    program = serving_memory(used.profile, evaluation.architecture)
    settings = program.settings_in_use(evaluation.architecture, used, evaluation.gpu)
    return used.model_copy(update={"engine": settings})


def field_value(workload: Workload, name: str) -> object:
    """Return the value of the workload's field `name`; unset LoRA fields have their defaults."""
    part, _, inner = name.partition(".")
    if part == "lora" and isinstance(workload, Training) and workload.lora is None:
        return getattr(Lora(), inner)
    return field_reader(workload)(name)


def explained(error: PlannerError) -> str:
    """Return the text of an error for display below its field."""
    if isinstance(error, SpecError):
        return error.explained
    return " ".join(part for part in (error.message, error.hint) if part)


def valid_values(found: tuple[int, ...]) -> str:
    """Return a sentence that lists the valid values, empty if there are none: `Valid values: 1, 2 or 4.`."""
    return f"Valid values: {fmt.listing(tuple(map(fmt.integer, found)), 'or')}." if found else ""


def bind(
    workspace: Workspace,
    field: Field,
    change: Callable[[object], None],
    explain: Callable[[PlannerError], str] = explained,
) -> None:
    """Connect `field` to the plan; a value that is not allowed shows its problem and leaves the plan unchanged."""

    def apply(value: object) -> None:
        try:
            change(value)
        except PlannerError as error:
            field.show_problem(explain(error))

    field.edited.connect(apply)
    field.finished.connect(workspace.end_gesture)


def new_form(theme: Theme) -> LabelledForm:
    """Return an empty form whose labels align with those of the other forms."""
    form = LabelledForm(theme)
    form.set_label_width(_label_width(theme))
    return form


def _label_width(theme: Theme) -> int:
    # In bold, because labels of values that differ from their default are bold.
    return QFontMetrics(theme.font(bold=True)).horizontalAdvance(_WIDEST_LABEL)


def remembered_section(workspace: Workspace, theme: Theme, title: str, body: QWidget) -> Section:
    """Return a collapsible section whose state is stored in the settings."""
    section = Section(theme, title, body)
    section.set_title_width(_label_width(theme) + theme.spacing.small)
    section.set_open(title in workspace.settings.current.open_sections)

    def remember(opened: bool) -> None:
        others = [name for name in workspace.settings.current.open_sections if name != title]
        workspace.settings.update(open_sections=(*others, title) if opened else tuple(others))

    section.toggled.connect(remember)
    return section


def button_row(*buttons: QWidget) -> QWidget:
    """Return a left-aligned row of `buttons` that wraps."""
    line = QWidget()
    layout = FlowLayout(0)
    line.setLayout(layout)
    for button in buttons:
        layout.addWidget(button)
    return line
