"""Input widgets for the fields of the workload."""

import re
from collections.abc import Callable, Sequence
from typing import Final, get_args

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QVBoxLayout

from planner.errors import SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField, PickerField
from planner.gui.widgets.inputs.field import Field, TextField
from planner.gui.widgets.inputs.number_field import NumberField, TypedNumber
from planner.gui.widgets.popover import Choice
from planner.gui.workspace import Workspace
from planner.memory.software import sharding_strategy_of
from planner.models.architecture import Architecture
from planner.numbers import COUNT, SIZE, parse_number
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.format import sentence
from planner.present.plan.parallel import chosen_sharing_phrase
from planner.present.plan.settings import field_value_text, offered_choices, title_in_sentence
from planner.units import TIB
from planner.workload.fields import WorkloadField
from planner.workload.presentation import FieldContext
from planner.workload.workload import Training

_LARGEST_IN_LIST: Final = 10**9


def parse_names(text: str) -> tuple[str, ...]:
    """Return the non-empty parts between commas in `text`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_numbers(text: str) -> tuple[int, ...]:
    """Return the whole numbers between commas in `text`.

    Raises:
        SpecError: If a part is not a whole number.
    """
    try:
        return tuple(int(parse_number(part, COUNT, 0, _LARGEST_IN_LIST)) for part in parse_names(text))
    except SpecError as error:
        raise SpecError(
            error.field, error.reason, "Type whole numbers separated by commas, such as 20, 20, 12."
        ) from error


class ListField(Field):
    """Input for a tuple of values; `read` parses the tuple from the text when editing is finished.

    An empty input means an empty tuple; `placeholder` describes the value that applies instead.
    """

    def __init__(self, read: Callable[[str], tuple[object, ...]], placeholder: str) -> None:
        super().__init__()
        self._read = read
        self._value: tuple[object, ...] = ()
        self._line = TextField(read, placeholder)
        self.setFocusProxy(self._line)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._line)
        self._line.finished.connect(self._on_editing_finished)

    @property
    def value(self) -> tuple[object, ...]:
        """Return the parsed tuple of values."""
        return self._value

    def set_value(self, value: object) -> None:
        """Show a tuple of values, separated by commas."""
        if not isinstance(value, tuple):
            raise TypeError(f"a list field cannot show {value!r}")
        if value != self._value or not self._line.hasFocus():
            self._line.set_value(", ".join(map(str, value)))
        self._value = value
        self.shown.emit()

    def set_name(self, name: str) -> None:
        """Set the accessible name for screen readers."""
        self._line.set_name(name)

    def show_problem(self, message: str) -> None:
        """Show below the input why its value is not allowed."""
        self._line.show_problem(message)

    @Slot()
    def _on_editing_finished(self) -> None:
        try:
            value = self._read(self._line.text)
        except SpecError:
            return
        if value != self._value:
            self.edited.emit(value)
        self.finished.emit()


_ALL_LINEAR: Final = "all-linear"
_ALL_LINEAR_TITLE: Final = "All linear layers"
# Common choices, offered if the model has layers with these names.
_COMMON_TARGETS: Final = (
    ("q_proj", "v_proj"),
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("to_k", "to_q", "to_v", "to_out.0"),
)


def target_choices(architecture: Architecture | None) -> Sequence[Choice]:
    """Return the common sets of target layers, and each layer name on its own."""
    names = linear_names(architecture)
    common_targets = [targets for targets in _COMMON_TARGETS if set(targets) <= set(names)]
    return [
        Choice(_ALL_LINEAR, _ALL_LINEAR_TITLE, ", ".join(names)),
        *(Choice(targets, target_title(targets), "attention") for targets in common_targets),
        *(Choice((name,), name) for name in names),
    ]


def typed_targets(text: str, architecture: Architecture | None) -> Choice | None:
    """Return the choice for layer names separated by commas, or None unless `text` names at least two known layers."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    known = set(linear_names(architecture))
    if len(names) < 2 or not set(names) <= known:
        return None
    return Choice(names, target_title(names), "these layers")


