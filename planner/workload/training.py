"""How a model is trained, with the choices that decide its memory."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.base import Spec
from planner.workload.choices import (
    ATTENTION_TITLES,
    CHECKPOINTING_TITLES,
    COMPUTE_TITLES,
    LOSS_TITLES,
    METHOD_TITLES,
    WEIGHT_FORMAT_TITLES,
    Attention,
    Checkpointing,
    Compute,
    Loss,
    Method,
    TrainedFormat,
)
from planner.workload.diffusion import ImageSizeField
from planner.workload.optimizers import (
    OPTIMIZERS,
    Optimizer,
    OptimizerStep,
    optimizer_library,
    optimizer_step_titles,
    optimizer_titles,
)
from planner.workload.option import Presentation, doubling
from planner.workload.parallel import OtherProcesses, Parallel, UnequalCards
from planner.workload.rules import TRAINING_RULES
from planner.workload.software.registry import DEFAULT, SOFTWARE, TRAINERS, TrainerName


class Lora(Spec):
    """Low-rank adapters beside linear layers; everything else is frozen."""

    rank: Annotated[
        int,
        Field(ge=1, le=65_536, title="LoRA rank", description="rank of the adapters"),
        Presentation(
            "--lora-rank",
            "main",
            explanation="Their weights, gradients and states grow with it.",
            stops=doubling(4, 256),
            mnemonic="r",
        ),
    ] = 16
    targets: Annotated[
        Literal["all-linear"] | tuple[str, ...],
        Field(
            title="Target modules",
            description="layers with adapters: all-linear (all but the output head), or such as q_proj,v_proj",
        ),
        Presentation("--lora-targets", "main", metavar="NAMES", mnemonic="g"),
    ] = "all-linear"
    adapter_dtype: Annotated[
        Literal["fp32", "bf16"],
        Field(title="Adapter format", description="format of the adapters; PEFT keeps them in fp32 on 16 bits, too"),
        Presentation(
            group="adapters",
            choices={"fp32": "FP32", "bf16": "BF16"},
        ),
    ] = "fp32"
    dropout: Annotated[
        float,
        Field(ge=0, lt=1, title="LoRA dropout", description="share of the adapters' inputs that is dropped"),
        Presentation(
            group="adapters",
            explanation="Its masks are kept for the backward pass.",
            stops=(0.0, 0.05, 0.1),
        ),
    ] = 0.0
    dora: Annotated[
        bool,
        Field(title="DoRA", description="weight-decomposed adapters, with a magnitude for each output"),
        Presentation(
            group="adapters",
            explanation="Products of whole weights are kept on the way.",
        ),
    ] = False

    @field_validator("targets", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        """Take names with commas between them, as on the command line, and `all-linear` in a list."""
        if isinstance(value, str) and value != "all-linear":
            value = tuple(part.strip() for part in value.split(",") if part.strip())
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError("name at least one linear layer, or all-linear")
            if "all-linear" in value:
                return "all-linear"
        return value


class Training(Spec):
    """One optimizer step: of every parameter, of those that `trainable` names, or of adapters.

    Fields that are `None` are filled in by `with_defaults` from the model.
    """

    task: Literal["training"] = "training"
    method: Annotated[
        Method,
        Field(title="Method", description="full, lora or qlora: what is trained"),
        Presentation(
            "--method",
            "main",
            explanation="Every parameter, or adapters beside a frozen network;\nQLoRA keeps that network in 4 bits.",
            choices=METHOD_TITLES,
            mnemonic="d",
            asked_when=lambda now: not now.from_scratch,
        ),
    ] = "full"
    weights: Annotated[
        TrainedFormat | None,
        Field(title="Weight format", description="fp32, bf16 or fp16; under adapters int8, nf4 or nf4-dq, too"),
        Presentation(
            "--weights",
            "precision",
            default="fp32 under autocast, else as computed; adapters: 16 bits, or nf4",
            choices=WEIGHT_FORMAT_TITLES,
            brief="Weights in {}",
        ),
    ] = None
    compute: Annotated[
        Compute,
        Field(title="Compute precision", description="fp32, tf32, bf16, fp16, amp-bf16, amp-fp16 or fp8"),
        Presentation(
            "--compute",
            "precision",
            explanation="Autocast (amp-…) keeps trained parameters in fp32 and computes in 16 bits;\n"
            "fp8 takes the place of linear layers, by torchao.",
            choices=COMPUTE_TITLES,
        ),
    ] = "amp-bf16"
    lora: Annotated[
        Lora | None,
        Field(description="of the methods lora and qlora"),
        Presentation(asked_when=lambda now: now.used.adapts),
    ] = None
    trainable: Annotated[
        tuple[str, ...],
        Field(
            title="Trainable parameters",
            description="patterns of parameter names that are trained, such as layers.31 or *norm*",
        ),
        Presentation(
            group="trained",
            default="all",
            explanation="Several with commas between them; the rest is frozen.",
            placeholder="every parameter",
            brief="{}",
            asked_when=lambda now: not now.used.adapts and not now.from_scratch,
        ),
    ] = ()
    optimizer: Annotated[
        Optimizer,
        Field(title="Optimizer", description="adamw, adamw-8bit, adafactor, lion, muon, sgd, …"),
        Presentation(
            "--optimizer",
            "main",
            explanation="Decides what is kept beside each parameter: AdamW two numbers, momentum one, SGD none.",
            choices=optimizer_titles(),
            details=optimizer_library,
            mnemonic="z",
        ),
    ] = "adamw"
    optimizer_step: Annotated[
        OptimizerStep | None,
        Field(title="Optimizer step", description="fused, foreach (all tensors at once) or loop"),
        Presentation(
            group="step",
            default="as the optimizer's library does",
            explanation="All tensors at once needs temporary copies of them; fused kernels and a loop do not.",
            choices=optimizer_step_titles(),
            asked_when=lambda now: len(OPTIMIZERS[now.used.optimizer].steps) > 1,
        ),
    ] = None
    gradient_clipping: Annotated[
        bool,
        Field(title="Gradient clipping", description="whether gradients are clipped by their norm"),
        Presentation(group="step", explanation="It takes temporary tensors."),
    ] = False
    micro_batch: Annotated[
        int,
        Field(ge=1, le=1_000_000, title="Micro-batch size", description="sequences per GPU and forward pass"),
        Presentation(
            "--micro-batch",
            "main",
            explanation="Activations and logits grow with it.",
            stops=doubling(1, 256),
            mnemonic="b",
        ),
    ] = 1
    gradient_accumulation: Annotated[
        int,
        Field(ge=1, le=1_000_000, title="Gradient accumulation", description="forward passes per optimizer step"),
        Presentation(
            "--accumulate",
            "step",
            explanation="With more than one, the gradients stay in memory during the next forward pass.\n"
            "In a pipeline they are the micro-batches: as many are on their way at once as there are stages.",
            brief="{} accumulated",
        ),
    ] = 1
    image_size: ImageSizeField = None
    sequence_length: Annotated[
        int | None,
        Field(ge=1, le=100_000_000, title="Sequence length", description="tokens in each sequence"),
        Presentation(
            "--seq",
            "main",
            default="2,048, or the model's maximum",
            unit="tokens",
            stops=doubling(128, 131_072),
            mnemonic="l",
            asked_when=lambda now: now.takes_lengths,
        ),
    ] = None
    activation_checkpointing: Annotated[
        Checkpointing,
        Field(title="Checkpointing", description="none, selective, or full: keep layer inputs only"),
        Presentation(
            "--checkpointing",
            "checkpointing",
            explanation="Full keeps only each layer's input and computes the rest again in the backward pass:\n"
            "much less memory, about a third more time.",
            choices=CHECKPOINTING_TITLES,
            mnemonic="k",
        ),
    ] = "none"
    checkpoint_every: Annotated[
        int,
        Field(ge=1, le=10_000, title="Checkpoint every", description="layers between two kept inputs"),
        Presentation(
            group="checkpointing",
            explanation="With more, fewer inputs are kept, and more is computed again at once.",
            brief="every {} layers",
            asked_when=lambda now: now.used.activation_checkpointing == "full",
        ),
    ] = 1
    attention: Annotated[
        Attention,
        Field(title="Attention", description="sdpa, flash or eager"),
        Presentation(
            "--attention",
            "software",
            explanation="Eager attention keeps a matrix of tokens × tokens for every head; the others do not.",
            choices=ATTENTION_TITLES,
        ),
    ] = "sdpa"
    loss: Annotated[
        Loss | None,
        Field(title="Loss", description="full-logits, chunked or fused-linear"),
        Presentation(
            "--loss",
            "software",
            default="full-logits, or the software's",
            explanation="Full logits take tokens × vocabulary several times over.",
            choices=LOSS_TITLES,
        ),
    ] = None
    loss_chunks: Annotated[
        int,
        Field(ge=1, le=100_000, title="Loss chunks", description="parts in which a chunked loss is computed"),
        Presentation(group="software", asked_when=lambda now: now.used.loss == "chunked"),
    ] = 8
    profile: Annotated[
        TrainerName,
        Field(title="Software", description=", ".join(TRAINERS)),
        Presentation(
            "--profile",
            "software",
            explanation="What trains the model: each stores other things for the same network.",
            choices={name: one.title_for("training") for name, one in TRAINERS.items()},
            brief=lambda name: SOFTWARE[name].in_short,
            leads=True,
        ),
    ] = DEFAULT
    parallel: Parallel = Parallel()
    gpus: UnequalCards = ()
    other_processes_bytes: OtherProcesses = 0

    @property
    def adapts(self) -> bool:
        """Return whether adapters are trained instead of the network's own parameters."""
        return self.method != "full"

    @model_validator(mode="after")
    def _obeys_the_rules(self) -> Self:
        """Refuse what does not go together."""
        TRAINING_RULES.obey(self)
        return self
