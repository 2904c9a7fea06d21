"""Form for the settings of a traced run, used in the dialog and in the left column of the Memory tab."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from pydantic import ValidationError
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.memory.questions.questions import new_form, remembered_section
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField, RadioField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.plan.trace_request import operator_fields
from planner.present.plan.settings import setting_title
from planner.trace.request import (
    Argument,
    TraceParallel,
    TraceRequest,
    has_sequence,
    request_batch,
    request_sequence_length,
    with_batch,
    with_sequence_length,
)
from planner.workload.presentation import doubling

Optimizer = tuple[str, tuple[Argument, ...]]
Precision = tuple[str | None, str | None]
Device = tuple[str, str | None]
Options = tuple[tuple[object, str], ...]
"""Values of a choice with their titles."""
TASKS: Final[Options] = (("training", "Train"), ("inference", "Run"))
ZERO_GRAD: Final[Options] = (
    ("after-step", "Freed after the step"),
    ("before-backward", "Freed before the next backward"),
    ("zeros", "Kept and set to zero"),
)
CHECKPOINTING: Final[Options] = (
    ("none", "None"),
    ("selective", "Selective, by operators"),
    ("full", "Full, where the module supports it"),
)
STRATEGIES: Final[Options] = (("ddp", "DDP (whole copies)"), ("fsdp", "FSDP2 (sharded)"))
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
Put = Callable[[TraceRequest, object], TraceRequest]
_BATCHES: Final = doubling(1, 1024)
_LENGTHS: Final = doubling(128, 131_072)
_SIZES: Final = ("batch", "sequence")
_AS_GIVEN: Final = "from its inputs"


def option_title(options: Options, value: object) -> str:
    """Return the title of `value` among `options`."""
    return next(title for known, title in options if known == value)


def optimizer_of(request: TraceRequest) -> Optimizer:
    """Return the optimizer with its arguments."""
    return request.optimizer, request.optimizer_arguments


def with_optimizer(request: TraceRequest, value: object) -> TraceRequest:
    """Return the request with another optimizer."""
    name, arguments = value if isinstance(value, tuple) else (value, ())
    return request.evolve(optimizer=name, optimizer_arguments=arguments)


def optimizer_options(request: TraceRequest) -> Options:
    """Return the optimizers to choose from, including the request's own."""
    return _with(_OPTIMIZERS, optimizer_of(request), optimizer_call(request))


def optimizer_call(request: TraceRequest) -> str:
    """Return the optimizer as Python code: `SGD(momentum=0.9)`."""
    named = ", ".join(f"{argument.name}={argument.value}" for argument in request.optimizer_arguments)
    return f"{request.optimizer}({named})" if named else request.optimizer


def precision_of(request: TraceRequest) -> Precision:
    """Return the parameter and the autocast format."""
    return request.dtype, request.autocast


def with_precision(request: TraceRequest, value: object) -> TraceRequest:
    """Return the request with other parameter and autocast formats."""
    dtype, autocast = value if isinstance(value, tuple) else (value, None)
    return request.evolve(dtype=dtype, autocast=autocast)


def precision_options(request: TraceRequest) -> Options:
    """Return the formats to choose from, including the request's own."""
    dtype, autocast = precision_of(request)
    own = f"{(dtype or '').upper()} parameters, {(autocast or '').upper()} autocast"
    return _with(_PRECISIONS, (dtype, autocast), own)


def device_of(request: TraceRequest) -> Device:
    """Return the device whose operators are assumed, with its compute capability."""
    return request.device, request.compute_capability


def with_device(request: TraceRequest, value: object) -> TraceRequest:
    """Return the request with another device's operators."""
    device, capability = value if isinstance(value, tuple) else (value, None)
    return request.evolve(device=device, compute_capability=capability)


def device_options(request: TraceRequest, capability: str | None) -> Options:
    """Return the devices to choose from; `capability` is that of the plan's card, None if it is not by NVIDIA."""
    card: Options = () if capability is None else ((("cuda", capability), f"CUDA {capability}, this card"),)
    options = (*card, (("cuda", None), "CUDA, any card"), (("cpu", None), "CPU, as on this computer"))
    return _with(options, device_of(request), f"CUDA {request.compute_capability}")


def strategy_of(request: TraceRequest) -> str:
    """Return the strategy for several ranks."""
    return "ddp" if request.parallel.strategy == "none" else request.parallel.strategy


def with_ranks(request: TraceRequest, ranks: object) -> TraceRequest:
    """Return the request with a number of ranks; a single rank has no strategy."""
    strategy = "none" if ranks == 1 else strategy_of(request)
    return request.evolve(parallel=request.parallel.evolve(ranks=ranks, strategy=strategy))