def target_title(value: object) -> str:
    """Return the title of a set of LoRA target layers: `All linear layers`, or the names of the layers."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else _ALL_LINEAR_TITLE


def linear_names(architecture: Architecture | None) -> tuple[str, ...]:
    """Return the last part of each linear layer's name in the model."""
    if architecture is None:
        return ()
    from planner.memory.training.adapters.trained import is_linear, layer_name  # needed when the list of layers opens

    layers = (group.layer.tensors for stack in architecture.stacks for group in stack.groups)
    denoisers = (part.tensors for part in architecture.components if part.part == "denoiser")
    tensors = (tensor for part in (*layers, *denoisers) for tensor in part if is_linear(tensor))
    return tuple(dict.fromkeys(layer_name(tensor.name) for tensor in tensors))


_LARGEST_SIZE: Final = 1024 * TIB


class SizeField(TypedNumber):
    """Input for a size such as `2 GiB` or `512 MiB`; a number without a unit is in GiB."""

    def __init__(self) -> None:
        super().__init__(SIZE, 0, _LARGEST_SIZE)
        self._lay_out(self._edit)
        self._show_value()

    @property
    def value(self) -> int:
        """Return the memory size in bytes."""
        return round(self._value or 0)

    def _value_text(self) -> str:
        return fmt.size(self.value) if self._value else "0 GiB"

    def _restores_on_escape(self) -> bool:
        # A number without a unit is a size too; Escape shows it with its unit.
        return True

    def _show_value(self, keep_text: bool = False) -> None:
        super()._show_value(keep_text)
        if not keep_text:
            self._edit.setToolTip(fmt.exact_bytes(self.value))


_LARGEST_NUMBER: Final = 100_000_000
_LISTED_VALUES: Final = re.compile(r": [a-z][\w.-]*(?:,| or) .*")
"""Values of a choice as `--help` and plan files name them: `: sdpa, flash or eager`."""


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
        placeholder = field.option.placeholder or fmt.UNKNOWN if field.is_optional else ""
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
    """Return the meaning of a field and, on the next line, its effect on memory.

    A list shows its choices by their titles, so the values that `--help` lists after a colon are left out.
    """
    meaning = field.help if field.option.choices is None else _LISTED_VALUES.sub("", field.help)
    return "\n".join(part for part in (sentence(meaning), field.option.explanation) if part)


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
        return target_choices(workspace.evaluation.architecture)

    def parse_typed_text(text: str) -> Choice | None:
        return typed_targets(text, workspace.evaluation.architecture)

    return PickerField(
        theme, find_choices, target_title, "Search layers, or type names separated by commas", parse_typed_text
    )


def draft_choices(workspace: Workspace) -> Sequence[Choice]:
    """Return the catalog's models that can draft for the plan's: smaller ones with the same vocabulary."""
    target = workspace.evaluation.architecture
    if target is None:
        return ()
    smaller = [
        record
        for record in workspace.catalog.models.records
        if record.kind == "decoder"
        and record.config.get("vocab_size") == target.vocabulary
        and 2 * record.parameters <= target.parameters
    ]
    return [
        Choice(record.id, record.name, f"{fmt.significant(record.parameters / 1e9)} B parameters")
        for record in sorted(smaller, key=lambda record: record.parameters)
    ]


def _make_draft_picker(theme: Theme, workspace: Workspace) -> PickerField:
    def typed(text: str) -> Choice | None:
        return Choice(text, text, "checkpoint of an EAGLE head") if text else None

    return PickerField(
        theme,
        lambda: draft_choices(workspace),
        lambda value: str(value or "not named"),
        "Search smaller models",
        typed,
    )


_SPECIAL_INPUTS: Final[dict[str, Callable[[Theme, Workspace], Field]]] = {
    "lora.targets": _make_targets_picker,
    "adapters.targets": _make_targets_picker,
    "speculation.model": _make_draft_picker,
}
"""Functions by field name that create the special input widgets."""


def _tuple_element_types(field: WorkloadField) -> tuple[object, ...]:
    return get_args(field.info.annotation)
