"""Form for the settings of a traced run, used in the dialog and in the left column of the Memory tab."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, cast

from pydantic import ValidationError
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.memory.questions import new_form, remembered_section
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField, RadioField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.hardware.gpu import Gpu
from planner.numbers import LENGTH
from planner.plan.trace_request import operator_fields
from planner.present.plan.settings import setting_title
from planner.trace.request import (
    Argument,
    TraceParallel,
    TraceRequest,
    has_sequence_length,
    requested_batch_size,
    requested_sequence_length,
    with_batch_size,
    with_sequence_length,
)
from planner.workload.presentation import doubling

Device = tuple[str, str | None]
Options = tuple[tuple[object, str], ...]
"""Options of a choice field: each value with its title."""
TASKS: Final[Options] = (("training", "Train"), ("inference", "Run"))
ZERO_GRAD: Final[Options] = (
    ("after-step", "Freed after the step"),
    ("before-backward", "Freed before the next backward pass"),
    ("zeros", "Kept and set to zero"),
)
CHECKPOINTING: Final[Options] = (
    ("none", "None"),
    ("selective", "Selective (by operator)"),
    ("full", "Full, where the module supports it"),
)
STRATEGIES: Final[Options] = (("ddp", "DDP (full copies)"), ("fsdp", "FSDP2 (sharded)"))
_MOMENTUM: Final = (Argument(name="momentum", value=0.9),)
_OPTIMIZERS: Final[Options] = (
    (("AdamW", ()), "AdamW"),
    (("AdamW", (Argument(name="fused", value=True),)), "AdamW, fused"),
    (("AdamW", (Argument(name="foreach", value=False),)), "AdamW, for-loop"),
    (("Adam", ()), "Adam"),
    (("SGD", ()), "SGD"),
    (("SGD", _MOMENTUM), "SGD with momentum"),
    (("Adafactor", ()), "Adafactor"),
    (("Adagrad", ()), "Adagrad"),
    (("Adamax", ()), "Adamax"),
    (("NAdam", ()), "NAdam"),
    (("RAdam", ()), "RAdam"),
    (("RMSprop", ()), "RMSprop"),
)
_PRECISIONS: Final[Options] = (
    ((None, None), "As built"),
    ((None, "bf16"), "BF16 autocast"),
    ((None, "fp16"), "FP16 autocast"),
    (("fp32", None), "FP32"),
    (("bf16", None), "BF16 throughout"),
    (("fp16", None), "FP16 throughout"),
    (("fp64", None), "FP64"),
)
SetRequestValue = Callable[[TraceRequest, object], TraceRequest]
_BATCH_SIZES: Final = doubling(1, 1024)
_SEQUENCE_LENGTHS: Final = doubling(128, 131_072)
_SIZE_FIELDS: Final = ("batch", "sequence")
_FIELDS_OF_SCRIPTS: Final = ("device",)
_FROM_INPUTS: Final = "from its inputs"


def option_title(options: Options, value: object) -> str:
    """Return the title of `value` among `options`."""
    return next(title for known, title in options if known == value)


def optimizer_options(request: TraceRequest) -> Options:
    """Return the optimizers to choose from, each with its arguments, including the request's optimizer."""
    own_option = request.optimizer, request.optimizer_arguments
    return _options_including(_OPTIMIZERS, own_option, optimizer_call(request))


def optimizer_call(request: TraceRequest) -> str:
    """Return the optimizer as Python code: `SGD(momentum=0.9)`."""
    arguments_text = ", ".join(f"{argument.name}={argument.value}" for argument in request.optimizer_arguments)
    return f"{request.optimizer}({arguments_text})" if arguments_text else request.optimizer


def precision_options(request: TraceRequest) -> Options:
    """Return the pairs of parameter and autocast format to choose from, including the request's formats."""
    dtype, autocast = request.dtype, request.autocast
    own_option = f"{(dtype or '').upper()} parameters, {(autocast or '').upper()} autocast"
    return _options_including(_PRECISIONS, (dtype, autocast), own_option)


