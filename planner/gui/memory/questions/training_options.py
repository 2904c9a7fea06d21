"""What can be chosen of a training run, as its other answers allow."""

from collections.abc import Sequence
from typing import Final

from pydantic import ValidationError

from planner.gui.memory.words import CHECKPOINTING, TRAINING_COMPUTE, Options
from planner.gui.widgets.search_list import Choice
from planner.memory.training.adapters.trained import is_linear
from planner.models.architecture import Architecture
from planner.present import format as fmt
from planner.present.plan.workload import METHOD_TITLES
from planner.workload.optimizers import OPTIMIZERS, Library, OptimizerStep
from planner.workload.software.registry import trainer
from planner.workload.training import Training, formats_for

METHODS: Final[Options] = (
    ("full", "Every parameter"),
    ("lora", METHOD_TITLES["lora"]),
    ("qlora", f"{METHOD_TITLES['qlora']} (4 bits)"),
)
ADAPTER_FORMATS: Final[Options] = (("fp32", "FP32"), ("bf16", "BF16"))
LOSSES: Final[Options] = (
    ("full-logits", "Full logits"),
    ("chunked", "In chunks"),
    ("fused-linear", "Fused with the head"),
)
ALL_LINEAR: Final = "all-linear"
_ALL_WORDS: Final = "All linear layers"
_FORMAT_WORDS: Final = {
    "fp32": "FP32",
    "bf16": "BF16",
    "fp16": "FP16",
    "int8": "INT8 (LLM.int8)",
    "nf4": "NF4",
    "nf4-dq": "NF4, double quantised",
}
_STEP_WORDS: Final[dict[OptimizerStep, str]] = {
    "fused": "Fused",
    "foreach": "All tensors at once",
    "loop": "One tensor at a time",
}
_LIBRARY_WORDS: Final[dict[Library, str]] = {"torch": "PyTorch"}
_DROPOUTS: Final = (0.0, 0.05, 0.1)
# The usual choices, where the network has layers of these names.
_USUAL_TARGETS: Final = (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "o_proj"))


def format_words(name: str | None) -> str:
    """Return what a format of parameters is called."""
    return fmt.UNKNOWN if name is None else _FORMAT_WORDS.get(name, name)


def compute_options(workload: Training) -> Options:
    """Return the ways to compute with the parameters that the method has."""
    if workload.method != "qlora":
        return TRAINING_COMPUTE
    quantised = trainer(workload.profile).quantised_compute
    return tuple(option for option in TRAINING_COMPUTE if option[0] in quantised)


def weight_options(asked: Training, used: Training) -> Options:
    """Return the formats of parameters that go with method and arithmetic, the usual one first."""
    usual = f"As usual ({format_words(used.weights)})" if asked.weights is None else "As usual"
    formats = formats_for(asked.method, asked.compute, asked.profile)
    return ((None, usual), *((name, format_words(name)) for name in formats))


def step_options(asked: Training, used: Training) -> Options:
    """Return the ways in which the optimizer steps."""
    usual = "As usual" if used.optimizer_step is None else f"As usual ({_STEP_WORDS[used.optimizer_step].lower()})"
    steps = OPTIMIZERS[asked.optimizer].steps
    return (
        (None, usual if asked.optimizer_step is None else "As usual"),
        *((step, _STEP_WORDS[step]) for step in steps),
    )


def step_words(step: OptimizerStep | None) -> str:
    """Return what a way to step is called."""
    return fmt.UNKNOWN if step is None else _STEP_WORDS[step].lower()


def loss_options(asked: Training, used: Training) -> Options:
    """Return the ways to compute the loss, that of the profile first."""
    words = dict(LOSSES)
    usual = f"As usual ({words[used.loss].lower()})" if asked.loss is None and used.loss else "As usual"
    return ((None, usual), *LOSSES)


def checkpointing_options(workload: Training) -> Options:
    """Return the kinds of checkpoints that go with the rest."""
    return tuple(option for option in CHECKPOINTING if _goes(workload, option[0]))


def _goes(workload: Training, checkpointing: object) -> bool:
    try:
        workload.evolve(activation_checkpointing=checkpointing, checkpoint_every=1)
    except ValidationError:
        return False
    return True


def dropout_options(chosen: float) -> Options:
    """Return the shares of values to drop, with the one that was chosen elsewhere."""
    return tuple((value, fmt.percent(value) if value else "None") for value in sorted({*_DROPOUTS, chosen}))


def optimizer_words(value: object) -> str:
    """Return the title of an optimizer as it stands alone: `Paged AdamW 8-bit`."""
    title = next(kind.title for name, kind in OPTIMIZERS.items() if name == value)
    return f"{title[0].upper()}{title[1:]}"


def optimizer_choices() -> Sequence[Choice]:
    """Return every optimizer with the library that it is of, those of a library together."""
    libraries = list(dict.fromkeys(kind.library for kind in OPTIMIZERS.values()))
    grouped = sorted(OPTIMIZERS.items(), key=lambda item: libraries.index(item[1].library))
    return [
        Choice(
            name, optimizer_words(name), _LIBRARY_WORDS.get(kind.library, kind.library), words=f"{name} {kind.library}"
        )
        for name, kind in grouped
    ]


def target_choices(architecture: Architecture | None) -> Sequence[Choice]:
    """Return the layers that adapters are usually put beside, and each by its name."""
    names = linear_names(architecture)
    usual = [targets for targets in _USUAL_TARGETS if set(targets) <= set(names)]
    return [
        Choice(ALL_LINEAR, _ALL_WORDS, ", ".join(names)),
        *(Choice(targets, target_words(targets), "attention") for targets in usual),
        *(Choice((name,), name) for name in names),
    ]


def typed_targets(text: str, architecture: Architecture | None) -> Choice | None:
    """Return the layers that were typed, with commas between their names."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    known = set(linear_names(architecture))
    if len(names) < 2 or not set(names) <= known:
        return None
    return Choice(names, target_words(names), "these layers")


def target_words(value: object) -> str:
    """Return `All linear layers`, or the names."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else _ALL_WORDS


def linear_names(architecture: Architecture | None) -> tuple[str, ...]:
    """Return the last parts of the names of all linear layers inside the network."""
    if architecture is None:
        return ()
    layers = (group.layer for stack in architecture.stacks for group in stack.groups)
    tensors = (tensor for layer in layers for tensor in layer.tensors if is_linear(tensor))
    return tuple(dict.fromkeys(tensor.name.removesuffix(".weight").rpartition(".")[2] for tensor in tensors))
