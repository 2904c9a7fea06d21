"""Data-parallel training: plain replicas, or sharded optimizer states, gradients or parameters."""

from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from planner.memory.inference.engine import cache_in_ram
from planner.memory.parallel.shares import (
    PersistentBuffers,
    ShardedCounts,
    communication_term,
    relabeled_term,
    sharded_counts,
)
from planner.memory.phases import AnyTerm, PhaseSnapshots
from planner.memory.result import TermPart
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.formats import autocasts, product_format
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

if TYPE_CHECKING:
    from planner.memory.software.pytorch import TrainingMemory
    from planner.memory.training.step import StepMoments

ALONE: Final = Parallel(data=1)
_DDP_SOURCE: Final = "torch DistributedDataParallel: gradient_as_bucket_view is off by default"
_UNSHARDED_TERM_FIELDS: Final = (
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
_unsharded_term_fields: Final = attrgetter(*_UNSHARDED_TERM_FIELDS)


@dataclass(frozen=True, eq=False)
class UnshardedTerms:
    """Unsharded terms that last from one step to the next, and all gradients; None for what a step does not have.

    Compared by identity, since they are made once for all batch sizes and are keys of caches.
    """

    weights: AnyTerm
    adapters: AnyTerm | None
    states: AnyTerm | None
    gradients: AnyTerm

    def master(self, weights: AnyTerm) -> AnyTerm | None:
        """Return the memory of the fp32 copies of 16-bit `weights`, None for parameters in fp32."""
        if self.weights.bytes <= weights.bytes:
            return None
        return relabeled_term(self.weights, "the fp32 parameters that the optimizer updates", "master_weights")


class SharedStep(NamedTuple):
    """A training step shared by replicas: a card's part of the network, the whole workload, the card's workload.

    `step` is the card's step without sharding, `persistent_buffers` the buffers present throughout.
    """

    architecture: Architecture
    workload: Training
    own: Training
    program: "TrainingMemory"
    step: "StepMoments"
    persistent_buffers: PersistentBuffers

    def unsharded_terms(self, *, keeps_masters: bool) -> UnshardedTerms:
        """Return the terms that replicas may share, in fp32 where 16-bit parameters replace autocast or have copies."""
        in_fp32 = self.own.weights != self.workload.weights or (keeps_masters and not self.own.adapts)
        return _unsharded_terms(self.architecture, _unsharded_term_fields(self.workload), self.program, in_fp32)


def counts_per_card(architecture: Architecture, parallel: Parallel) -> ShardedCounts:
    """Return the parameter counts sharded over all replicas; routed experts are divided over fewer cards."""
    return sharded_counts(architecture, parallel.state_shards, parallel.state_shards // parallel.expert)


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

    def timeline(self, shared: SharedStep) -> PhaseSnapshots:
        """Return the memory snapshots of one card in a step of equal replicas, which average their gradients.

        **Source**: torch DistributedDataParallel: the buckets are a second copy of the gradients, or with
        `gradient_as_bucket_view` the gradients themselves, from the first pass on.
        """
        step, workload, buffers = shared.step, shared.workload, shared.persistent_buffers
        replicated, gradients = workload.parallel.state_shards > 1, step.setup.all_gradients
        in_view = replicated and workload.parallel.gradient_as_bucket_view
        if replicated and not in_view:
            name, size = "gradient buckets, a second copy of the gradients", gradients.bytes
            buffers = buffers.with_buffers((TermPart(name=name, bytes=size, formula=f"{size:,}", source=_DDP_SOURCE),))
        held = [communication_term((), "", buffers)] if buffers.held or buffers.outside else []
        if in_view:
            return step.unsharded_timeline(step.lasting, [*held, gradients], has_gradients=False)
        return step.replica_timeline(workload.gradient_accumulation > 1, held)


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
        cache_in_ram_bytes=cache_in_ram(workload) or 0,
        parallel=ALONE,
        gpus=(),
    )


def _sixteen_bit_fields(workload: Training) -> dict[str, object]:
    """Return the workload fields changed where a sharding strategy replaces autocast by 16-bit parameters."""
    if workload.adapts or not autocasts(workload.compute) or workload.weights != "fp32":
        return {"gradient_accumulation": 1}
    sixteen = product_format(workload.compute)
    return {"compute": "fp8" if workload.compute == "fp8" else sixteen, "weights": sixteen, "gradient_accumulation": 1}


# Lasting terms do not depend on the batch size: those of a step with one token are those of any.
@lru_cache(maxsize=256)
def _unsharded_terms(
    architecture: Architecture, values: tuple[object, ...], program: "TrainingMemory", in_fp32: bool
) -> UnshardedTerms:
    """Return the unsharded terms of the optimizer step; `values` belong to `_UNSHARDED_TERM_FIELDS`."""
    formats = {"compute": "fp32", "weights": "fp32"} if in_fp32 else {}
    fields = dict(zip(_UNSHARDED_TERM_FIELDS, values, strict=True)) | formats
    smallest = Training.model_validate({**fields, "sequence_length": 1, "parallel": ALONE})
    setup = program.setup(architecture, smallest)
    return UnshardedTerms(setup.weights, setup.adapters, setup.optimizer.states, setup.all_gradients)
