"""What to ask of a training run."""

from typing import Final

from planner.gui.memory.questions import Questions, new_form, token_stops
from planner.gui.memory.words import (
    ATTENTION,
    CHECKPOINTING,
    OPTIMIZERS,
    TRAINING_COMPUTE,
    TRAINING_WEIGHTS,
    Options,
    words_of,
)
from planner.gui.theme import Theme
from planner.gui.widgets.choice_field import ChoiceField
from planner.gui.widgets.number_field import NumberField
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.workload.training import PARAMETER_FORMATS
from planner.workload.workload import Training, Workload

_BATCHES: Final = token_stops(1, 256)
_LENGTHS: Final = token_stops(128, 131_072)


class TrainingQuestions(Questions):
    """Batch, sequence, optimizer and precision first; the rest unfolds."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme, Training())
        self._weights = ChoiceField(theme, _weight_options(Training(), "fp32"))
        self._ask_main()
        self._ask_precision()
        self._ask_checkpointing()
        self._ask_attention()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the workload, and what the parameters are kept in if that is left open."""
        self._weights.set_options(_weight_options(evaluation.plan.workload, evaluation.workload.weights or ""))
        super().refresh(evaluation)

    def _ask_main(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "micro_batch",
            "&Sequences per step",
            NumberField(1, 1_000_000, stops=_BATCHES),
            "How many sequences each card works on at a time.\nActivations and logits grow with it.",
        )
        self.ask(
            form,
            "sequence_length",
            "Sequence &length",
            NumberField(1, 100_000_000, placeholder=fmt.UNKNOWN, stops=_LENGTHS),
            "Tokens in each sequence.",
        )
        self.ask(
            form,
            "optimizer",
            "&Optimizer",
            ChoiceField(self.theme, OPTIMIZERS),
            "Decides what is kept beside each parameter: AdamW two numbers, momentum one, SGD none.",
        )
        self.ask(
            form,
            "compute",
            "&Precision",
            ChoiceField(self.theme, TRAINING_COMPUTE),
            "The number format of the computation.\nAutocast keeps the parameters in FP32 and computes in 16 bits.",
        )
        self.add_form(form)

    def _ask_precision(self) -> None:
        form = new_form(self.theme)
        self.ask(form, "weights", "Para&meters in", self._weights, "The format that the parameters are kept in.")
        self.add_section("Parameters", form, _weights_summary)

    def _ask_checkpointing(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "activation_checkpointing",
            "&Checkpointing",
            ChoiceField(self.theme, CHECKPOINTING),
            "Full keeps only each layer's input and computes the rest again in the backward pass:\n"
            "much less memory, about a third more time.",
        )
        self.ask(
            form,
            "gradient_accumulation",
            "Accumulated steps",
            NumberField(1, 1_000_000),
            "Passes whose gradients are added up before the optimizer steps.\n"
            "With more than one, the gradients stay in memory during the next forward pass.",
        )
        self.add_section("Checkpointing", form, _checkpointing_summary)

    def _ask_attention(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "attention",
            "&Attention",
            ChoiceField(self.theme, ATTENTION),
            "Eager attention keeps a matrix of tokens × tokens for every head; the others do not.",
        )
        self.add_section("Attention", form, lambda workload: words_of(ATTENTION, workload.attention))


def _weight_options(workload: Workload, implied: str) -> Options:
    usual = TRAINING_WEIGHTS.get(implied, implied)
    formats = PARAMETER_FORMATS[workload.compute] if isinstance(workload, Training) else ()
    return ((None, f"As usual ({usual})"), *((name, TRAINING_WEIGHTS[name]) for name in formats))


def _weights_summary(workload: Workload) -> str:
    return f"in {TRAINING_WEIGHTS.get(workload.weights or '', fmt.UNKNOWN)}"


def _checkpointing_summary(workload: Workload) -> str:
    if not isinstance(workload, Training):
        return ""
    words = words_of(CHECKPOINTING, workload.activation_checkpointing).lower()
    steps = workload.gradient_accumulation
    return words if steps == 1 else f"{words}; {fmt.integer(steps)} steps accumulated"
