"""What to ask of a training run."""

from collections.abc import Callable
from typing import Final

from planner.gui.memory.questions import training_options as options
from planner.gui.memory.questions.list_field import ListField, words
from planner.gui.memory.questions.questions import Questions, length_field, new_form, token_stops
from planner.gui.memory.words import ATTENTION, CHECKPOINTING, TRAINING_COMPUTE, YES_OR_NO, words_of
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField, PickerField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace
from planner.models.architecture import Architecture
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.software.registry import SOFTWARE, trainers
from planner.workload.workload import Training, Workload

_BATCHES: Final = token_stops(1, 256)
_LONGEST: Final = 131_072
_RANKS: Final = token_stops(4, 256)
_CONDITIONS: Final[dict[str, Callable[[Training], bool]]] = {
    "trainable": lambda used: not used.adapts,
    "optimizer_step": lambda used: len(OPTIMIZERS[used.optimizer].steps) > 1,
    "gradient_accumulation": lambda used: used.parallel.pipeline == 1,
    "checkpoint_every": lambda used: used.activation_checkpointing == "full",
    "loss_chunks": lambda used: used.loss == "chunked",
}
"""When a question is asked that is not always: `used` is the workload with its defaults filled in."""


class TrainingQuestions(Questions):
    """Method, batch, sequence and optimizer first; the rest unfolds by method and software."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme, Training())
        self._asks_method = True
        self._ask_main()
        self._ask_precision()
        self._ask_adapters()
        self._ask_trained()
        self._ask_step()
        self._ask_checkpointing()
        self._ask_framework()

    def set_goal(self, goal: str) -> None:
        """Ask for no method where a network is trained from scratch: every parameter is."""
        self._asks_method = goal == "fine-tune"

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the workload, with the choices that its other answers leave."""
        asked, used = evaluation.plan.workload, evaluation.workload
        if isinstance(asked, Training) and isinstance(used, Training):
            self.offer("compute", options.compute_options(asked))
            self.offer("weights", options.weight_options(asked, used))
            self.offer("optimizer_step", options.step_options(asked, used))
            self.offer("activation_checkpointing", options.checkpointing_options(asked))
            self.offer("loss", options.loss_options(asked, used))
            self.offer("lora.dropout", options.dropout_options(asked.lora.dropout if asked.lora else 0.0))
        super().refresh(evaluation)

    def has_meaning(self, name: str, architecture: Architecture) -> bool:
        """Leave out what the method, the optimizer or the software does not have."""
        used = self.used
        if not isinstance(used, Training) or not super().has_meaning(name, architecture):
            return False
        if name.startswith("lora."):
            return used.adapts
        if name in ("method", "trainable") and not self._asks_method:
            return False
        return name not in _CONDITIONS or _CONDITIONS[name](used)

    def _ask_main(self) -> None:
        form = new_form(self.theme)
        self._ask_method(form)
        self._ask_batch(form)
        self.add_form(form)

    def _ask_method(self, form: LabelledForm) -> None:
        self.ask(
            form,
            "method",
            "Metho&d",
            ChoiceField(self.theme, options.METHODS),
            "Train every parameter, or small adapters beside a frozen network;\nQLoRA keeps that network in 4 bits.",
        )
        self.ask(
            form,
            "lora.rank",
            "&Rank",
            NumberField(1, 65_536, stops=_RANKS),
            "The width of the adapters. Their weights, gradients and states grow with it.",
        )
        self.ask(form, "lora.targets", "Tar&gets", self._targets(), "The layers that adapters are put beside.")

    def _ask_batch(self, form: LabelledForm) -> None:
        self.ask(
            form,
            "micro_batch",
            "Se&quences per step",
            NumberField(1, 1_000_000, stops=_BATCHES),
            "How many sequences each card works on at a time.\nActivations and logits grow with it.",
        )
        self.ask(
            form,
            "sequence_length",
            "Sequence &length",
            length_field(_LONGEST),
            "Tokens in each sequence.",
        )
        self.ask(
            form,
            "optimizer",
            "Optimi&zer",
            PickerField(self.theme, options.optimizer_choices, options.optimizer_words, "Search optimizers"),
            "Decides what is kept beside each parameter: AdamW two numbers, momentum one, SGD none.",
        )

    def _targets(self) -> PickerField:
        def choices() -> list[Choice]:
            return list(options.target_choices(self.workspace.evaluation.architecture))

        def typed(text: str) -> Choice | None:
            return options.typed_targets(text, self.workspace.evaluation.architecture)

        return PickerField(self.theme, choices, options.target_words, "Search layers, or type names with commas", typed)

    def _ask_precision(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "compute",
            "Computed in",
            ChoiceField(self.theme, TRAINING_COMPUTE),
            "The number format of the computation.\nAutocast keeps the parameters in FP32 and computes in 16 bits.",
        )
        self._ask_choice(form, "weights", "Parameters in", "The format that the parameters are kept in.")
        self.add_section("Precision", form, _precision_summary)

    def _ask_adapters(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "lora.adapter_dtype",
            "Adapters in",
            ChoiceField(self.theme, options.ADAPTER_FORMATS),
            "PEFT keeps adapters in FP32 unless it is told otherwise.",
        )
        self._ask_choice(form, "lora.dropout", "Dropout", "Its masks are kept for the backward pass.")
        self.ask(
            form,
            "lora.dora",
            "DoRA",
            ChoiceField(self.theme, YES_OR_NO),
            "Weight-decomposed adapters: a magnitude for each output, and products of whole weights on the way.",
        )
        self.add_section("Adapters", form, _adapters_summary)

    def _ask_trained(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "trainable",
            "Train only",
            ListField(words, "every parameter"),
            "Patterns of parameter names with commas between them, such as layers.31, *norm*; the rest is frozen.",
        )
        self.add_section("Frozen parts", form, _trained_summary)

    def _ask_step(self) -> None:
        form = new_form(self.theme)
        self._ask_choice(
            form,
            "optimizer_step",
            "Step",
            "All tensors at once needs temporary copies of them; fused kernels and a loop do not.",
        )
        self.ask(
            form,
            "gradient_clipping",
            "Clip gradients",
            ChoiceField(self.theme, YES_OR_NO),
            "Clipping by the norm takes temporary tensors.",
        )
        self.ask(
            form,
            "gradient_accumulation",
            "Accumulated steps",
            NumberField(1, 1_000_000),
            "Passes whose gradients are added up before the optimizer steps.\n"
            "With more than one, the gradients stay in memory during the next forward pass.",
        )
        self.add_section("Optimizer step", form, _step_summary)

    def _ask_checkpointing(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "activation_checkpointing",
            "Chec&kpoints",
            ChoiceField(self.theme, CHECKPOINTING),
            "Full keeps only each layer's input and computes the rest again in the backward pass:\n"
            "much less memory, about a third more time.",
        )
        self.ask(
            form,
            "checkpoint_every",
            "Every … layers",
            NumberField(1, 10_000),
            "Layers between two kept inputs: fewer inputs are kept, and more is computed again at once.",
        )
        self.add_section("Checkpointing", form, _checkpointing_summary)

    def _ask_framework(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "profile",
            "Software",
            ChoiceField(self.theme, tuple((name, one.title_for("training")) for name, one in trainers().items())),
            "What trains the model: each stores other things for the same network.",
        )
        self.ask(
            form,
            "attention",
            "Attention",
            ChoiceField(self.theme, ATTENTION),
            "Eager attention keeps a matrix of tokens × tokens for every head; the others do not.",
        )
        self._ask_choice(form, "loss", "Loss", "Full logits take tokens × vocabulary several times over.")
        self.ask(form, "loss_chunks", "Chunks", NumberField(1, 100_000), "Parts in which the loss is computed.")
        self.add_section("Framework", form, _framework_summary)

    def _ask_choice(self, form: LabelledForm, name: str, label: str, hint: str) -> None:
        """Ask for one of values that depend on other answers; `refresh` offers them."""
        self.ask(form, name, label, ChoiceField(self.theme, ((None, ""),)), hint)


