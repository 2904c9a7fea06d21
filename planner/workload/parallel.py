"""How a workload is spread over cards."""

from typing import Annotated, Final, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from planner.base import Spec
from planner.models.architecture import Moe
from planner.workload.choices import OFFLOAD_TITLES, Offload
from planner.workload.option import Presentation, Situation, has_several_gpus, is_not_diffusion
from planner.workload.rules import STAGE_RULES
from planner.workload.software.registry import serving, training_support

MOST_CARDS: Final = 100_000
_MOST_GROUPS: Final = 8


def trains_on_several_gpus(now: Situation) -> bool:
    """Return whether a training run can be shared by several GPUs."""
    return has_several_gpus(now) and now.used.task == "training"


def _has_experts(now: Situation) -> bool:
    groups = (group for stack in now.architecture.stacks for group in stack.groups)
    return has_several_gpus(now) and any(isinstance(group.layer.feed_forward, Moe) for group in groups)


def _can_offload(now: Situation) -> bool:
    own = training_support(now.used.profile) if now.used.task == "training" else serving(now.used.profile)
    return is_not_diffusion(now) and len(own.offloads) > 1


class CardCount(Spec):
    """Some cards of one kind, by the catalog's id."""

    id: str = Field(min_length=1)
    count: int = Field(default=1, ge=1, le=MOST_CARDS)


class Parallel(Spec):
    """How the work is spread over cards: their number is the product of data, tensor, pipeline and context.

    Experts are spread over the replicas, so that `expert` divides `data`.
    """

    data: Annotated[
        int | None,
        Field(ge=1, le=MOST_CARDS, title="Data parallel", description="replicas"),
        Presentation(
            "--dp",
            "sharing",
            default="the number of cards, divided by --tp, --pp and --cp",
            explanation="What the other ways to share leave.",
            asked_when=has_several_gpus,
        ),
    ] = None
    zero: Annotated[
        int,
        Field(
            ge=0,
            le=3,
            title="ZeRO stage",
            description="what replicas share: 1 optimizer states, 2 gradients, too, 3 parameters, too: FSDP",
        ),
        Presentation(
            "--zero",
            "sharing",
            explanation="ZeRO and FSDP divide what replicas would each hold in full.",
            choices={
                0: "Nothing (DDP)",
                1: "Optimizer states (ZeRO-1)",
                2: "And gradients (ZeRO-2)",
                3: "And parameters (ZeRO-3, FSDP)",
            },
            leads=True,
            asked_when=trains_on_several_gpus,
        ),
    ] = 0
    tensor: Annotated[
        int,
        Field(ge=1, le=1024, title="Tensor parallel", description="cards that share each matrix"),
        Presentation("--tp", "sharing", asked_when=has_several_gpus),
    ] = 1
    sequence: Annotated[
        bool,
        Field(title="Sequence parallel", description="norms and dropout share the tokens of a tensor-parallel group"),
        Presentation(
            group="sharing", asked_when=lambda now: trains_on_several_gpus(now) and now.used.parallel.tensor > 1
        ),
    ] = False
    pipeline: Annotated[
        int,
        Field(ge=1, le=4096, title="Pipeline parallel", description="cards that each hold some of the layers"),
        Presentation("--pp", "sharing", asked_when=has_several_gpus),
    ] = 1
    context: Annotated[
        int,
        Field(ge=1, le=4096, title="Context parallel", description="cards that share each sequence"),
        Presentation("--cp", "sharing", asked_when=trains_on_several_gpus),
    ] = 1
    expert: Annotated[
        int,
        Field(ge=1, le=4096, title="Expert parallel", description="replicas that share the routed experts"),
        Presentation("--ep", "sharing", asked_when=_has_experts),
    ] = 1
    offload: Annotated[
        Offload,
        Field(
            title="Offload",
            description="what stays in RAM between uses: optimizer (its states), parameters with them, or both on nvme",
        ),
        Presentation("--offload", "offload", choices=OFFLOAD_TITLES, asked_when=_can_offload),
    ] = "none"
    gradient_as_bucket_view: Annotated[
        bool,
        Field(
            title="Gradient bucket view",
            description="gradients lie in the buckets of DistributedDataParallel, not beside them",
        ),
        Presentation(group="sharing", asked_when=lambda now: trains_on_several_gpus(now) and now.sharder == "ddp"),
    ] = False
    reshard_after_forward: Annotated[
        bool,
        Field(
            title="Reshard after forward",
            description="FSDP frees each layer's whole parameters after its forward pass",
        ),
        Presentation(group="sharing", asked_when=lambda now: trains_on_several_gpus(now) and now.sharder == "fsdp"),
    ] = True
    pipeline_layers: Annotated[
        tuple[int, ...],
        Field(title="Layers per stage", description="layers of each stage, with commas between them"),
        Presentation(
            group="sharing",
            default="as evenly as it goes",
            placeholder="as evenly as it goes",
            asked_when=lambda now: (
                has_several_gpus(now) and now.used.parallel.pipeline > 1 and now.used.parallel.interleave == 1
            ),
        ),
    ] = ()
    interleave: Annotated[
        int,
        Field(
            ge=1, le=1024, title="Pipeline schedule", description="groups of layers that each stage takes turns with"
        ),
        Presentation(
            group="sharing",
            explanation="Stages work on one group of layers, or take turns with several.",
            choices={1: "1F1B", **{groups: f"Interleaved, {groups} groups" for groups in range(2, _MOST_GROUPS + 1)}},
            asked_when=lambda now: trains_on_several_gpus(now) and now.used.parallel.pipeline > 1,
        ),
    ] = 1

    @field_validator("pipeline_layers", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        """Take numbers with commas between them, as on the command line."""
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _obeys_the_rules(self) -> Self:
        """Refuse settings of something that is not there."""
        STAGE_RULES.obey(_ParallelOnly(self))
        if any(layers < 1 for layers in self.pipeline_layers):
            raise ValueError("each of pipeline_layers is at least 1")
        return self

    @property
    def model_shards(self) -> int:
        """Return the cards that one replica takes."""
        return self.tensor * self.pipeline * self.context

    @property
    def state_shards(self) -> int:
        """Return the cards that hold the same share of the network: ZeRO divides by these only.

        **Source**: Megatron-LM `mpu.get_data_parallel_world_size(with_context_parallel=True)`; torchtitan shards over
        `dp_shard × cp`.
        """
        return (self.data or 1) * self.context

    @property
    def is_plain(self) -> bool:
        """Return whether every card holds and computes the whole network."""
        return self.model_shards == 1 and self.zero == 0 and self.expert == 1 and self.offload == "none"


class _ParallelOnly(NamedTuple):
    """What `parallel` is a part of, as far as rules about it alone are concerned."""

    parallel: Parallel
    task: None = None


UnequalCards = Annotated[
    tuple[CardCount, ...],
    Field(title="Unequal cards", description="cards of several kinds, instead of the plan's one: [{id, count}, …]"),
    Presentation(group="cards"),
]
OtherProcesses = Annotated[
    int,
    Field(
        ge=0, title="Used by other programs", description="memory that other programs hold on each card: 2GiB, 512MiB"
    ),
    Presentation(group="cards"),
]
