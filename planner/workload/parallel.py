"""How a workload is spread over cards."""

from typing import Final, Self

from pydantic import Field, field_validator, model_validator

from planner.base import Spec
from planner.workload.choices import Offload

MOST_CARDS: Final = 100_000


class CardCount(Spec):
    """Some cards of one kind, by the catalog's id."""

    id: str = Field(min_length=1)
    count: int = Field(default=1, ge=1, le=MOST_CARDS)


class Parallel(Spec):
    """How the work is spread over cards: their number is the product of data, tensor, pipeline and context.

    Experts are spread over the replicas, so that `expert` divides `data`.
    """

    data: int | None = Field(
        default=None, ge=1, le=MOST_CARDS, description="replicas; by default cards ÷ (tensor · pipeline · context)"
    )
    zero: int = Field(
        default=0, ge=0, le=3, description="what replicas share: 1 optimizer states, 2 gradients too, 3 parameters too"
    )
    tensor: int = Field(default=1, ge=1, le=1024, description="cards that share each matrix")
    sequence: bool = Field(default=False, description="norms and dropout share the tokens of a tensor-parallel group")
    pipeline: int = Field(default=1, ge=1, le=4096, description="stages of consecutive layers")
    context: int = Field(default=1, ge=1, le=4096, description="cards that share each sequence")
    expert: int = Field(default=1, ge=1, le=4096, description="replicas that share the routed experts")
    offload: Offload = Field(
        default="none",
        description="what stays in RAM between uses: optimizer (its states), parameters (these, too), or both on nvme",
    )
    gradient_as_bucket_view: bool = Field(
        default=False, description="gradients lie in the buckets of DistributedDataParallel, not beside them"
    )
    reshard_after_forward: bool = Field(
        default=True, description="FSDP frees each layer's whole parameters after its forward pass"
    )
    pipeline_layers: tuple[int, ...] = Field(
        default=(), description="layers of each stage; by default as evenly as it goes"
    )
    interleave: int = Field(default=1, ge=1, le=1024, description="groups of layers that each stage takes turns with")

    @field_validator("pipeline_layers", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        """Take numbers with commas between them, as on the command line."""
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Refuse settings of something that is not there."""
        if self.pipeline_layers and len(self.pipeline_layers) != self.pipeline:
            stages = len(self.pipeline_layers)
            raise ValueError(f"pipeline_layers names {stages:,} stages, and pipeline is {self.pipeline:,}")
        if any(layers < 1 for layers in self.pipeline_layers):
            raise ValueError("each of pipeline_layers is at least 1")
        if self.interleave > 1 and self.pipeline == 1:
            raise ValueError("interleave needs a pipeline of at least 2 stages")
        if self.interleave > 1 and self.pipeline_layers:
            raise ValueError("interleaved stages are even: leave out pipeline_layers")
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