def with_strategy(request: TraceRequest, strategy: object) -> TraceRequest:
    """Return the request with another strategy; a single rank has none."""
    return (
        request if request.parallel.ranks == 1 else request.evolve(parallel=request.parallel.evolve(strategy=strategy))
    )


def parallel_words(parallel: TraceParallel) -> str:
    """Return a summary of the ranks: `one rank` or `FSDP on 8 ranks`."""
    return "one rank" if parallel.ranks == 1 else f"{parallel.strategy.upper()} on {parallel.ranks:,} ranks"


def gradients_words(request: TraceRequest) -> str:
    """Return a summary of the settings that decide the lifetime of gradients and activations."""
    lifetime = option_title(ZERO_GRAD, request.zero_grad).lower()
    checkpointing = {"none": "", "selective": ", selective checkpointing", "full": ", checkpointing"}
    steps = f", {request.gradient_accumulation:,} accumulation steps" if request.gradient_accumulation > 1 else ""
    return f"{lifetime}{checkpointing[request.checkpointing]}{steps}"


def _with(options: Options, own: object, words: str) -> Options:
    return options if any(value == own for value, _ in options) else (*options, (own, words))


def _training(request: TraceRequest) -> bool:
    return request.task == "training"


def _optimizes(request: TraceRequest) -> bool:
    return _training(request) and request.step is None


def _generates(request: TraceRequest) -> bool:
    return not _training(request) and request.target.kind == "config"


def _on_several(request: TraceRequest) -> bool:
    return request.parallel.ranks > 1


def _always(_request: TraceRequest) -> bool:
    return True


def _ranks_of(request: TraceRequest) -> int:
    return request.parallel.ranks


@dataclass(frozen=True, slots=True)
class _Question:
    field: Field
    form: LabelledForm
    words: str
    get: Callable[[TraceRequest], object]
    put: Put
    shown: Callable[[TraceRequest], bool]


@dataclass(frozen=True, slots=True)
class _Heading:
    section: Section
    summary: Callable[[TraceRequest], str]
    shown: Callable[[TraceRequest], bool]


