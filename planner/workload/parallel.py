"""Parallelism of a workload across GPUs."""

from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from planner.base import Spec
from planner.models.architecture import Moe
from planner.workload.choices import OFFLOAD_TITLES, Offload
from planner.workload.presentation import FieldContext, Presentation, has_several_gpus, is_not_diffusion
from planner.workload.rules import STAGE_RULES
from planner.workload.software.registry import serving_support, training_support

MOST_CARDS: Final = 100_000
_MOST_GROUPS: Final = 8


def trains_on_several_gpus(context: FieldContext) -> bool:
    """Return whether the workload is a training run on several GPUs."""
    return has_several_gpus(context) and context.workload.task == "training"


def _has_experts(context: FieldContext) -> bool:
    groups = (group for stack in context.architecture.stacks for group in stack.groups)
    return _is_set_by_hand(context) and any(isinstance(group.layer.feed_forward, Moe) for group in groups)


def _can_offload(context: FieldContext) -> bool:
    own = (
        training_support(context.workload.profile)
        if context.workload.task == "training"
        else serving_support(context.workload.profile)
    )
    return is_not_diffusion(context) and len(own.offloads) > 1


class CardCount(Spec):
    """A number of GPUs with the same catalog id."""

    id: str = Field(min_length=1)
    count: int = Field(default=1, ge=1, le=MOST_CARDS)


Sharing = Literal["auto", "manual"]

DEGREES: Final = ("data", "zero", "tensor", "pipeline", "context", "expert")
"""Fields of `Parallel` that say how cards share the model."""


def without_degrees() -> dict[str, object]:
    """Return the fields of `Parallel` that remove every degree, and what only goes with one."""
    return {**_WITHOUT, "sequence": False, "pipeline_layers": (), "interleave": 1}


def _is_set_by_hand(context: FieldContext) -> bool:
    """Return whether the degrees are the plan's own, and not chosen by the software."""
    return has_several_gpus(context) and not context.chosen_sharing


