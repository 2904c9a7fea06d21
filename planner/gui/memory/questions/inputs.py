"""Input widgets for the fields of the workload."""

from collections.abc import Callable, Sequence
from typing import Final, get_args

from planner.gui.memory.questions import targets
from planner.gui.memory.questions.list_field import ListField, parse_names, parse_numbers
from planner.gui.memory.questions.size_field import SizeField
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField, PickerField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace
from planner.memory.software import sharding_strategy_of
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.format import sentence
from planner.present.plan.parallel import chosen_sharing_phrase
from planner.present.plan.settings import field_value_text, offered_choices, title_in_sentence
from planner.workload.fields import WorkloadField
from planner.workload.presentation import FieldContext
from planner.workload.workload import Training

_LARGEST_NUMBER: Final = 100_000_000


def make_input(field: WorkloadField, theme: Theme, workspace: Workspace) -> Field:
    """Create the input widget for `field`, chosen by the field's name or kind."""
    if field.name in _SPECIAL_INPUTS:
        return _SPECIAL_INPUTS[field.name](theme, workspace)
    if field.option.details is not None:
        return _make_picker(field, theme, workspace)
    if field.kind == "bytes":
        return SizeField()
    if field.kind == "list":
        return ListField(parse_numbers if int in _tuple_element_types(field) else parse_names, field.option.placeholder)
    if field.kind == "number" and field.number_kind is not None:
        placeholder = fmt.UNKNOWN if field.is_optional else ""
        stops = tuple(map(int, field.option.stops))
        return NumberField(
            field.bound("ge", 0), field.bound("le", _LARGEST_NUMBER), placeholder, stops, field.number_kind
        )
    return ChoiceField(theme, ())


def label_of(field: WorkloadField) -> str:
    """Return the title of a field with its keyboard mnemonic: `&Batch size`."""
    letter, title = field.option.mnemonic, field.title
    place = title.lower().find(letter) if letter else -1
    return title if place < 0 else f"{title[:place]}&{title[place:]}"


def tooltip_of(field: WorkloadField) -> str:
    """Return the meaning of a field and, on the next line, its effect on memory."""
    return "\n".join(part for part in (sentence(field.help), field.option.explanation) if part)


def field_context_of(evaluation: Evaluation, *, from_scratch: bool = False) -> FieldContext | None:
    """Return the plan's context, on which workload questions and their choices depend; None for a traced module."""
    used, architecture = evaluation.workload, evaluation.architecture
    if architecture is None:
        return None
    sharder = sharding_strategy_of(used).name if isinstance(used, Training) else ""
    chosen = "" if evaluation.sharing is None else chosen_sharing_phrase(used)
    return FieldContext(used, architecture, evaluation.plan.count, sharder, from_scratch, chosen)


def _make_picker(field: WorkloadField, theme: Theme, workspace: Workspace) -> PickerField:
    """Create a field with a searchable list, for a workload field with many choices and details about each."""
    details = field.option.details

    def find_choices() -> Sequence[Choice]:
        context = field_context_of(workspace.evaluation)
        offered = offered_choices(field, context, None) if context else {}
        found = [(key, title, details(key) if details and key is not None else "") for key, title in offered.items()]
        return [Choice(key, title, detail, words=f"{key or ''} {detail}".strip()) for key, title, detail in found]

    def value_text(value: object) -> str:
        context = field_context_of(workspace.evaluation)
        return offered_choices(field, context, value)[value] if context else field_value_text(field, value)

    return PickerField(theme, find_choices, value_text, f"Search {title_in_sentence(field.title)}")


def _make_targets_picker(theme: Theme, workspace: Workspace) -> PickerField:
    def find_choices() -> Sequence[Choice]:
        return targets.target_choices(workspace.evaluation.architecture)

    def parse_typed_text(text: str) -> Choice | None:
        return targets.typed_targets(text, workspace.evaluation.architecture)

    return PickerField(
        theme, find_choices, targets.target_title, "Search layers, or type names separated by commas", parse_typed_text
    )


_SPECIAL_INPUTS: Final[dict[str, Callable[[Theme, Workspace], Field]]] = {"lora.targets": _make_targets_picker}
"""Functions by field name that create the special input widgets."""


def _tuple_element_types(field: WorkloadField) -> tuple[object, ...]:
    return get_args(field.info.annotation)
