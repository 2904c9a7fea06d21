"""The questions about a traced run: the same in the dialog and beside the result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.memory.questions.questions import new_form, remembered_section
from planner.gui.memory.trace import run_words
from planner.gui.memory.words import TASKS, words_of
from planner.gui.theme import Theme
from planner.gui.widgets.choice_field import ChoiceField
from planner.gui.widgets.field import Field
from planner.gui.widgets.labelled_form import LabelledForm
from planner.gui.widgets.number_field import NumberField
from planner.gui.widgets.radio_field import RadioField
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.plan.trace_request import operators_of
from planner.present.plan.settings import setting_title
from planner.trace.request import TraceRequest
from planner.trace.sizes import batch_of, has_sequence, sequence_of, with_batch, with_sequence
from planner.workload.option import doubling

Put = Callable[[TraceRequest, object], TraceRequest]
_BATCHES: Final = doubling(1, 1024)
_LENGTHS: Final = doubling(128, 131_072)
_SIZES: Final = ("batch", "sequence")
_AS_GIVEN: Final = "as its inputs are"


def _training(request: TraceRequest) -> bool:
    return request.task == "training"


def _optimizes(request: TraceRequest) -> bool:
    return _training(request) and request.step is None


def _answers(request: TraceRequest) -> bool:
    return not _training(request) and request.target.kind == "config"


def _always(_request: TraceRequest) -> bool:
    return True


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
    """Asks about how the module is run. `edited` carries the changed request, and what was changed in a word."""

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
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.small)
        self._ask_main()
        self._ask_memory()
        self._ask_device()

    @property
    def request(self) -> TraceRequest | None:
        """Return the request that is shown."""
        return self._request

    def field(self, key: str) -> Field:
        """Return the input of a question."""
        return self._questions[key].field

    def show_sizes(self, shown: bool) -> None:
        """Ask for the batch and the sequence length, or leave them to the shapes of inputs that are asked elsewhere."""
        self._sizes_shown = shown
        for key in _SIZES:
            question = self._questions[key]
            visible = shown and self._request is not None and question.shown(self._request)
            question.form.set_row_visible(question.field, visible)

    def set_request(self, request: TraceRequest) -> None:
        """Show `request` without telling anyone that it was edited."""
        capability = self._capability()
        if (request, capability) == self._shown:
            return  # what is half typed, and an open list, stay
        self._request, self._shown = request, (request, capability)
        self._optimizer.set_options(run_words.optimizer_options(request))
        self._precision.set_options(run_words.precision_options(request))
        self._device.set_options(run_words.device_options(request, capability))
        for question in self._questions.values():
            question.field.set_value(question.get(request))
            question.form.set_row_visible(question.field, question.shown(request))
        self.show_sizes(self._sizes_shown)
        for heading in self._headings:
            heading.section.set_summary(heading.summary(request))
            heading.section.setVisible(heading.shown(request))

    def _capability(self) -> str | None:
        value = operators_of(self._workspace.evaluation.gpu)["compute_capability"]
        return None if value is None else str(value)

    def _ask_main(self) -> None:
        form = new_form(self._theme)
        self._ask(form, "task", "I want &to", RadioField(self._theme, TASKS), lambda r: r.task, _put("task"))
        self._ask(
            form,
            "batch",
            "B&atch",
            NumberField(1, 1_000_000, placeholder=_AS_GIVEN, stops=_BATCHES),
            batch_of,
            lambda request, value: with_batch(request, _whole(value)),
            hint="How many samples the module works on at a time.",
        )
        self._ask(
            form,
            "sequence",
            "Sequence &length",
            NumberField(1, 100_000_000, placeholder="as the model allows", stops=_LENGTHS),
            sequence_of,
            lambda request, value: with_sequence(request, _whole(value)),
            has_sequence,
            "Tokens in each sequence; when answering, those of the prompt.",
        )
        self._ask(
            form,
            "decode",
            "Tokens answere&d",
            NumberField(0, 100_000),
            lambda request: request.decode_tokens,
            _put("decode_tokens"),
            _answers,
            "Tokens that are answered one by one, with the cache.",
        )
        self._ask(
            form,
            "optimizer",
            "Optimi&zer",
            self._optimizer,
            run_words.optimizer_of,
            run_words.with_optimizer,
            _optimizes,
            "A class of torch.optim.",
        )
        self._ask(
            form,
            "precision",
            "P&recision",
            self._precision,
            run_words.precision_of,
            run_words.with_precision,
            hint="Autocast keeps the parameters and computes in 16 bits;\nthroughout casts the parameters as well.",
        )
        self._column.addWidget(form)

    def _ask_memory(self) -> None:
        form = new_form(self._theme)
        self._ask(
            form,
            "checkpointing",
            "Checkpointing",
            ChoiceField(self._theme, run_words.CHECKPOINTING),
            lambda request: request.checkpointing,
            _put("checkpointing"),
            _training,
            "Full keeps only each layer's input and computes the rest again in the backward pass.",
        )
        self._ask(
            form,
            "accumulation",
            setting_title("gradient_accumulation"),
            NumberField(1, 10_000),
            lambda request: request.gradient_accumulation,
            _put("gradient_accumulation"),
            _optimizes,
            "Passes whose gradients are added up before the optimizer steps.",
        )
        self._ask(
            form,
            "zero_grad",
            "Gra&dients are",
            ChoiceField(self._theme, run_words.ZERO_GRAD),
            lambda request: request.zero_grad,
            _put("zero_grad"),
            _optimizes,
            "When the gradients of a step are let go.",
        )
        self._add_section("Gradients", form, run_words.gradients_words, _training)

    def _ask_device(self) -> None:
        form = new_form(self._theme)
        self._ask(
            form,
            "device",
            "Operators of",
            self._device,
            run_words.device_of,
            run_words.with_device,
            hint="A CUDA build of PyTorch uses other operators than the CPU, and these depend on the card.",
        )
        self._ask(
            form,
            "ranks",
            "Ran&ks",
            NumberField(1, 100_000),
            lambda request: request.parallel.ranks,
            run_words.with_ranks,
            hint="Processes that share the work; one of them is traced and nothing is launched.",
        )
        self._ask(
            form,
            "strategy",
            "&Strategy",
            ChoiceField(self._theme, run_words.STRATEGIES),
            run_words.strategy_of,
            run_words.with_strategy,
            lambda request: request.parallel.ranks > 1,
            "DDP keeps a whole copy on each rank; FSDP2 shards it.",
        )
        self._add_section("Device and ranks", form, self._device_summary)

    def _ask(
        self,
        form: LabelledForm,
        key: str,
        label: str,
        field: Field,
        get: Callable[[TraceRequest], object],
        put: Put,
        shown: Callable[[TraceRequest], bool] = _always,
        hint: str = "",
    ) -> None:
        self._questions[key] = _Question(field, form, label.replace("&", "").lower(), get, put, shown)
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
        device = words_of(run_words.device_options(request, self._capability()), run_words.device_of(request))
        return f"{device}; {run_words.parallel_words(request.parallel)}"


def _put(name: str) -> Put:
    return lambda request, value: request.evolve(**{name: value})


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