class Parallel(Spec):
    """Degrees of parallelism; the number of GPUs is the product of the data, tensor, pipeline and context degrees.

    Experts are split across replicas, so `expert` divides `data`. With `auto`, which holds as long as no degree is set,
    `planner.plan.sharing` chooses the degrees; with `manual`, GPUs without a degree are replicas.
    """

    sharing: Annotated[
        Sharing,
        Field(
            title="Sharing",
            description="how GPUs share the model: auto (as the software would) or manual (by the degrees below)",
        ),
        Presentation(
            "--sharing",
            "sharing",
            default="auto, unless a degree is set",
            explanation="With auto, each GPU holds the whole model if it fits on one.",
            choices={"auto": "By the software", "manual": "Set below"},
            leads=True,
            shown_when=has_several_gpus,
        ),
    ] = "auto"
    data: Annotated[
        int | None,
        Field(ge=1, le=MOST_CARDS, title="Data parallelism", description="number of replicas"),
        Presentation(
            "--dp",
            "sharing",
            default="the number of GPUs, divided by --tp, --pp and --cp",
            explanation="By default, the number of GPUs divided by the other degrees of parallelism.",
            shown_when=_is_set_by_hand,
        ),
    ] = None
    zero: Annotated[
        int,
        Field(
            ge=0,
            le=3,
            title="ZeRO stage",
            description="what replicas shard: 1 optimizer states, 2 also gradients, 3 also parameters (FSDP)",
        ),
        Presentation(
            "--zero",
            "sharing",
            metavar="STAGE",
            explanation="ZeRO and FSDP shard states that each replica would otherwise hold in full.",
            choices={
                0: "None (DDP)",
                1: "Optimizer states (ZeRO-1)",
                2: "Also gradients (ZeRO-2)",
                3: "Also parameters (ZeRO-3, FSDP)",
            },
            leads=True,
            shown_when=lambda context: trains_on_several_gpus(context) and _is_set_by_hand(context),
        ),
    ] = 0
    tensor: Annotated[
        int,
        Field(ge=1, le=1024, title="Tensor parallelism", description="number of GPUs that share each matrix"),
        Presentation("--tp", "sharing", shown_when=_is_set_by_hand),
    ] = 1
    sequence: Annotated[
        bool,
        Field(title="Sequence parallelism", description="split norms and dropout across the tensor-parallel group"),
        Presentation(
            group="sharing",
            shown_when=lambda context: trains_on_several_gpus(context) and context.workload.parallel.tensor > 1,
        ),
    ] = False
    pipeline: Annotated[
        int,
        Field(
            ge=1, le=4096, title="Pipeline parallelism", description="number of stages, each with some of the layers"
        ),
        Presentation("--pp", "sharing", shown_when=_is_set_by_hand),
    ] = 1
    context: Annotated[
        int,
        Field(ge=1, le=4096, title="Context parallelism", description="number of GPUs that share each sequence"),
        Presentation(
            "--cp",
            "sharing",
            shown_when=lambda context: trains_on_several_gpus(context) and _is_set_by_hand(context),
        ),
    ] = 1
    expert: Annotated[
        int,
        Field(
            ge=1, le=4096, title="Expert parallelism", description="number of replicas that share the routed experts"
        ),
        Presentation("--ep", "sharing", shown_when=_has_experts),
    ] = 1
    offload: Annotated[
        Offload,
        Field(
            title="Offload",
            description="tensors kept in RAM: optimizer (states), parameters (and states), or none; nvme: on disk",
        ),
        Presentation("--offload", "offload", choices=OFFLOAD_TITLES, shown_when=_can_offload),
    ] = "none"
    gradient_as_bucket_view: Annotated[
        bool,
        Field(
            title="Gradient bucket view",
            description="make gradients views into DistributedDataParallel's buckets, not separate tensors",
        ),
        Presentation(
            group="sharing",
            shown_when=lambda context: trains_on_several_gpus(context) and context.sharding_library == "ddp",
        ),
    ] = False
    reshard_after_forward: Annotated[
        bool,
        Field(
            title="Reshard after forward",
            description="free each layer's gathered parameters after its forward pass (FSDP)",
        ),
        Presentation(
            group="sharing",
            shown_when=lambda context: trains_on_several_gpus(context) and context.sharding_library == "fsdp",
        ),
    ] = True
    pipeline_layers: Annotated[
        tuple[int, ...],
        Field(title="Layers per stage", description="number of layers in each stage, separated by commas"),
        Presentation(
            group="sharing",
            default="as evenly as possible",
            placeholder="as evenly as possible",
            shown_when=lambda context: (
                has_several_gpus(context)
                and context.workload.parallel.pipeline > 1
                and context.workload.parallel.interleave == 1
            ),
        ),
    ] = ()
    interleave: Annotated[
        int,
        Field(
            ge=1,
            le=1024,
            title="Pipeline schedule",
            description="groups of layers per stage; more than 1 interleaves them",
        ),
        Presentation(
            group="sharing",
            explanation="With an interleaved schedule, each stage alternates between several groups of layers.",
            choices={1: "1F1B", **{groups: f"Interleaved, {groups} groups" for groups in range(2, _MOST_GROUPS + 1)}},
            shown_when=lambda context: trains_on_several_gpus(context) and context.workload.parallel.pipeline > 1,
        ),
    ] = 1

    @model_validator(mode="before")
    @classmethod
    def _prefer_degrees(cls, fields: object) -> object:
        """Let degrees that are set win over `auto`."""
        if isinstance(fields, dict) and any(fields.get(name, value) != value for name, value in _WITHOUT.items()):
            return {**fields, "sharing": "manual"}
        return fields

    @field_validator("pipeline_layers", mode="before")
    @classmethod
    def _split_numbers(cls, value: object) -> object:
        """Split text with comma-separated numbers, as on the command line; return other values unchanged."""
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        """Reject pipeline settings that contradict the number of stages."""
        STAGE_RULES.validate(_ParallelHolder(self))
        if any(layers < 1 for layers in self.pipeline_layers):
            raise ValueError("every stage in pipeline_layers needs at least 1 layer")
        return self

    @property
    def model_shards(self) -> int:
        """Return the number of cards in one replica, each with a shard of the model."""
        return self.tensor * self.pipeline * self.context

    @property
    def state_shards(self) -> int:
        """Return the number of cards with the same model shard, over which ZeRO shards training states.

        **Source**: Megatron-LM `mpu.get_data_parallel_world_size(with_context_parallel=True)`; torchtitan shards over
        `dp_shard × cp`.
        """
        return (self.data or 1) * self.context

    @property
    def is_open(self) -> bool:
        """Return whether the software chooses how several cards share the model."""
        return self.sharing == "auto" and self.is_plain

    def is_open_for(self, count: int) -> bool:
        """Return whether the software chooses how `count` cards share the model; a card alone shares nothing."""
        return count > 1 and self.is_open

    @property
    def is_plain(self) -> bool:
        """Return whether every card holds and computes the whole model."""
        return self.model_shards == 1 and self.zero == 0 and self.expert == 1 and self.offload == "none"


_WITHOUT: Final = {name: Parallel.model_fields[name].default for name in DEGREES}
"""The degrees of a plan that sets none."""


class _ParallelHolder(NamedTuple):
    """Placeholder for a workload that has only `parallel`, for rules on `parallel` alone."""

    parallel: Parallel
    task: None = None


UnequalCards = Annotated[
    tuple[CardCount, ...],
    Field(title="Mixed GPUs", description="GPUs of several kinds, instead of the plan's one: [{id, count}, …]"),
    Presentation(group="cards"),
]
OtherProcesses = Annotated[
    int,
    Field(
        ge=0,
        title="Used by other programs",
        description="memory that other programs use on each GPU, such as 2GiB or 512MiB",
    ),
    Presentation(group="cards"),
]
