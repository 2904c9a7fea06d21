"""Memory timelines of a distributed workload's ranks: one for each pipeline stage.

The share of the network on a card is itself an `Architecture`, and its share of the work a workload, so that the
formulas for one card give its timeline. Communication buffers and sharded training states are added to that.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planner.dtypes import ELEMENT_BYTES
from planner.memory.parallel.micro_batches import (
    ExtraMicroBatches,
    extra_micro_batches,
    micro_batches_in_flight,
    with_extra_micro_batches,
)
from planner.memory.parallel.pipeline import Stage, stages_of
from planner.memory.parallel.sharding import REPLICAS, ShardingStrategy, SharedStep, per_card_workload
from planner.memory.parallel.shares import PersistentBuffers, communication_term
from planner.memory.parallel.tensor import tensor_share
from planner.memory.phases import PhaseSnapshots
from planner.memory.result import TermPart
from planner.memory.software import memory_of, serving_memory, sharding_strategy_of, training_memory
from planner.memory.software.base import ServingMemory, SoftwareMemory
from planner.models.architecture import Architecture, Attention
from planner.units import ceil_div
from planner.workload.formats import product_format
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

if TYPE_CHECKING:
    from planner.memory.software.pytorch import TrainingMemory

_SEQUENCE_SOURCE: Final = "Korthikanti et al. 2022, arXiv 2205.05198 §4.2.2: tokens are gathered before each block"
_RING_SOURCE: Final = (
    "Liu et al. 2023, arXiv 2310.01889: keys and values of the next GPU arrive while those here are read"
)
_PIPELINE_SOURCE: Final = "Megatron-LM p2p_communication: a received input, and its gradient"


class Rank(NamedTuple):
    """Cards with equal memory contents: pipeline stage, one card's workload, and micro-batches in flight."""

    stage: Stage
    workload: Training | Inference
    in_flight: int
    cards: int


class RankTimeline(NamedTuple):
    """Timeline of one card of `rank` with a single micro-batch, and the `extra` micro-batches in flight."""

    rank: Rank
    alone: PhaseSnapshots
    extra: ExtraMicroBatches


def rank_timelines(
    architecture: Architecture,
    workload: Training | Inference,
    program: SoftwareMemory[Any],
    card_class: Hashable = None,
    counts: tuple[int, ...] = (),
) -> tuple[RankTimeline, ...]:
    """Return the rank and timeline of each pipeline stage; `workload` has its defaults filled in.

    `program` runs it on cards of `card_class`; `counts` are the numbers of layers of the stages, if given.
    """
    outside = program.communicators(workload)
    buffers = PersistentBuffers(
        outside=outside,
        library_high_bytes=program.most_communicator_bytes(outside),
        library_bytes=sum([part.bytes for part in outside]),
    )
    timeline_of: Callable[[Rank], PhaseSnapshots]
    if isinstance(workload, Training):
        trainer = training_memory(workload.profile, architecture)
        strategy = trainer.sharding_strategy(workload)
        timeline_of = partial(_training_timeline, workload, trainer, strategy, buffers, card_class)
    else:
        timeline_of = partial(_serving_timeline, program, card_class, buffers)
    alike: dict[int, PhaseSnapshots] = {}
    by_stage = []
    for rank in ranks(architecture, workload, counts):
        same = id(rank.stage.architecture)
        if same not in alike:
            alike[same] = timeline_of(rank)
        extra = extra_micro_batches(alike[same], rank.in_flight, workload.parallel.interleave)
        by_stage.append(RankTimeline(rank, alike[same], extra))
    if len(by_stage) > 1 and isinstance(workload, Inference):
        serving = serving_memory(workload.profile, architecture)
        back = serving.with_returned_outputs(by_stage[0].alone, by_stage[-1].alone, workload)
        by_stage[0] = by_stage[0]._replace(alone=back)
    return tuple(by_stage)


def timelines_by_stage(
    architecture: Architecture, workload: Training | Inference, card_class: Hashable = None
) -> tuple[tuple[Rank, PhaseSnapshots], ...]:
    """Return the rank of each pipeline stage with its timeline, all micro-batches in flight included."""
    held = rank_timelines(architecture, workload, memory_of(architecture, workload), card_class)
    return tuple(
        [(rank, with_extra_micro_batches(alone, extra) if extra.bytes else alone) for rank, alone, extra in held]
    )


def ranks(architecture: Architecture, workload: Training | Inference, counts: tuple[int, ...] = ()) -> list[Rank]:
    """Return one rank for each pipeline stage of `workload`; `counts` are the stages' layers, if known."""
    parallel, program = workload.parallel, memory_of(architecture, workload)
    pad = program.vocabulary_multiple(parallel.tensor) if program.divides_vocabulary else None
    share = tensor_share(architecture, parallel.tensor, parallel.expert, pad, parallel.sequence)
    own = per_card_workload(workload, sharding_strategy_of(workload) if isinstance(workload, Training) else REPLICAS)
    layers = counts or layers_of_stages(architecture, workload, program)
    stages = stages_of(
        share,
        layers,
        parallel.interleave,
        formats_by_layer=program.place_decides_formats,
        head_on_first=program.head_on_first_stage,
    )
    cards = (parallel.data or 1) * parallel.tensor * parallel.context
    micro_batches = workload.gradient_accumulation if isinstance(workload, Training) else 1
    return [Rank(stage, own, micro_batches_in_flight(parallel, stage.place, micro_batches), cards) for stage in stages]


