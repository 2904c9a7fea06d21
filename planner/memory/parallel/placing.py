"""Placement of a workload on cards, which may differ: pipeline stage, layers and timeline of each card."""

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.parallel.micro_batches import NO_EXTRA, ExtraMicroBatches, with_extra_micro_batches
from planner.memory.phases import PeakNeed, PhaseSnapshots
from planner.memory.software import serving_memory, sharding_strategy_of
from planner.memory.software.base import SoftwareMemory
from planner.models.architecture import Architecture
from planner.workload.alignment import ON_TRAINING_CARDS, ROLLOUT_ENGINE
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

if TYPE_CHECKING:
    from planner.memory.parallel.sharding import ShardingStrategy


class CardGroup(NamedTuple):
    """A number of equal cards; `gpu` is None if no card is chosen yet."""

    gpu: Gpu | None
    usable: UsableMemory | None
    number: int = 1


class LoadedCards(NamedTuple):
    """Equal cards with equal memory contents: the timeline of one card, and the layers of their pipeline stage.

    `timeline` is that of one micro-batch; `extra` are further ones in flight.
    """

    cards: CardGroup
    timeline: PhaseSnapshots
    stage: int
    layers: int
    extra: ExtraMicroBatches = NO_EXTRA

    def need(self) -> PeakNeed:
        """Return the peak memory need of one of these cards, without the framework's overhead."""
        return self.timeline.need(self.extra.bytes)

    def timeline_with_all_micro_batches(self) -> PhaseSnapshots:
        """Return the timeline of one card with the activations of all micro-batches in flight."""
        return with_extra_micro_batches(self.timeline, self.extra) if self.extra.bytes else self.timeline


def place_workload(
    architecture: Architecture,
    workload: Training | Inference,
    program: SoftwareMemory[Any],
    cards: tuple[CardGroup, ...],
) -> Iterator[LoadedCards]:
    """Yield each group of equal `cards` with the memory of its share in `workload` (defaults filled in).

    Pipeline stages are assigned to the cards in order.
    """
    if not is_distributed(workload):
        for own in cards:
            timeline = program.timeline(architecture, workload, card_class_of(program, workload, own))
            yield LoadedCards(own, timeline, 0, architecture.depth)
        return
    from planner.memory.parallel.ranks import rank_timelines  # most commands are about one card

    size = sum([own.number for own in cards]) // workload.parallel.pipeline
    if len(cards) == 1:
        card_class, together = card_class_of(program, workload, cards[0]), cards[0]._replace(number=size)
        for rank, timeline, extra in rank_timelines(architecture, workload, program, card_class):
            yield LoadedCards(together, timeline, rank.stage.place, rank.stage.layers, extra)
        return
    pipeline_cards = [own._replace(number=1) for own in cards for _ in range(own.number)]
    counts = layers_by_free_memory(architecture, workload, program, pipeline_cards, size)
    by_class = {
        card_class: rank_timelines(architecture, workload, program, card_class, counts)
        for card_class in {card_class_of(program, workload, own) for own in cards}
    }
    stages = {own.gpu: by_class[card_class_of(program, workload, own)] for own in cards}
    for stage in range(workload.parallel.pipeline):
        for own in _merge_adjacent_groups(pipeline_cards[stage * size : (stage + 1) * size]):
            rank, timeline, extra = stages[own.gpu][stage]
            yield LoadedCards(own, timeline, stage, rank.stage.layers, extra)


def is_distributed(workload: Training | Inference) -> bool:
    """Return whether memory is computed for each rank: cards share the workload, or exchange gradients as replicas.

    Software that can share optimizer states among replicas counts as distributed even on one card.
    """
    parallel = workload.parallel
    if not isinstance(workload, Training):
        return not parallel.is_plain
    return not parallel.is_plain or parallel.state_shards > 1 or sharding_strategy_of(workload).shares_states


def layers_by_free_memory(
    architecture: Architecture,
    workload: Training | Inference,
    program: SoftwareMemory[Any],
    pipeline_cards: list[CardGroup],
    cards_per_stage: int,
) -> tuple[int, ...]:
    """Return the number of layers of each stage, set by the free memory of unequal cards; empty if it is not known.

    The smallest card of a stage decides.
    """
    if workload.parallel.pipeline == 1 or not all(own.usable is not None for own in pipeline_cards):
        return ()
    from planner.memory.parallel.ranks import layers_of_stages  # most commands are about one card

    free = [max(own.usable.bytes - workload.other_processes_bytes, 1) if own.usable else 1 for own in pipeline_cards]
    least = tuple(min(free[start : start + cards_per_stage]) for start in range(0, len(free), cards_per_stage))
    return layers_of_stages(architecture, workload, program, least)


class EngineCard(NamedTuple):
    """A card that an inference engine shares with training: its class for that engine, and its usable memory."""

    engine: Hashable
    usable_bytes: int | None


def card_class_of(program: SoftwareMemory[Any], workload: Training | Inference, cards: CardGroup) -> Hashable:
    """Return the class of `cards`, such as vLLM's default limits, on which the defaults of `program` depend.

    An engine beside training takes a share of its card, so that every size of card is a class of its own.
    """
    if cards.gpu is None:
        return None
    if isinstance(workload, Training) and workload.alignment.engine in ON_TRAINING_CARDS:
        engine = serving_memory(ROLLOUT_ENGINE).card_class(cards.gpu)
        return EngineCard(engine, cards.usable.bytes if cards.usable else None)
    return program.card_class(cards.gpu)


def least_shards(workload: Training | Inference) -> int:
    """Return the minimum number of cards over which every shardable term of `workload` is divided."""
    parallel = workload.parallel
    whole = isinstance(workload, Training) and parallel.zero == 3
    return parallel.tensor * parallel.pipeline * (parallel.state_shards if whole else 1)


def sharing_notes(
    workload: Training | Inference, program: SoftwareMemory[Any], cards: tuple[CardGroup, ...]
) -> Iterator[str]:
    """Yield notes on the assumptions about how several cards share the workload."""
    parallel = workload.parallel
    if isinstance(workload, Training) and is_distributed(workload):
        yield from _sharding_note(sharding_strategy_of(workload), parallel)
    if len(cards) > 1 and parallel.pipeline > 1 and not parallel.pipeline_layers:
        yield program.split_note
    if len(cards) > 1 and parallel.pipeline == 1:
        yield "All GPUs hold the same amount, so the GPU with the least memory decides whether the workload fits."


def _sharding_note(strategy: "ShardingStrategy", parallel: Parallel) -> tuple[str, ...]:
    """Return a note on the sharding strategy, if anything is shared: software, version, and what each card stores."""
    if not strategy.shares_states and parallel.state_shards == 1:
        return ()
    mode = f"ZeRO-{parallel.zero}" if parallel.zero else "Replicas"
    cards = "1 GPU" if parallel.state_shards == 1 else f"{parallel.state_shards:,} GPUs"
    return (f"{mode} as implemented by {strategy.version}, over {cards}: {strategy.stored_memory_summary(parallel)}.",)


def _merge_adjacent_groups(cards: list[CardGroup]) -> list[CardGroup]:
    """Return `cards` with adjacent groups of equal cards merged."""
    merged: list[CardGroup] = []
    for own in cards:
        if merged and merged[-1].gpu == own.gpu:
            merged[-1] = merged[-1]._replace(number=merged[-1].number + own.number)
        else:
            merged.append(own)
    return merged