def _precision_summary(workload: Workload) -> str:
    computed = words_of(TRAINING_COMPUTE, workload.compute)
    return f"{computed}, parameters in {options.format_words(workload.weights)}"


def _adapters_summary(workload: Workload) -> str:
    if not isinstance(workload, Training) or workload.lora is None:
        return ""
    lora = workload.lora
    dropout = f"dropout {fmt.percent(lora.dropout)}" if lora.dropout else "no dropout"
    return ", ".join((f"in {lora.adapter_dtype.upper()}", dropout, *(("DoRA",) if lora.dora else ())))


def _trained_summary(workload: Workload) -> str:
    patterns = workload.trainable if isinstance(workload, Training) else ()
    return f"all but {', '.join(patterns)}" if patterns else "none"


def _step_summary(workload: Workload) -> str:
    if not isinstance(workload, Training):
        return ""
    steps = workload.gradient_accumulation
    parts = [options.step_words(workload.optimizer_step)]
    parts += [f"{fmt.integer(steps)} accumulated"] if steps > 1 and workload.parallel.pipeline == 1 else []
    return ", ".join([*parts, "clipped"] if workload.gradient_clipping else parts)


def _checkpointing_summary(workload: Workload) -> str:
    if not isinstance(workload, Training):
        return ""
    if workload.checkpoint_every > 1:
        return f"full, every {fmt.integer(workload.checkpoint_every)} layers"
    return words_of(CHECKPOINTING, workload.activation_checkpointing).lower()


def _framework_summary(workload: Workload) -> str:
    if not isinstance(workload, Training):
        return ""
    software = SOFTWARE[workload.profile].in_short
    attention = words_of(ATTENTION, workload.attention).partition(" (")[0]
    return ", ".join((software, attention, words_of(options.LOSSES, workload.loss).lower()))