def device_of(request: TraceRequest) -> Device:
    """Return the device type whose operators are assumed, with its CUDA compute capability."""
    return request.device, request.compute_capability


def with_device(request: TraceRequest, value: object) -> TraceRequest:
    """Return a copy of the trace request that assumes the operators of the device `value`."""
    device, capability = value if isinstance(value, tuple) else (value, None)
    card = request.card if capability == request.compute_capability else None
    return request.evolve(device=device, compute_capability=capability, card=card)


def device_options(request: TraceRequest, card: Gpu | None) -> Options:
    """Return the devices to choose from, with the plan's `card` if its CUDA capability is known."""
    capability = operator_fields(card)["compute_capability"]
    own = (
        []
        if card is None or capability is None
        else [(("cuda", capability), f"compute capability {capability}, {card.name}")]
    )
    options: Options = (*own, (("cuda", None), "CUDA, any GPU"), (("cpu", None), "CPU, as on this computer"))
    return _options_including(options, device_of(request), f"compute capability {request.compute_capability}")


def strategy_of(request: TraceRequest) -> str:
    """Return the parallel strategy (DDP or FSDP) for several ranks."""
    return "ddp" if request.parallel.strategy == "none" else request.parallel.strategy


def with_ranks(request: TraceRequest, ranks: object) -> TraceRequest:
    """Return a copy of the trace request with `ranks` ranks; a single rank has no parallel strategy."""
    strategy = "none" if ranks == 1 else strategy_of(request)
    return request.evolve(parallel=request.parallel.evolve(ranks=ranks, strategy=strategy))


def with_strategy(request: TraceRequest, strategy: object) -> TraceRequest:
    """Return a copy of the trace request with the parallel `strategy`; a single rank has no strategy."""
    return (
        request if request.parallel.ranks == 1 else request.evolve(parallel=request.parallel.evolve(strategy=strategy))
    )


def parallel_text(parallel: TraceParallel) -> str:
    """Return a short text about the ranks: `one rank` or `FSDP on 8 ranks`."""
    return "one rank" if parallel.ranks == 1 else f"{parallel.strategy.upper()} on {parallel.ranks:,} ranks"


def gradients_text(request: TraceRequest) -> str:
    """Return a short text about the settings that determine the lifetime of gradients and activations."""
    lifetime = option_title(ZERO_GRAD, request.zero_grad).lower()
    checkpointing = {"none": "", "selective": ", selective checkpointing", "full": ", checkpointing"}
    steps = f", {request.gradient_accumulation:,} accumulation steps" if request.gradient_accumulation > 1 else ""
    return f"{lifetime}{checkpointing[request.checkpointing]}{steps}"


def _options_including(options: Options, own_option: object, title: str) -> Options:
    return options if any(value == own_option for value, _ in options) else (*options, (own_option, title))


def _is_training(request: TraceRequest) -> bool:
    return request.task == "training"


def _has_optimizer(request: TraceRequest) -> bool:
    return _is_training(request) and request.step is None


def _generates_tokens(request: TraceRequest) -> bool:
    return not _is_training(request) and request.target.kind == "config"


def _has_several_ranks(request: TraceRequest) -> bool:
    return request.parallel.ranks > 1


@dataclass(frozen=True, slots=True)
class _RequestField:
    """Input field of the trace request: its form line, and how it reads and changes a request."""

    field: Field
    form: LabelledForm
    title: str
    get: Callable[[TraceRequest], object]
    set_value: SetRequestValue
    is_shown: Callable[[TraceRequest], bool]


@dataclass(frozen=True, slots=True)
class _RequestSection:
    """Collapsible section of the trace request, with its summary; without visible fields it is hidden."""

    section: Section
    form: LabelledForm
    summary: Callable[[TraceRequest], str]


