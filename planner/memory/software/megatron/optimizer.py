"""Memory of Megatron-LM's optimizer: gradients in fp32 throughout, and its state, whole or sharded."""

from typing import Final, NamedTuple

from planner.memory.parallel.sharding import ShardedStep, ShardingStrategy
from planner.memory.parallel.shares import (
    AnyTerm,
    PersistentBuffers,
    ShardedCounts,
    communication_term,
    relabeled_term,
    sharded_term,
)
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.result import TermName
from planner.workload.parallel import Parallel

SOURCE: Final = "Megatron-LM docs/user-guide/features/dist_optimizer.md; core/distributed/param_and_grad_buffer.py"
_REPLACED: Final[frozenset[TermName]] = frozenset(("gradients", "optimizer_states", "master_weights", "communication"))


class MainCopies(NamedTuple):
    """Megatron's fp32 copies of a network; `shards` cards share the state if the optimizer is distributed."""

    counts: ShardedCounts
    shards: int
    gradients: AnyTerm | None
    states: AnyTerm | None
    master: AnyTerm | None
    persistent_buffers: PersistentBuffers

    def state_terms(self) -> list[AnyTerm]:
        """Return the terms of the optimizer state on one card."""
        whole = [item for item in (self.master, self.states) if item is not None]
        if self.shards == 1:
            return whole
        return [sharded_term(item, self.counts.share, self.counts.total, self.shards, SOURCE) for item in whole]


def megatron_snapshots(snapshots: tuple[Snapshot, ...], main: MainCopies) -> tuple[Snapshot, ...]:
    """Return Megatron's snapshots, derived from the snapshots of a step entirely in 16 bits.

    **Formula** with Adam: 2P of parameters, 4P of gradients in one buffer that stays, 12P of state, with the
    distributed optimizer 12P/N: 18 and 6 + 12/N bytes per parameter.

    **Source**: Megatron-LM dist_optimizer.md.
    """
    gradients = [] if main.gradients is None else [relabeled_term(main.gradients, SOURCE)]
    kept = [*gradients, *main.state_terms(), communication_term((), SOURCE, main.persistent_buffers)]
    return tuple(
        snapshot
        if snapshot.name == "load"
        else Snapshot(
            snapshot.name,
            [*(item for item in snapshot.terms if item.name not in _REPLACED), *kept],
            snapshot.explanation,
        )
        for snapshot in snapshots
    )


class DistributedOptimizer(ShardingStrategy):
    """Megatron-LM's optimizer, distributed or not."""

    name = "megatron"
    title = "Megatron-LM"
    version = "Megatron-LM 0.20"
    shares_states = True
    keeps_masters = True

    def stage_name(self, _zero: int) -> str:
        """Return the name of the mode in which replicas share the optimizer's states."""
        return "distributed optimizer"

    def stored_memory_summary(self, _parallel: Parallel) -> str:
        """Return a summary of the memory that the optimizer stores on each card."""
        return "16-bit parameters, fp32 gradients from the first pass on, fp32 parameters and states"

    def timeline(self, step: ShardedStep) -> PhaseSnapshots:
        """Return the memory alive on a card in each phase of `step`."""
        unsharded_timeline = step.unsharded_timeline
        weights = next(item for item in unsharded_timeline.snapshots[-1].terms if item.name == "weights")
        main = MainCopies(
            counts=step.counts,
            shards=step.cards if step.workload.parallel.zero else 1,
            gradients=step.kept_named("gradients"),
            states=step.kept_named("optimizer_states"),
            master=step.master(weights),
            persistent_buffers=step.persistent_buffers,
        )
        return unsharded_timeline._replace(snapshots=megatron_snapshots(unsharded_timeline.snapshots, main))


OPTIMIZER: Final = DistributedOptimizer()
