"""Memory of Megatron-LM's optimizer: fp32 gradients throughout, and optimizer states, replicated or sharded."""

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


class OptimizerMemory(NamedTuple):
    """Megatron's unsharded fp32 gradients, parameters and states; `shards` cards share parameters and states."""

    counts: ShardedCounts
    shards: int
    gradients: AnyTerm | None
    states: AnyTerm | None
    master: AnyTerm | None
    persistent_buffers: PersistentBuffers

    def state_terms(self) -> list[AnyTerm]:
        """Return the memory of fp32 parameters and optimizer states on one card."""
        whole = [item for item in (self.master, self.states) if item is not None]
        if self.shards == 1:
            return whole
        return [sharded_term(item, self.counts.share, self.counts.total, self.shards, SOURCE) for item in whole]


def megatron_snapshots(snapshots: tuple[Snapshot, ...], main: OptimizerMemory) -> tuple[Snapshot, ...]:
    """Return the snapshots of a step with Megatron's optimizer, derived from a step entirely in 16 bits.

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


class MegatronOptimizer(ShardingStrategy):
    """Megatron-LM's optimizer, with states replicated, or sharded over replicas (distributed optimizer)."""

    name = "megatron"
    title = "Megatron-LM"
    version = "Megatron-LM 0.20"
    shares_states = True
    keeps_masters = True

    def stage_name(self, _zero: int) -> str:
        """Return the name of the mode in which replicas share the optimizer states."""
        return "distributed optimizer"

    def stored_memory_summary(self, _parallel: Parallel) -> str:
        """Return a text on the parameters, gradients and states that each card stores."""
        return "16-bit parameters, fp32 gradients from the first pass on, fp32 parameters and optimizer states"

    def timeline(self, step: ShardedStep) -> PhaseSnapshots:
        """Return the memory snapshots of one card in the training step `step`."""
        unsharded_timeline = step.unsharded_timeline
        weights = next(item for item in unsharded_timeline.snapshots[-1].terms if item.name == "weights")
        main = OptimizerMemory(
            counts=step.counts,
            shards=step.cards if step.workload.parallel.zero else 1,
            gradients=step.persistent_term("gradients"),
            states=step.persistent_term("optimizer_states"),
            master=step.master(weights),
            persistent_buffers=step.persistent_buffers,
        )
        return unsharded_timeline._replace(snapshots=megatron_snapshots(unsharded_timeline.snapshots, main))


OPTIMIZER: Final = MegatronOptimizer()
