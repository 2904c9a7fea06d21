"""What Megatron-LM keeps on a card: gradients in fp32 throughout, and the optimizer's state, whole or shared."""

from typing import Final, NamedTuple

from planner.memory.parallel.shares import Beside, Counts, Held, buffers, renamed, shared
from planner.memory.phases import Snapshot
from planner.memory.result import TermName

SOURCE: Final = "Megatron-LM docs/user-guide/features/dist_optimizer.md; core/distributed/param_and_grad_buffer.py"
_REPLACED: Final[frozenset[TermName]] = frozenset(("gradients", "optimizer_states", "master_weights", "communication"))


class MainCopies(NamedTuple):
    """What Megatron keeps of a network in fp32: `shards` cards share the state where the optimizer is distributed."""

    counts: Counts
    shards: int
    gradients: Held | None
    states: Held | None
    master: Held | None
    beside: Beside

    def state(self) -> list[Held]:
        """Return what the optimizer keeps on a card."""
        whole = [item for item in (self.master, self.states) if item is not None]
        if self.shards == 1:
            return whole
        return [shared(item, self.counts.share, self.counts.total, self.shards, SOURCE) for item in whole]


def megatron_snapshots(snapshots: tuple[Snapshot, ...], main: MainCopies) -> tuple[Snapshot, ...]:
    """Return the snapshots of Megatron's step from those of a step that holds everything in 16 bits.

    **Formula** with Adam: 2P of parameters, 4P of gradients in one buffer that stays, 12P of state, with the
    distributed optimizer 12P/N: 18 and 6 + 12/N bytes per parameter.

    **Source**: Megatron-LM dist_optimizer.md.
    """
    gradients = [] if main.gradients is None else [renamed(main.gradients, SOURCE)]
    kept = [*gradients, *main.state(), buffers((), SOURCE, main.beside)]
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
