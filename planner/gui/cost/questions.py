"""Base class of the forms whose fields are bound to the plan's cost terms."""

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QWidget

from planner.base import Spec
from planner.cost.terms import DEFAULT_JOBS, CostTerms
from planner.errors import PlannerError, SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.numbers import PERCENT, kind_at
from planner.present.plan.settings import title_in_sentence

YES_OR_NO: Final = ((True, "yes"), (False, "no"))
_WIDEST: Final = "Server-to-GPU price ratio"


def term_value(terms: CostTerms, path: str) -> object:
    """Return the cost term at `path`, such as `rent.mode`, or None if the kind of job has no such term."""
    value: object = terms
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def default_value(terms: CostTerms, path: str) -> object:
    """Return the default of the cost term at `path` for the same kind of job."""
    return term_value(CostTerms(job=DEFAULT_JOBS[terms.job.kind]), path)


def change_term(terms: CostTerms, path: str, value: object) -> CostTerms:
    """Return a copy of `terms` with the cost term at `path` set to `value`.

    Raises:
        SpecError: If the value is not allowed.
    """
    outer, _, inner = path.rpartition(".")
    try:
        if not outer:
            return terms.evolve(**{inner: value})
        part = getattr(terms, outer)
        assert isinstance(part, Spec)  # job, rent and buy are the only parts
        return terms.evolve(**{outer: part.evolve(**{inner: value})})
    except SpecError as error:
        raise SpecError(f"cost.{error.field}", error.reason, error.hint) from error


def number_input(path: str, ends: tuple[float, float], placeholder: str, scale: float) -> DecimalField:
    """Return an input for the number at `path`, from the first to the second of `ends` as displayed."""
    kind = PERCENT if scale != 1 else kind_at(CostTerms, path)
    assert kind is not None  # every cost term that is asked for as a number is one
    return DecimalField(*ends, placeholder, scale, kind)


class MoneyQuestions(QWidget):
    """Column of forms for the plan's cost terms; subclasses add an input for each term in `__init__`."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.workspace, self.theme = workspace, theme
        self._fields: dict[str, tuple[LabelledForm, Field]] = {}
        self._sections: list[tuple[Section, LabelledForm, Callable[[CostTerms], str]]] = []
        self._layout = in_column(owner=self, spacing=theme.spacing.small)

    @property
    def terms(self) -> CostTerms:
        """Return the plan's cost terms."""
        return self.workspace.plan.cost

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of the cost terms that have an input, such as `rent.mode`."""
        return tuple(self._fields)

    def field(self, path: str) -> Field:
        """Return the input for the cost term at `path`."""
        return self._fields[path][1]

    def refresh(self) -> None:
        """Show the plan's cost terms in the inputs."""
        for path, (form, field) in self._fields.items():
            applies = self.applies(path)
            if applies:
                field.set_value(term_value(self.terms, path))
            form.set_row_visible(field, applies)
        self.update_summaries()

    def update_summaries(self) -> None:
        """Show in each collapsed section what it holds, and mark those with a value other than the default."""
        for section, form, summary in self._sections:
            section.set_marked(form.differs)
            section.set_summary(summary(self.terms))

    def applies(self, _path: str) -> bool:
        """Return whether the cost term at a path has an effect, given the plan's other cost terms."""
        return True

    def ask(self, form: LabelledForm, path: str, label: str, field: Field, hint: str) -> None:
        """Add `field` to `form` as the input for the cost term at `path`."""
        self.place_field(form, path, label, field, hint)
        step = title_in_sentence(label.replace("&", ""))

        def apply_value(value: object) -> None:
            try:
                self.workspace.apply(step, cost=change_term(self.terms, path, value))
            except PlannerError as error:
                field.show_problem(error.explanation if isinstance(error, SpecError) else error.message)

        field.edited.connect(apply_value)
        field.finished.connect(self.workspace.end_gesture)

    def place_field(self, form: LabelledForm, path: str, label: str, field: Field, hint: str) -> None:
        """Add `field` to `form` to show the cost term at `path`; what an edit changes is up to the caller."""
        self._fields[path] = form, field
        form.add(label, field, lambda: default_value(self.terms, path), hint)

    def ask_choice(
        self, form: LabelledForm, path: str, label: str, options: Sequence[tuple[object, str]], hint: str
    ) -> ChoiceField:
        """Add a drop-down list for the cost term at `path` to `form`, and return the list."""
        field = ChoiceField(self.theme, options)
        self.ask(form, path, label, field, hint)
        return field

    def ask_number(
        self,
        form: LabelledForm,
        path: str,
        label: str,
        ends: tuple[float, float],
        hint: str,
        placeholder: str = "",
        scale: float = 1.0,
    ) -> None:
        """Add a number input for the cost term at `path`; `ends` are the least and greatest number as displayed."""
        self.ask(form, path, label, number_input(path, ends, placeholder, scale), hint)

    def add_section(
        self, title: str, form: LabelledForm, summary: Callable[[CostTerms], str], *, opened: bool
    ) -> Section:
        """Add `form` as a section that shows `summary` while it is collapsed, and return the section."""
        section = Section(self.theme, title, form, wraps=True)
        self.place_section(section, form, title, opened=opened)
        self._sections.append((section, form, summary))
        return section

    def add_form(self, form: LabelledForm) -> None:
        """Append `form` without a section, with its inputs aligned to the inputs in sections."""
        _align_inputs(form, self.theme, indented=False)
        self._layout.addWidget(form)

    def place_section(self, section: Section, form: LabelledForm, title: str, *, opened: bool = False) -> None:
        """Append a section with its inputs aligned to the others, expanded or collapsed as the user left it."""
        _align_inputs(form, self.theme, indented=True)
        section.set_title_width(_label_width(self.theme) + self.theme.spacing.small)
        section.remember(title, self.workspace.settings, opened=opened)
        self._layout.addWidget(section)


def _align_inputs(form: LabelledForm, theme: Theme, *, indented: bool) -> None:
    """Set the label width of `form` so that its inputs align with the inputs of all other forms."""
    form.set_label_width(_label_width(theme) - (theme.spacing.large if indented else 0))


def _label_width(theme: Theme) -> int:
    """Return the width of the widest label of a section, including its indentation."""
    return QFontMetrics(theme.font(bold=True)).horizontalAdvance(_WIDEST) + theme.spacing.large