class RequestForm(QWidget):
    """Form for the run settings; `edited` carries the changed request and the name of the changed setting."""

    edited = Signal(object, str)

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self._request: TraceRequest | None = None
        self._shown: tuple[TraceRequest, Gpu | None] | None = None
        self._sizes_shown = True
        self._for_script = False
        self._request_fields: dict[str, _RequestField] = {}
        self._sections: list[_RequestSection] = []
        self._optimizer = ChoiceField(theme, ())
        self._precision = ChoiceField(theme, ())
        self._device = ChoiceField(theme, ())
        self._column = in_column(owner=self, spacing=theme.spacing.small)
        self._add_main_fields()
        self._add_memory_fields()
        self._add_device_fields()

    @property
    def request(self) -> TraceRequest | None:
        """Return the shown request."""
        return self._request

    def field(self, key: str) -> Field:
        """Return the input widget for the request field `key`."""
        return self._request_fields[key].field

    def show_fields(self, *, sizes: bool, for_script: bool = False) -> None:
        """Show or hide batch size and sequence length, which input shapes replace, and what a script itself decides."""
        self._sizes_shown, self._for_script = sizes, for_script
        if self._request is not None:
            self._update_visibility(self._request)

    def set_request(self, request: TraceRequest) -> None:
        """Show `request` without emitting `edited`."""
        card = self._workspace.evaluation.gpu
        if (request, card) == self._shown:
            return  # keep text being typed, and an open list
        self._request, self._shown = request, (request, card)
        self._optimizer.set_options(optimizer_options(request))
        self._precision.set_options(precision_options(request))
        self._device.set_options(device_options(request, card))
        for request_field in self._request_fields.values():
            request_field.field.set_value(request_field.get(request))
        self._update_visibility(request)

    def _update_visibility(self, request: TraceRequest) -> None:
        """Show the fields and sections that apply to `request`."""
        forms_in_use = set()
        for key, request_field in self._request_fields.items():
            visible = (
                request_field.is_shown(request)
                and (self._sizes_shown or key not in _SIZE_FIELDS)
                and (key in _FIELDS_OF_SCRIPTS or not self._is_of_script(request))
            )
            request_field.form.set_row_visible(request_field.field, visible)
            if visible:
                forms_in_use.add(request_field.form)
        for section_entry in self._sections:
            section_entry.section.set_summary(section_entry.summary(request))
            section_entry.section.setVisible(section_entry.form in forms_in_use)

    def _is_of_script(self, request: TraceRequest) -> bool:
        return self._for_script or request.target.is_script

    def _add_main_fields(self) -> None:
        form, theme = new_form(self._theme), self._theme
        self._add_field(
            form, "task", "I want &to", RadioField(theme, TASKS), "Trace a step of training, or a forward pass."
        )
        batch = NumberField(1, 1_000_000, placeholder=_FROM_INPUTS, stops=_BATCH_SIZES)
        hint = "Samples per forward pass."
        set_batch = _number_setter(with_batch_size)
        self._add_field(form, "batch", "B&atch size", batch, hint, get=requested_batch_size, set_value=set_batch)
        length = NumberField(1, 100_000_000, placeholder="the model's default", stops=_SEQUENCE_LENGTHS, kind=LENGTH)
        hint = "Tokens per sequence; for inference, tokens in the prompt."
        self._add_field(
            form,
            "sequence",
            "Sequence &length",
            length,
            hint,
            has_sequence_length,
            requested_sequence_length,
            _number_setter(with_sequence_length),
        )
        hint = "Tokens generated one by one with the KV cache."
        self._add_field(
            form, "decode_tokens", "Generate&d tokens", NumberField(0, 100_000, kind=LENGTH), hint, _generates_tokens
        )
        hint = "Optimizer class in torch.optim."
        both = ("optimizer", "optimizer_arguments")
        self._add_field(form, "optimizer", "Optimi&zer", self._optimizer, hint, _has_optimizer, attributes=both)
        hint = "Autocast computes in 16 bits and keeps the parameters as they are; “throughout” casts them too."
        both = ("dtype", "autocast")
        self._add_field(form, "precision", "P&recision", self._precision, hint, attributes=both)
        self._column.addWidget(form)

    def _add_memory_fields(self) -> None:
        form, theme = new_form(self._theme), self._theme
        hint = "Full keeps only each layer's input and recomputes the other activations in the backward pass."
        self._add_field(form, "checkpointing", "Checkpointing", ChoiceField(theme, CHECKPOINTING), hint, _is_training)
        title = setting_title("gradient_accumulation")
        hint = "Number of backward passes whose gradients are summed before an optimizer step."
        self._add_field(form, "gradient_accumulation", title, NumberField(1, 10_000), hint, _has_optimizer)
        hint = "When the gradients of a step are freed."
        self._add_field(form, "zero_grad", "Gra&dients", ChoiceField(theme, ZERO_GRAD), hint, _has_optimizer)
        self._add_section("Gradients", form, gradients_text)

    def _add_device_fields(self) -> None:
        form, theme = new_form(self._theme), self._theme
        hint = "CUDA uses different operators than the CPU; which ones depends on the GPU."
        self._add_field(form, "device", "Device", self._device, hint, get=device_of, set_value=with_device)
        hint = "Number of parallel processes (GPUs). Only one is traced; the others are not started."
        count = attrgetter("parallel.ranks")
        self._add_field(form, "ranks", "Ran&ks", NumberField(1, 100_000), hint, get=count, set_value=with_ranks)
        strategies = ChoiceField(theme, STRATEGIES)
        hint = "DDP keeps a full copy of the model on each rank; FSDP2 shards it."
        self._add_field(form, "strategy", "&Strategy", strategies, hint, _has_several_ranks, strategy_of, with_strategy)
        self._add_section("Device and ranks", form, self._device_summary_text)

    def _add_field(
        self,
        form: LabelledForm,
        key: str,
        label: str,
        field: Field,
        hint: str = "",
        is_shown: Callable[[TraceRequest], bool] = lambda _: True,
        get: Callable[[TraceRequest], object] | None = None,
        set_value: SetRequestValue | None = None,
        attributes: tuple[str, ...] = (),
    ) -> None:
        """Add a field to a form; without `get` and `set_value` it edits the `attributes`, by default `key`."""
        title, names = label.replace("&", "").lower(), attributes or (key,)
        self._request_fields[key] = _RequestField(
            field, form, title, get or attrgetter(*names), set_value or _attributes_setter(names), is_shown
        )
        form.add(label, field, hint=hint)
        field.edited.connect(lambda value: self._on_field_edited(key, value))

    def _on_field_edited(self, key: str, value: object) -> None:
        request_field = self._request_fields[key]
        if self._request is None:
            return
        try:
            changed = request_field.set_value(self._request, value)
        except (ValidationError, PlannerError) as error:
            problem = SpecError.from_validation(error) if isinstance(error, ValidationError) else error
            request_field.field.show_problem(problem.message)
            return
        if changed != self._request:
            self.set_request(changed)
            self.edited.emit(changed, request_field.title)

    def _add_section(self, title: str, form: LabelledForm, summary: Callable[[TraceRequest], str]) -> None:
        section = remembered_section(self._workspace, self._theme, title, form)
        self._column.addWidget(section)
        self._sections.append(_RequestSection(section, form, summary))

    def _device_summary_text(self, request: TraceRequest) -> str:
        device = option_title(device_options(request, self._workspace.evaluation.gpu), device_of(request))
        return device if self._is_of_script(request) else f"{device}; {parallel_text(request.parallel)}"


def _attributes_setter(names: tuple[str, ...]) -> SetRequestValue:
    """Return a function that sets one attribute to its value, or several to those of a tuple."""
    if len(names) == 1:
        return lambda request, value: request.evolve(**{names[0]: value})
    return lambda request, values: request.evolve(**dict(zip(names, cast("tuple[object, ...]", values), strict=True)))


def _number_setter(set_number: Callable[[TraceRequest, int | None], TraceRequest]) -> SetRequestValue:
    return lambda request, value: set_number(request, value if isinstance(value, int) else None)
