"""Which card holds what: the ranks of a workload on cards that may differ."""

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.parallel.micro_batches import NO_OTHERS, Others, with_others
from planner.memory.phases import Need, PhaseSnapshots
from planner.memory.software import sharder_of
from planner.memory.software.base import SoftwareMemory
from planner.models.architecture import Architecture
from planner.workload.training import Training
from planner.workload.workload import Inference


class Cards(NamedTuple):
    """Some equal cards; none chosen yet where `gpu` is none."""

    gpu: Gpu | None
    usable: UsableMemory | None
    number: int = 1


class Loaded(NamedTuple):
    """Cards that hold the same, and what is alive on each of them; `layers` of the network at their `stage`.

    `timeline` is that of one micro-batch, and `others` are on their way beside it.
    """

    cards: Cards
    timeline: PhaseSnapshots
    stage: int
    layers: int
    others: Others = NO_OTHERS

    def need(self) -> Need:
        """Return the most that each of the cards holds."""
        return self.timeline.need(self.others.bytes)

    def whole_timeline(self) -> PhaseSnapshots:
        """Return the timeline with the activations of the other micro-batches in it."""
        return with_others(self.timeline, self.others)


def place(
    architecture: Architecture,
    workload: Training | Inference,
    program: SoftwareMemory[Any],
    cards: tuple[Cards, ...],
) -> Iterator[Loaded]:
    """Yield what each of `cards` holds, those that hold the same together; `workload` has its defaults filled in.

    The stages of the pipeline take the cards one after the other.
    """
    if not is_spread(workload):
        for own in cards:
            timeline = program.timeline(architecture, workload, class_of(program, own.gpu))
            yield Loaded(own, timeline, 0, architecture.depth)
        return
    from planner.memory.parallel.spread import held_by_rank  # most commands are about one card

    size = sum([own.number for own in cards]) // workload.parallel.pipeline
    in_order = [own._replace(number=1) for own in cards for _ in range(own.number)] if len(cards) > 1 else []
    counts = stage_counts(architecture, workload, program, cards, in_order, size)
    by_class = {
        card_class: held_by_rank(architecture, workload, program, card_class, counts)
        for card_class in {class_of(program, own.gpu) for own in cards}
    }
    stages = {own.gpu: by_class[class_of(program, own.gpu)] for own in cards}
    together = [cards[0]._replace(number=size)]
    for stage in range(workload.parallel.pipeline):
        for own in _together(in_order[stage * size : (stage + 1) * size]) if in_order else together:
            rank, timeline, others = stages[own.gpu][stage]
            yield Loaded(own, timeline, stage, rank.stage.layers, others)


def is_spread(workload: Training | Inference) -> bool:
    """Return whether cards share something, or have to agree: replicas that train do.

    What a step keeps beside the network may be an optimizer's own even on one card.
    """
    parallel = workload.parallel
    if not isinstance(workload, Training):
        return not parallel.is_plain
    return not parallel.is_plain or parallel.state_shards > 1 or sharder_of(workload).shares_states


def stage_counts(
    architecture: Architecture,
    workload: Training | Inference,
    program: SoftwareMemory[Any],
    cards: tuple[Cards, ...],
    in_order: list[Cards],
    size: int,
) -> tuple[int, ...]:
    """Return how many layers each stage holds by what is free on unequal cards, or nothing where that does not count.

    Of the cards of a stage the smallest counts.
    """
    known = all(own.usable is not None for own in cards)
    if workload.parallel.pipeline == 1 or not in_order or not known:
        return ()
    from planner.memory.parallel.spread import layers_of_stages  # most commands are about one card

    free = [max(own.usable.bytes - workload.other_processes_bytes, 1) if own.usable else 1 for own in in_order]
    least = tuple(min(free[start : start + size]) for start in range(0, len(free), size))
    return layers_of_stages(architecture, workload, program, least)


def class_of(program: SoftwareMemory[Any], gpu: Gpu | None) -> Hashable:
    """Return what of `gpu` the defaults of `program` depend on."""
    return program.card_class(gpu) if gpu else None


def least_shards(workload: Training | Inference) -> int:
    """Return by how many cards everything that can be shared is divided at least."""
    parallel = workload.parallel
    whole = isinstance(workload, Training) and parallel.zero == 3
    return parallel.tensor * parallel.pipeline * (parallel.state_shards if whole else 1)


def spread_notes(
    workload: Training | Inference, program: SoftwareMemory[Any], cards: tuple[Cards, ...]
) -> Iterator[str]:
    """Say what was assumed of how several cards share the work."""
    parallel = workload.parallel
    if isinstance(workload, Training) and is_spread(workload):
        yield from _sharder_notes(workload)
    if len(cards) > 1 and parallel.pipeline > 1 and not parallel.pipeline_layers:
        yield program.split_note
    if len(cards) > 1 and parallel.pipeline == 1:
        yield "Every card holds the same, so that the smallest decides."


def _sharder_notes(workload: Training) -> Iterator[str]:
    """Say what spreads the training, in which version, and what it keeps."""
    sharder, parallel = sharder_of(workload), workload.parallel
    if not sharder.shares_states and parallel.state_shards == 1:
        return
    what, does = (f"ZeRO-{parallel.zero}", "does it") if parallel.zero else ("Replicas", "has them")
    cards = "1 card" if parallel.state_shards == 1 else f"{parallel.state_shards:,} cards"
    yield f"{what} as {sharder.version} {does}, over {cards}: {sharder.keeps(parallel)}."


def _together(cards: list[Cards]) -> list[Cards]:
    """Return neighbours of one kind as one."""
    found: list[Cards] = []
    for own in cards:
        if found and found[-1].gpu == own.gpu:
            found[-1] = found[-1]._replace(number=found[-1].number + own.number)
        else:
            found.append(own)
    return found
