"""Training workloads: the method, precision, optimizer, batch and memory-saving choices of one training run."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.base import Spec
from planner.models.architecture import embeds_images
from planner.workload.alignment import Alignment
from planner.workload.choices import (
    ATTENTION_TITLES,
    CHECKPOINTING_TITLES,
    COMPUTE_TITLES,
    FROZEN_VISION_TITLES,
    LOSS_TITLES,
    METHOD_TITLES,
    WEIGHT_FORMAT_TITLES,
    Attention,
    Checkpointing,
    Compute,
    FrozenVision,
    Loss,
    Method,
    TrainedFormat,
)
from planner.workload.diffusion import IMAGE_SIZE, IMAGE_SIZE_SHOWN, ImageSize, Precomputed
from planner.workload.optimizers import (
    OPTIMIZERS,
    Optimizer,
    OptimizerStep,
    optimizer_library,
    optimizer_step_titles,
    optimizer_titles,
)
from planner.workload.parallel import OtherProcesses, Parallel, UnequalCards
from planner.workload.presentation import Presentation, doubling, is_diffusion, is_not_diffusion
from planner.workload.rules import TRAINING_RULES
from planner.workload.software.registry import DEFAULT, SOFTWARE, TRAINERS, TrainerName


class Lora(Spec):
    """Settings of low-rank adapters on linear layers of an otherwise frozen model."""

    rank: Annotated[
        int,
        Field(ge=1, le=65_536, title="LoRA rank", description="rank of the LoRA adapters"),
        Presentation(
            "--lora-rank",
            "main",
            explanation="Adapter weights, gradients and optimizer states grow with the rank.",
            stops=doubling(4, 256),
            mnemonic="r",
        ),
    ] = 16
    targets: Annotated[
        Literal["usual", "all-linear"] | tuple[str, ...],
        Field(
            title="Target modules",
            description="layers with adapters: all-linear (all but the output head), or names such as q_proj,v_proj",
        ),
        Presentation(
            "--lora-targets",
            "main",
            metavar="NAMES",
            default="all-linear, or in an image pipeline the layers of diffusers' script",
            mnemonic="g",
        ),
    ] = "usual"
    adapter_dtype: Annotated[
        Literal["fp32", "bf16"],
        Field(
            title="Adapter precision",
            description="adapter weight format: fp32 or bf16; PEFT keeps adapters in fp32 even on a 16-bit model",
        ),
        Presentation(
            group="adapters",
            choices={"fp32": "FP32", "bf16": "BF16"},
        ),
    ] = "fp32"
    dropout: Annotated[
        float,
        Field(
            ge=0, lt=1, title="LoRA dropout", description="fraction of the adapters' inputs that dropout sets to zero"
        ),
        Presentation(
            group="adapters",
            explanation="Masks of adapter dropout are saved for the backward pass.",
            stops=(0.0, 0.05, 0.1),
        ),
    ] = 0.0
    dora: Annotated[
        bool,
        Field(title="DoRA", description="weight-decomposed adapters, with a trained magnitude for each output"),
        Presentation(
            group="adapters",
            explanation="Products as large as the full weights are saved for the backward pass.",
        ),
    ] = False

    def with_targets(self, usual: Literal["all-linear"] | tuple[str, ...]) -> "Lora":
        """Return the adapters on the layers that they name, or on the `usual` ones."""
        return self.replaced(targets=usual) if self.targets == "usual" else self

    @field_validator("targets", mode="before")
    @classmethod
    def split_names(cls, value: object) -> object:
        """Return the names in comma-separated text, and `all-linear` for a list with it; other values unchanged."""
        if isinstance(value, str) and value not in ("usual", "all-linear"):
            value = tuple(part.strip() for part in value.split(",") if part.strip())
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError("name at least one linear layer, or write all-linear")
            if "all-linear" in value:
                return "all-linear"
        return value


class Training(Spec):
    """A training workload: one optimizer step on all parameters, on parameters named by `trainable`, or on adapters.

    `with_defaults` fills in fields that are `None` for the model.
    """

    task: Literal["training"] = "training"
    method: Annotated[
        Method,
        Field(title="Method", description="training method: full, lora or qlora"),
        Presentation(
            "--method",
            "main",
            explanation="LoRA trains adapters on a frozen model;\nQLoRA keeps that model in 4 bits.",
            choices=METHOD_TITLES,
            mnemonic="d",
            shown_when=lambda context: not context.from_scratch,
        ),
    ] = "full"
    weights: Annotated[
        TrainedFormat | None,
        Field(
            title="Weight format",
            description="weight format: fp32, bf16 or fp16; with adapters also int8, nf4 or nf4-dq",
        ),
        Presentation(
            "--weights",
            "precision",
            default="fp32 under autocast, else the compute precision; with adapters 16 bits, or nf4 for qlora "
            "(nf4-dq in Unsloth)",
            choices=WEIGHT_FORMAT_TITLES,
            brief="Weights in {}",
        ),
    ] = None
    compute: Annotated[
        Compute,
        Field(
            title="Compute precision",
            description="compute precision: fp32, tf32, bf16, fp16, amp-bf16, amp-fp16 or fp8",
        ),
        Presentation(
            "--compute",
            "precision",
            explanation="Autocast (amp-…) keeps trained parameters in fp32 and computes in 16 bits;\n"
            "fp8 runs linear layers in 8 bits with torchao.",
            choices=COMPUTE_TITLES,
        ),
    ] = "amp-bf16"
    lora: Annotated[
        Lora | None,
        Field(description="adapter settings of the methods lora and qlora"),
        Presentation(shown_when=lambda context: context.workload.adapts),
    ] = None
    trainable: Annotated[
        tuple[str, ...],
        Field(
            title="Trainable parameters",
            description="name patterns of the parameters to train, such as layers.31 or *norm*",
        ),
        Presentation(
            group="trained",
            default="all",
            explanation="Separate several patterns with commas; all other parameters are frozen.",
            placeholder="all parameters",
            brief="{}",
            shown_when=lambda context: (
                not context.workload.adapts and not context.from_scratch and is_not_diffusion(context)
            ),
        ),
    ] = ()
    optimizer: Annotated[
        Optimizer,
        Field(title="Optimizer", description="optimizer: adamw, adamw-8bit, adafactor, lion, muon, sgd, …"),
        Presentation(
            "--optimizer",
            "main",
            explanation="AdamW keeps two numbers per parameter, Lion and SGD with momentum one, plain SGD none.",
            choices=optimizer_titles(),
            details=optimizer_library,
            mnemonic="z",
        ),
    ] = "adamw"
    optimizer_step: Annotated[
        OptimizerStep | None,
        Field(
            title="Optimizer implementation", description="optimizer step: fused, foreach (all tensors at once) or loop"
        ),
        Presentation(
            group="step",
            default="the default of the optimizer's library",
            explanation="A foreach step needs temporary copies of all tensors; a fused step and a loop do not.",
            choices=optimizer_step_titles(),
            shown_when=lambda context: len(OPTIMIZERS[context.workload.optimizer].steps) > 1,
        ),
    ] = None
    alignment: Annotated[
        Alignment,
        Field(description="preference tuning or reinforcement learning"),
        Presentation(group="alignment", shown_when=is_not_diffusion),
    ] = Alignment.model_construct()
    gradient_clipping: Annotated[
        bool,
        Field(title="Gradient clipping", description="clip gradients by their norm"),
        Presentation(group="step", explanation="Gradient clipping needs temporary tensors."),
    ] = False
    micro_batch: Annotated[
        int,
        Field(ge=1, le=1_000_000, title="Micro-batch size", description="number of sequences per GPU and forward pass"),
        Presentation(
            "--micro-batch",
            "main",
            explanation="Activations and logits grow with the micro-batch size.",
            stops=doubling(1, 256),
            mnemonic="b",
        ),
    ] = 1
    gradient_accumulation: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            title="Gradient accumulation steps",
            description="number of forward passes per optimizer step",
        ),
        Presentation(
            "--accumulate",
            "step",
            explanation="With several accumulation steps, gradients stay in memory during the next forward pass.\n"
            "A pipeline runs them as its micro-batches, with as many in flight as it has stages.",
            brief="{} accumulation steps",
        ),
    ] = 1
    images: Annotated[
        int | None,
        Field(
            ge=0,
            le=100_000,
            title="Images per sequence",
            description="images in each training sequence of a vision-language model",
        ),
        Presentation(
            "--images",
            "main",
            default="0, text alone",
            explanation="Each image takes tokens of its sequence; a tower that is trained saves its activations, too.",
            shown_when=lambda context: embeds_images(context.architecture),
        ),
    ] = None
    image_size: Annotated[ImageSize | None, IMAGE_SIZE, IMAGE_SIZE_SHOWN] = None
    frozen_vision: Annotated[
        FrozenVision,
        Field(
            title="Frozen vision parts",
            description="what reads images and is not trained: none, tower, or all (tower and projector)",
        ),
        Presentation(
            group="trained",
            explanation="A frozen tower saves no activations, and adapters are added to the language model alone.",
            choices=FROZEN_VISION_TITLES,
            brief="{} frozen",
            shown_when=lambda context: embeds_images(context.architecture),
        ),
    ] = "none"
    precomputed: Annotated[
        Precomputed | None,
        Field(
            title="Precomputed",
            description="inputs of a denoiser computed before training, so that the networks that make them are not on "
            "the GPU: none, prompts (prompt embeddings) or all (prompt embeddings and latents)",
        ),
        Presentation(
            "--precompute",
            "main",
            default="prompts with a diffusion transformer, none with a U-Net, as in diffusers' scripts",
            explanation="Text encoders and autoencoder leave the GPU once they have run for all prompts and images.",
            choices={
                "none": "Nothing",
                "prompts": "Prompt embeddings",
                "all": "Prompt embeddings and latents",
            },
            shown_when=is_diffusion,
        ),
    ] = None
    sequence_length: Annotated[
        int | None,
        Field(ge=1, le=100_000_000, title="Sequence length", description="number of tokens in each sequence"),
        Presentation(
            "--seq",
            "main",
            default="2,048, or the model's maximum",
            unit="tokens",
            stops=doubling(128, 131_072),
            mnemonic="l",
            shown_when=lambda context: context.has_variable_length,
        ),
    ] = None
    activation_checkpointing: Annotated[
        Checkpointing,
        Field(
            title="Activation checkpointing",
            description="activation checkpointing: none, selective, or full (save only layer inputs)",
        ),
        Presentation(
            "--checkpointing",
            "checkpointing",
            explanation="Full saves only each layer's input and recomputes the rest in the backward pass:\n"
            "much less memory, about a third more time.",
            choices=CHECKPOINTING_TITLES,
            mnemonic="k",
        ),
    ] = "none"
    checkpoint_every: Annotated[
        int,
        Field(ge=1, le=10_000, title="Checkpoint interval", description="number of layers per activation checkpoint"),
        Presentation(
            group="checkpointing",
            explanation="A longer interval saves fewer inputs but recomputes more layers at once.",
            brief="every {} layers",
            shown_when=lambda context: context.workload.activation_checkpointing == "full",
        ),
    ] = 1
    attention: Annotated[
        Attention,
        Field(title="Attention", description="attention implementation: sdpa, flash or eager"),
        Presentation(
            "--attention",
            "software",
            explanation=(
                "Eager attention saves a tokens × tokens matrix for every head; FlashAttention does not, nor does SDPA "
                "unless it falls back to its math kernel."
            ),
            choices=ATTENTION_TITLES,
        ),
    ] = "sdpa"
    loss: Annotated[
        Loss | None,
        Field(title="Loss", description="loss computation: full-logits, chunked or fused-linear"),
        Presentation(
            "--loss",
            "software",
            default="full-logits, or the software's own",
            explanation="Computing full logits needs several tensors of tokens × vocabulary.",
            choices=LOSS_TITLES,
            shown_when=is_not_diffusion,
        ),
    ] = None
    loss_chunks: Annotated[
        int,
        Field(ge=1, le=100_000, title="Loss chunks", description="number of chunks in which the loss is computed"),
        Presentation(
            group="software",
            shown_when=lambda context: (
                context.workload.loss == "chunked" and context.workload.alignment.method == "none"
            ),
        ),
    ] = 8
    profile: Annotated[
        TrainerName,
        Field(title="Software", description=f"training framework: {', '.join(TRAINERS)}"),
        Presentation(
            "--profile",
            "software",
            explanation="For the same model, each program saves different tensors.",
            choices={name: one.title_for("training") for name, one in TRAINERS.items()},
            brief=lambda name: SOFTWARE[name].brief_title,
            leads=True,
        ),
    ] = DEFAULT
    parallel: Parallel = Parallel.model_construct()
    gpus: UnequalCards = ()
    other_processes_bytes: OtherProcesses = 0

    @property
    def adapts(self) -> bool:
        """Return whether the workload trains adapters instead of the model's own parameters."""
        return self.method != "full"

    @property
    def trains_part(self) -> bool:
        """Return whether the workload trains adapters or some of the model's parameters, instead of all."""
        return self.adapts or bool(self.trainable)

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        TRAINING_RULES.validate(self)
        return self