class RequestForm(QWidget):
    """Form for the run settings; `edited` carries the changed request and the name of the changed setting."""

    edited = Signal(object, str)

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self._request: TraceRequest | None = None
        self._shown: tuple[TraceRequest, str | None] | None = None
        self._sizes_shown = True
        self._questions: dict[str, _Question] = {}
        self._headings: list[_Heading] = []
        self._optimizer = ChoiceField(theme, ())
        self._precision = ChoiceField(theme, ())
        self._device = ChoiceField(theme, ())
        self._column = in_column(owner=self, spacing=theme.spacing.small)
        self._ask_main()
        self._ask_memory()
        self._ask_device()

    @property
    def request(self) -> TraceRequest | None:
        """Return the shown request."""
        return self._request

    def field(self, key: str) -> Field:
        """Return the input of a question."""
        return self._questions[key].field

    def show_sizes(self, shown: bool) -> None:
        """Show or hide batch and sequence length, which explicit input shapes replace."""
        self._sizes_shown = shown
        for key in _SIZES:
            question = self._questions[key]
            visible = shown and self._request is not None and question.shown(self._request)
            question.form.set_row_visible(question.field, visible)

    def set_request(self, request: TraceRequest) -> None:
        """Show `request` without emitting `edited`."""
        capability = self._capability()
        if (request, capability) == self._shown:
            return  # keep text being typed, and an open list
        self._request, self._shown = request, (request, capability)
        self._optimizer.set_options(optimizer_options(request))
        self._precision.set_options(precision_options(request))
        self._device.set_options(device_options(request, capability))
        for question in self._questions.values():
            question.field.set_value(question.get(request))
            question.form.set_row_visible(question.field, question.shown(request))
        self.show_sizes(self._sizes_shown)
        for heading in self._headings:
            heading.section.set_summary(heading.summary(request))
            heading.section.setVisible(heading.shown(request))

    def _capability(self) -> str | None:
        value = operator_fields(self._workspace.evaluation.gpu)["compute_capability"]
        return None if value is None else str(value)

    def _ask_main(self) -> None:
        form, theme = new_form(self._theme), self._theme
        self._add_field(form, "task", "I want &to", RadioField(theme, TASKS))
        batch = NumberField(1, 1_000_000, placeholder=_AS_GIVEN, stops=_BATCHES)
        hint = "Samples per forward pass."
        self._add_field(form, "batch", "B&atch", batch, hint, get=request_batch, put=_put_batch)
        length = NumberField(1, 100_000_000, placeholder="the model's default", stops=_LENGTHS)
        hint = "Tokens per sequence; for inference, those of the prompt."
        self._add_field(
            form, "sequence", "Sequence &length", length, hint, has_sequence, request_sequence_length, _put_sequence
        )
        hint = "Tokens generated one by one with the KV cache."
        self._add_field(form, "decode_tokens", "Generate&d tokens", NumberField(0, 100_000), hint, _generates)
        hint = "The class in torch.optim."
        self._add_field(
            form, "optimizer", "Optimi&zer", self._optimizer, hint, _optimizes, optimizer_of, with_optimizer
        )
        hint = "Autocast keeps the parameters and computes in 16 bits;\nthroughout also casts the parameters."
        self._add_field(form, "precision", "P&recision", self._precision, hint, get=precision_of, put=with_precision)
        self._column.addWidget(form)

    def _ask_memory(self) -> None:
        form, theme = new_form(self._theme), self._theme
        hint = "Full keeps only each layer's input and recomputes the rest in the backward pass."
        self._add_field(form, "checkpointing", "Checkpointing", ChoiceField(theme, CHECKPOINTING), hint, _training)
        title = setting_title("gradient_accumulation")
        hint = "Backward passes whose gradients are summed before an optimizer step."
        self._add_field(form, "gradient_accumulation", title, NumberField(1, 10_000), hint, _optimizes)
        hint = "When the gradients of a step are freed."
        self._add_field(form, "zero_grad", "Gra&dients", ChoiceField(theme, ZERO_GRAD), hint, _optimizes)
        self._add_section("Gradients", form, gradients_words, _training)

    def _ask_device(self) -> None:
        form, theme = new_form(self._theme), self._theme
        hint = "CUDA uses other operators than the CPU, and they depend on the card."
        self._add_field(form, "device", "Device", self._device, hint, get=device_of, put=with_device)
        hint = "Processes that share the work. One of them is traced; none is launched."
        self._add_field(form, "ranks", "Ran&ks", NumberField(1, 100_000), hint, get=_ranks_of, put=with_ranks)
        strategies = ChoiceField(theme, STRATEGIES)
        hint = "DDP keeps a full copy of the model on each rank; FSDP2 shards it."
        self._add_field(form, "strategy", "&Strategy", strategies, hint, _on_several, strategy_of, with_strategy)
        self._add_section("Device and ranks", form, self._device_summary)

    def _add_field(
        self,
        form: LabelledForm,
        key: str,
        label: str,
        field: Field,
        hint: str = "",
        shown: Callable[[TraceRequest], bool] = _always,
        get: Callable[[TraceRequest], object] | None = None,
        put: Put | None = None,
    ) -> None:
        """Add a field to a form; without `get` and `put` it edits the request's attribute `key`."""
        words = label.replace("&", "").lower()
        self._questions[key] = _Question(field, form, words, get or attrgetter(key), put or _put(key), shown)
        form.add(label, field, hint=hint)
        field.edited.connect(lambda value: self._on_edited(key, value))

    def _on_edited(self, key: str, value: object) -> None:
        question = self._questions[key]
        if self._request is None:
            return
        try:
            changed = question.put(self._request, value)
        except (ValidationError, PlannerError) as error:
            problem = SpecError.from_validation(error) if isinstance(error, ValidationError) else error
            question.field.show_problem(problem.message)
            return
        if changed != self._request:
            self.set_request(changed)
            self.edited.emit(changed, question.words)

    def _add_section(
        self,
        title: str,
        form: LabelledForm,
        summary: Callable[[TraceRequest], str],
        shown: Callable[[TraceRequest], bool] = _always,
    ) -> None:
        section = remembered_section(self._workspace, self._theme, title, form)
        self._column.addWidget(section)
        self._headings.append(_Heading(section, summary, shown))

    def _device_summary(self, request: TraceRequest) -> str:
        device = option_title(device_options(request, self._capability()), device_of(request))
        return f"{device}; {parallel_words(request.parallel)}"


def _put(name: str) -> Put:
    return lambda request, value: request.evolve(**{name: value})


def _put_batch(request: TraceRequest, value: object) -> TraceRequest:
    return with_batch(request, value if isinstance(value, int) else None)


def _put_sequence(request: TraceRequest, value: object) -> TraceRequest:
    return with_sequence_length(request, value if isinstance(value, int) else None)