def layers_of_stages(
    architecture: Architecture,
    workload: Training | Inference,
    program: SoftwareMemory[Any],
    free_bytes: tuple[int, ...] = (),
) -> tuple[int, ...]:
    """Return the number of layers of each stage: set in the workload, or split by `program` by free memory."""
    parallel = workload.parallel
    if parallel.pipeline_layers or parallel.pipeline == 1:
        return parallel.pipeline_layers or (architecture.depth,)
    return program.split_layers(architecture, workload, free_bytes)


def _serving_timeline(
    program: SoftwareMemory[Any], card_class: Hashable, buffers: PersistentBuffers, rank: Rank
) -> PhaseSnapshots:
    """Return the memory timeline of a card of `rank` in serving, with communicators from the first pass on."""
    timeline = program.timeline(rank.stage.architecture, rank.workload, card_class)
    if not buffers.outside:
        return timeline
    held = communication_term((), "", buffers)
    snapshots = [
        snapshot if snapshot.name == "load" else snapshot.with_terms([*snapshot.terms, held])
        for snapshot in timeline.snapshots
    ]
    pool = None
    if timeline.pool is not None:
        pool = cast("ServingMemory", program).pool_beside(timeline.pool, buffers.library_bytes)
    return timeline._replace(snapshots=tuple(snapshots), outside_bytes=buffers.library_bytes, pool=pool)


def _training_timeline(
    workload: Training,
    program: "TrainingMemory",
    strategy: ShardingStrategy,
    outside: PersistentBuffers,
    card_class: Hashable,
    rank: Rank,
) -> PhaseSnapshots:
    """Return the memory timeline of a card of `rank`, which computes its share of `workload` in training."""
    architecture, own = rank.stage.architecture, cast("Training", rank.workload)
    parallel = workload.parallel
    transfers = _transfer_buffer_parts(
        parallel,
        own.micro_batch * (own.sequence_length or 0),
        architecture.hidden,
        _key_value_width(architecture) if parallel.context > 1 else 0,
        ELEMENT_BYTES[product_format(own.compute)],
    )
    buffers = outside.with_buffers((*program.library_buffers(), *transfers))

    def trained(architecture: Architecture, asked: Training) -> PhaseSnapshots:
        """Return the memory of forward pass, backward pass and optimizer step of `asked`."""
        each = own if asked is workload else cast("Training", per_card_workload(asked, strategy))
        held = buffers if asked is workload else PersistentBuffers()
        step = program.step(architecture, each)
        return strategy.timeline(SharedStep(architecture, asked, each, program, step, held))

    timeline = program.aligned(architecture, workload, trained, card_class)
    snapshots = timeline.snapshots
    if rank.stage.place < parallel.pipeline - 1:  # only the last stage has an output head
        snapshots = tuple([snapshot for snapshot in snapshots if snapshot.name != "loss"])
    return timeline._replace(snapshots=snapshots, outside_bytes=outside.library_bytes)


def _transfer_buffer_parts(
    parallel: Parallel, tokens: int, hidden: int, key_value_width: int, element_bytes: int
) -> tuple[TermPart, ...]:
    """Return the buffers of tensors sent between cards: gathered tokens, keys and values, stage inputs.

    Cached, since they are the same for most stages of a pipeline.
    """
    stream = tokens * hidden * element_bytes
    parts = []
    if parallel.sequence and parallel.tensor > 1:
        parts.append(
            _buffer_part(
                "tokens gathered from all GPUs for a block", stream, f"{tokens:,} × {hidden:,} × w", _SEQUENCE_SOURCE
            )
        )
    if parallel.context > 1:
        parts.append(
            _buffer_part(
                "keys and values in transfer",
                4 * tokens * key_value_width * element_bytes,
                f"4 × {tokens:,} × {key_value_width:,} × w",
                _RING_SOURCE,
            )
        )
    if parallel.pipeline > 1:
        sent = ceil_div(stream, parallel.tensor if parallel.sequence else 1)
        parts.append(_buffer_part("input of a stage and its gradient", 2 * sent, f"2 × {sent:,}", _PIPELINE_SOURCE))
    return tuple(parts)


def _key_value_width(architecture: Architecture) -> int:
    """Return the largest width of keys or values in any attention layer, in elements per token."""
    mixers = [group.layer.mixer for group in architecture.main.groups]
    return max([mixer.kv_dim for mixer in mixers if isinstance(mixer, Attention)], default=0)


def _buffer_part(name: str, size: int, formula: str, source: str) -> TermPart:
    """Return a communication buffer of `size` bytes as part of a memory term."""
    return TermPart(name=name, bytes=size, formula=formula, source=source)
