"""The part of a form that belongs to the workload: fields bound to the plan, under headings that say their value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.layout import FlowLayout
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.models.architecture import Architecture
from planner.plan.answers.draft import WORKLOAD
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.workload.training import Lora
from planner.workload.workload import Workload

_LENGTHS = ("sequence_length", "context_length", "prompt_length")
_WIDEST_LABEL = "Sequences per step"


@dataclass(frozen=True, slots=True)
class _Heading:
    section: Section
    form: LabelledForm
    summary: Callable[[Workload], str]


class Questions(QWidget):
    """A column of questions. Subclasses ask them in `__init__`, each for one field of the workload.

    A field of a field is named with a point: `engine.slots`. `grown` says that questions were added.
    """

    grown = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, defaults: Workload) -> None:
        super().__init__()
        self.workspace, self.theme = workspace, theme
        self.used: Workload = defaults
        self._defaults = defaults
        self._fields: dict[str, Field] = {}
        self._forms: dict[str, LabelledForm] = {}
        self._later: dict[str, Callable[[], None]] = {}
        self._options: dict[str, Sequence[tuple[object, str]]] = {}
        self._headings: list[_Heading] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.spacing.small)

    def field(self, name: str) -> Field:
        """Return the input for the workload's field `name`.

        Raises:
            KeyError: If there is no such question, or it had no meaning so far.
        """
        return self._fields[name]

    def asked(self, name: str) -> Field | None:
        """Return the input for `name` if there is such a question, and it had a meaning so far."""
        return self._fields.get(name)

    def set_goal(self, goal: str) -> None:
        """Take over what the person wants of the model; most questions are the same whatever that is."""

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the workload of the plan; fields that may stay open say what applies instead.

        There are no questions about a traced module: nothing is shown of it. A section without a question is left out.
        """
        architecture = evaluation.architecture
        if architecture is None:
            return
        self.used = evaluation.workload
        self._add_what_matters(architecture)
        asked: set[LabelledForm] = set()
        for name, field in self._fields.items():
            if isinstance(field, NumberField) and value_of(self._defaults, name) is None:
                implied = value_of(evaluation.workload, name)
                field.set_implied(implied if isinstance(implied, int) else None)
            field.set_value(value_of(evaluation.plan.workload, name))
            meant = self.has_meaning(name, architecture)
            self._forms[name].set_row_visible(field, meant)
            if meant:
                asked.add(self._forms[name])
        for heading in self._headings:
            heading.section.setVisible(heading.form in asked)
            heading.section.set_marked(heading.form.differs)
            heading.section.set_summary(heading.summary(evaluation.workload))

    def has_meaning(self, name: str, architecture: Architecture) -> bool:
        """Return whether the workload's field `name` makes a difference for a model of this kind."""
        return architecture.takes_lengths or name not in _LENGTHS

    def add_form(self, form: LabelledForm) -> None:
        """Show `form` below what is there."""
        self._layout.addWidget(form)

    def add_section(self, title: str, form: LabelledForm, summary: Callable[[Workload], str]) -> None:
        """Show `form` under a heading that unfolds; folded, it says `summary` of the filled-in workload."""
        section = remembered_section(self.workspace, self.theme, title, form)
        self._layout.addWidget(section)
        self._headings.append(_Heading(section, form, summary))

    def ask(self, form: LabelledForm, name: str, label: str, field: Field, hint: str) -> None:
        """Add the question for the workload's field `name`."""
        self._ask_in(form.reserve(), form, name, label, field, hint)

    def ask_where_it_matters(
        self, form: LabelledForm, name: str, label: str, make: Callable[[], Field], hint: str
    ) -> None:
        """Add the question for the workload's field `name`, which is made when it first has a meaning.

        Few plans need such a question; the start of the window does not wait for all of them.
        """
        line = form.reserve()
        self._later[name] = lambda: self._ask_in(line, form, name, label, make(), hint)

    def _add_what_matters(self, architecture: Architecture) -> None:
        names = [name for name in self._later if self.has_meaning(name, architecture)]
        for name in names:
            self._later.pop(name)()
            if name in self._options:
                self.offer(name, self._options[name])
        if names:
            self.grown.emit()

    def _ask_in(self, line: int, form: LabelledForm, name: str, label: str, field: Field, hint: str) -> None:
        self._fields[name] = field
        self._forms[name] = form
        form.add(label, field, lambda: value_of(self._defaults, name), hint, line=line)
        words = label.replace("&", "").lower()
        bind(
            self.workspace,
            field,
            lambda value: self.workspace.answer(words, {f"{WORKLOAD}{name}": value}),
            partial(self.explain, name, words),
        )

    def rename(self, name: str, label: str) -> None:
        """Ask the question `name` in other words."""
        self._forms[name].set_label(self._fields[name], label)

    def offer(self, name: str, options: Sequence[tuple[object, str]]) -> None:
        """Let the question `name` have these answers, and the one that it has now."""
        self._options[name] = options
        field = self._fields.get(name)
        if isinstance(field, ChoiceField):
            value = value_of(self.workspace.plan.workload, name)
            known = any(option == value for option, _ in options)
            field.set_options(options if known else (*options, (value, str(value))))

    def explain(self, _name: str, _step: str, error: PlannerError) -> str:
        """Return what is said beside the question `name`, of the undo step `step`, whose answer is not allowed."""
        return explained(error)


def value_of(workload: Workload, name: str) -> object:
    """Return the workload's field `name`; adapters that are left open have their defaults."""
    outer, _, inner = name.partition(".")
    held: object = getattr(workload, outer)
    if not inner:
        return held
    return getattr(Lora() if held is None else held, inner, None)


def explained(error: PlannerError) -> str:
    """Return an error as it stands beside the field that it is about."""
    if isinstance(error, SpecError):
        return error.explained
    return " ".join(part for part in (error.message, error.hint) if part)


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


def length_field(last_stop: int) -> NumberField:
    """Return the field for a number of tokens that may be left to the model, with a slider up to `last_stop`."""
    return NumberField(1, 100_000_000, placeholder=fmt.UNKNOWN, stops=token_stops(128, last_stop))


def token_stops(first: int, last: int) -> tuple[int, ...]:
    """Return the powers of two from `first` to `last`, for a slider."""
    return tuple(1 << exponent for exponent in range(first.bit_length() - 1, last.bit_length()))
