"""Data-parallel training: plain replicas, or sharded optimizer states, gradients or parameters."""

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from planner.memory.parallel.shares import AnyTerm, PersistentBuffers, ShardedCounts, relabeled_term, sharded_counts
from planner.memory.phases import PhaseSnapshots
from planner.memory.result import TermName
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.formats import autocasts, product_format
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

if TYPE_CHECKING:
    from planner.memory.software.pytorch import TrainingMemory

ALONE: Final = Parallel(data=1)
LASTING: Final[tuple[TermName, ...]] = ("weights", "master_weights", "optimizer_states", "adapters")
"""Memory terms that persist from one training step to the next."""
_PERSISTENT_TERM_FIELDS: Final = (
    "method",
    "weights",
    "compute",
    "lora",
    "trainable",
    "optimizer",
    "optimizer_step",
    "gradient_clipping",
    "loss",
    "profile",
)
_persistent_term_fields: Final = attrgetter(*_PERSISTENT_TERM_FIELDS)


class ShardedStep(NamedTuple):
    """A training step shared by replicas: a card's part of the network, the whole workload, the card's workload.

    `unsharded_timeline` is the card's timeline without sharding, `kept` the terms present during the optimizer step,
    `persistent_buffers` the buffers present throughout the step.
    """

    architecture: Architecture
    workload: Training
    own: Training
    unsharded_timeline: PhaseSnapshots
    kept: tuple[AnyTerm, ...]
    persistent_buffers: PersistentBuffers

    @property
    def cards(self) -> int:
        """Return the number of cards that share the persistent memory terms."""
        return self.workload.parallel.state_shards

    @property
    def counts(self) -> ShardedCounts:
        """Return the parameter counts sharded over the cards; routed experts are divided over fewer cards."""
        return sharded_counts(self.architecture, self.cards, self.cards // self.workload.parallel.expert)

    def persistent_term(self, name: TermName) -> AnyTerm | None:
        """Return the unsharded term `name` present during the optimizer step, None if there is none."""
        return next((item for item in self.kept if item.name == name), None)

    def master(self, weights: AnyTerm) -> AnyTerm | None:
        """Return the memory of the fp32 copies of 16-bit `weights`, None for parameters in fp32."""
        copies = self.persistent_term("weights")
        if copies is None or copies.bytes <= weights.bytes:
            return None
        return relabeled_term(copies, "the fp32 parameters that the optimizer updates", "master_weights")


class ShardingStrategy:
    """Data-parallel software; this base class keeps full replicas on each card (DistributedDataParallel).

    `shares_states` means that replicas share persistent terms, `keeps_masters` that 16-bit parameters have fp32 copies.
    """

    name: ClassVar[str] = "ddp"
    title: ClassVar[str] = "DDP"
    version: ClassVar[str] = "DistributedDataParallel of PyTorch 2.13"
    shares_states: ClassVar[bool] = False
    keeps_masters: ClassVar[bool] = False

    def stage_name(self, _zero: int) -> str:
        """Return the strategy's name for ZeRO stage `_zero`, such as FSDP or ZeRO-2."""
        return self.title

    def stored_memory_summary(self, parallel: Parallel) -> str:
        """Return a text on the gradients, parameters and states that the strategy keeps on each card."""
        return (
            "one copy of the gradients, in buckets"
            if parallel.gradient_as_bucket_view
            else "two copies of the gradients, one of them in buckets"
        )

    def timeline(self, step: ShardedStep) -> PhaseSnapshots:
        """Return the memory snapshots of one card in the training step `step`."""
        return step.unsharded_timeline


REPLICAS: Final = ShardingStrategy()


def per_card_workload(workload: Training | Inference, sharding_strategy: ShardingStrategy) -> Training | Inference:
    """Return the part of `workload` that one card computes, as a workload for a single card.

    Where replicas share parameters or states, the strategy casts instead of autocast: all values are in 16 bits, with
    the gradients of one pass. The result is not validated, since its optimizer updates fp32 copies.
    """
    cards = workload.parallel.context
    if isinstance(workload, Training):
        length = ceil_div(workload.sequence_length or 1, cards)
        shared = _sixteen_bit_fields(workload) if sharding_strategy.shares_states else {}
        return workload.replaced(**shared, sequence_length=length, parallel=ALONE, gpus=())
    return workload.replaced(
        prompt_length=ceil_div(workload.prompt_length or 1, cards),
        context_length=ceil_div(workload.context_length or 1, cards),
        parallel=ALONE,
        gpus=(),
    )


def _sixteen_bit_fields(workload: Training) -> dict[str, object]:
    """Return the workload fields changed where a sharding strategy replaces autocast by 16-bit parameters."""
    if workload.adapts or not autocasts(workload.compute) or workload.weights != "fp32":
        return {"gradient_accumulation": 1}
    sixteen = product_format(workload.compute)
    return {"compute": "fp8" if workload.compute == "fp8" else sixteen, "weights": sixteen, "gradient_accumulation": 1}


def sharded_timeline(
    architecture: Architecture,
    workload: Training,
    own: Training,
    program: "TrainingMemory",
    sharding_strategy: ShardingStrategy,
    persistent_buffers: PersistentBuffers,
) -> PhaseSnapshots:
    """Return a card's timeline of a training step in which replicas share states, gradients or parameters.

    `own` is the part of `workload` that one card computes, without autocast; `persistent_buffers` are present
    throughout the step.

    **Formula**: under autocast the parameters are sharded in fp32 and gathered in 16 bits, in which everything is
    computed without further casts.

    **Source**: PyTorch `MixedPrecisionPolicy`, as set by accelerate (`param_dtype`, `reduce_dtype`: 16 bits);
    DeepSpeed's and Megatron's 16-bit engines with fp32 copies.
    """
    in_fp32 = own.weights != workload.weights or (sharding_strategy.keeps_masters and not own.adapts)
    kept = _persistent_terms(architecture, _persistent_term_fields(workload), program, in_fp32)
    unsharded_timeline = program.timeline(architecture, own)
    return sharding_strategy.timeline(
        ShardedStep(architecture, workload, own, unsharded_timeline, kept, persistent_buffers)
    )


# Persistent terms do not depend on the batch size: without the cache, each estimate would build a second timeline.
@lru_cache(maxsize=256)
def _persistent_terms(
    architecture: Architecture, values: tuple[object, ...], program: "TrainingMemory", in_fp32: bool
) -> tuple[AnyTerm, ...]:
    """Return the unsharded terms of the optimizer step; `values` belong to `_PERSISTENT_TERM_FIELDS`."""
    formats = {"compute": "fp32", "weights": "fp32"} if in_fp32 else {}
    fields = dict(zip(_PERSISTENT_TERM_FIELDS, values, strict=True)) | formats
    smallest = Training.model_validate({**fields, "sequence_length": 1, "parallel": ALONE})
    step = program.timeline(architecture, smallest).snapshots[-1]
    return tuple([item for item in step.terms if item.name in (*LASTING, "gradients")])
