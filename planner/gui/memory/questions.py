"""Forms for the workload, generated from the declarations of its fields, and helpers shared by all forms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.memory.inputs import field_context_of, label_of, make_input, tooltip_of
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.layout import FlowLayout, focus_by_key
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.memory.software import serving_memory
from planner.plan.editing import WORKLOAD, possible_degrees
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.plan.parallel import batch_note, parallelism_summary
from planner.present.plan.settings import offered_choices, settings_summary, title_in_sentence
from planner.workload.choices import Task
from planner.workload.defaults import usual_targets
from planner.workload.fields import TASKS, WorkloadField, fields_of
from planner.workload.parallel import DEGREES
from planner.workload.presentation import GROUPS, FieldContext, Group
from planner.workload.rules import field_reader
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training, Workload

_TARGETS = "lora.targets"
_WIDEST_LABEL = "Compute precision"
_WIDEST_HEADING = "Attention and logits"


@dataclass
class _FormSection:
    """Section of the question form with its workload fields; `lines` are the reserved form lines by field name."""

    group: Group
    form: LabelledForm
    fields: Sequence[WorkloadField]
    lines: Mapping[str, int]
    section: Section | None


class Questions(QWidget):
    """Forms for the workload fields of `task` in `groups`."""

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
        declared = sorted(fields_of(task).values(), key=lambda field: not field.option.leads)
        self._parts = [
            self._make_section(group, [field for field in declared if field.group == group]) for group in groups
        ]

    def field(self, name: str) -> Field:
        """Return the input widget for the workload's field `name`.

        Raises:
            KeyError: If there is no such field, or its question has not been shown so far.
        """
        return self._inputs[name]

    def prepare(self) -> Iterator[Field]:
        """Create the inputs that are otherwise created when they are first shown."""
        for part in self._parts:
            for field in part.fields:
                if field.name not in self._inputs:
                    self._create_input(field, part)
                    part.form.set_row_visible(self._inputs[field.name], visible=False)
                    yield self._inputs[field.name]

    def focus_field(self, name: str) -> None:
        """Focus the input for the field `name`, and open its section, if this form has the field."""
        part = next((part for part in self._parts if name in part.lines and name in self._inputs), None)
        if part is None:
            return
        if part.section is not None:
            part.section.set_open(True)
        # After the layout has placed what the section holds.
        QTimer.singleShot(0, self, partial(focus_by_key, self._inputs[name], Qt.FocusReason.ShortcutFocusReason))

    def set_goal(self, goal: str) -> None:
        """Set the user's goal, such as `train`; training from scratch hides questions about frozen parameters."""
        self._from_scratch = goal == "train"

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the workload of the plan; an empty optional field shows its default as a placeholder.

        Sections without questions are hidden. A traced module has none of these questions.
        """
        situation = field_context_of(evaluation, from_scratch=self._from_scratch)
        if situation is None:
            return
        for part in self._parts:
            self._refresh_section(part, situation, evaluation)

    def _make_section(self, group: Group, fields: Sequence[WorkloadField]) -> _FormSection:
        form, heading = new_form(self.theme), GROUPS[group]
        section = remembered_section(self.workspace, self.theme, heading, form) if heading else None
        self._layout.addWidget(section or form)
        return _FormSection(group, form, fields, {field.name: form.reserve() for field in fields}, section)

    def _refresh_section(self, part: _FormSection, situation: FieldContext, evaluation: Evaluation) -> None:
        asked = [field for field in part.fields if field.is_shown(situation)]
        for field in asked:
            if field.name not in self._inputs:
                # Created on first use: few plans need all inputs, and creating them would delay the window.
                self._create_input(field, part)
            self._show_field(field, situation, evaluation)
        for field in part.fields:
            if field.name in self._inputs:
                part.form.set_row_visible(self._inputs[field.name], field in asked)
        if part.section is not None:
            part.section.setVisible(bool(asked))
            part.section.set_marked(part.form.differs)
            part.section.set_summary(_section_summary(part.group, asked, situation))

    def _show_field(self, field: WorkloadField, situation: FieldContext, evaluation: Evaluation) -> None:
        shown = evaluation.workload if field.name == _TARGETS else evaluation.plan.workload
        input_widget, value = self._inputs[field.name], field_value(shown, field.name)
        if isinstance(input_widget, ChoiceField):
            offered = tuple(offered_choices(field, situation, value).items())
            if offered != self._offered.get(field.name):
                self._offered[field.name] = offered
                input_widget.set_options(offered)
        elif isinstance(input_widget, NumberField) and field.is_optional:
            implied = field_value(_workload_in_use(evaluation), field.name)
            input_widget.set_implied(implied if isinstance(implied, int) else None)
        input_widget.set_value(value)
        if field.name == "batch":
            input_widget.show_note(batch_note(evaluation.workload))

    def _create_input(self, field: WorkloadField, part: _FormSection) -> None:
        input_widget = self._inputs[field.name] = make_input(field, self.theme, self.workspace)
        name, step = field.name, title_in_sentence(field.title)
        part.form.add(
            label_of(field),
            input_widget,
            lambda: self._default_value(name),
            tooltip_of(field),
            line=part.lines[name],
        )
        bind(
            self.workspace,
            input_widget,
            lambda value: self.workspace.answer(
                step, {**self._settled_degrees(name, value), f"{WORKLOAD}{name}": value}
            ),
            partial(self._error_with_valid_degrees, name, step),
        )

    def _default_value(self, name: str) -> object:
        """Return the value with which the field `name` starts; the targets of adapters are those of the model."""
        architecture = self.workspace.evaluation.architecture
        if name == _TARGETS and architecture is not None:
            return usual_targets(architecture)
        return field_value(self._defaults, name)

    def _settled_degrees(self, name: str, value: object) -> dict[str, object]:
        """Return the degrees that the software chose, from which a sharing that is set by hand starts."""
        if (name, value) != ("parallel.sharing", "manual") or self.workspace.evaluation.sharing is None:
            return {}
        parallel = self.workspace.evaluation.workload.parallel
        names = (degree for degree in (*DEGREES, "sequence") if degree != "data")  # replicas follow from the others
        return {f"{WORKLOAD}parallel.{degree}": getattr(parallel, degree) for degree in names}

    def _error_with_valid_degrees(self, name: str, step: str, error: PlannerError) -> str:
        """Return why an answer is not allowed; for an invalid parallel degree, list the valid degrees."""
        part, _, degree = name.partition(".")
        if part != "parallel" or degree not in DEGREES or degree == "zero":
            return error_text(error)

        values = possible_degrees(self.workspace.before(step), name, self.workspace.catalog)
        return f"{error_text(error)} {valid_values_text(values)}"


def _section_summary(group: Group, fields: Sequence[WorkloadField], situation: FieldContext) -> str:
    """Return the summary of a collapsed section."""
    if group != "sharing":
        return settings_summary(fields, situation)
    if situation.chosen_sharing:
        return f"chosen: {situation.chosen_sharing}"
    return parallelism_summary(situation.workload, situation.count)


def _workload_in_use(evaluation: Evaluation) -> Workload:
    """Return the plan's workload with defaults filled in, including the defaults of its engine on the plan's card."""
    workload = evaluation.workload
    if evaluation.architecture is None or not isinstance(workload, Inference):
        return workload
    program = serving_memory(workload.profile, evaluation.architecture)
    settings = program.settings_in_use(evaluation.architecture, workload, evaluation.gpu)
    return workload.model_copy(update={"engine": settings})


def field_value(workload: Workload, name: str) -> object:
    """Return the value of the workload field `name`; for an unset LoRA field, the default."""
    part, _, inner = name.partition(".")
    if part == "lora" and isinstance(workload, Training) and workload.lora is None:
        return getattr(Lora(), inner)
    return field_reader(workload)(name)


def error_text(error: PlannerError) -> str:
    """Return the text of an error for display below the input field."""
    if isinstance(error, SpecError):
        return error.explanation
    return " ".join(part for part in (error.message, error.hint) if part)


def valid_values_text(values: tuple[int, ...]) -> str:
    """Return a sentence that lists the valid values, such as `Valid values: 1, 2 or 4.`; empty without values."""
    return f"Valid values: {fmt.listing(tuple(map(fmt.integer, values)), 'or')}." if values else ""


def bind(
    workspace: Workspace,
    field: Field,
    change: Callable[[object], None],
    explain: Callable[[PlannerError], str] = error_text,
) -> None:
    """Apply edits of `field` to the plan with `change`; a value that is not allowed only shows a message."""

    def apply_value(value: object) -> None:
        try:
            change(value)
        except PlannerError as error:
            field.show_problem(explain(error))

    field.edited.connect(apply_value)
    field.finished.connect(workspace.end_gesture)


def new_form(theme: Theme) -> LabelledForm:
    """Return an empty form whose labels have the width of the labels in all other forms."""
    form = LabelledForm(theme)
    form.set_label_width(_label_width_pixels(theme))
    return form


def _label_width_pixels(theme: Theme) -> int:
    return _bold_width(_WIDEST_LABEL, theme)


def _bold_width(text: str, theme: Theme) -> int:
    """Return the width of a label or heading in bold, as it is if its values differ from their defaults."""
    return QFontMetrics(theme.font(bold=True)).horizontalAdvance(text)


def remembered_section(workspace: Workspace, theme: Theme, title: str, body: QWidget) -> Section:
    """Return a collapsible section; the settings store whether the section is open."""
    section = Section(theme, title, body, wraps=True)
    section.set_title_width(_bold_width(_WIDEST_HEADING, theme) + theme.icon_side + theme.spacing.medium)
    section.remember(title, workspace.settings)
    return section


def button_row(*buttons: QWidget) -> QWidget:
    """Return a left-aligned row of `buttons` that wraps to several lines."""
    line = QWidget()
    layout = FlowLayout(0)
    line.setLayout(layout)
    for button in buttons:
        layout.addWidget(button)
    return line
