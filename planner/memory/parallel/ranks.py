"""Memory timelines of a distributed workload's ranks: one for each pipeline stage.

The share of the network on a card is itself an `Architecture`, and its share of the work a workload, so that the
formulas for one card give its timeline. Communication buffers and sharded training states are added to that.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.parallel.pipeline import (
    ExtraMicroBatches,
    Stage,
    extra_micro_batches,
    micro_batches_in_flight,
    stages_of,
    with_extra_micro_batches,
)
from planner.memory.parallel.sharding import REPLICAS, per_card_workload, sharded_timeline
from planner.memory.parallel.shares import PersistentBuffers, communication_term
from planner.memory.parallel.tensor import tensor_share
from planner.memory.phases import PhaseSnapshots
from planner.memory.result import TermPart
from planner.memory.software import memory_of, serving_memory, sharding_strategy_of, training_memory
from planner.memory.software.base import SoftwareMemory
from planner.models.architecture import Architecture, Attention
from planner.units import ceil_div
from planner.workload.formats import product_format
from planner.workload.training import Training
from planner.workload.workload import Inference

_DDP_SOURCE: Final = "torch DistributedDataParallel: gradient_as_bucket_view is off by default"
_SEQUENCE_SOURCE: Final = "Korthikanti et al. 2022, arXiv 2205.05198 §4.2.2: tokens are gathered before each block"
_RING_SOURCE: Final = (
    "Liu et al. 2023, arXiv 2310.01889: keys and values of the next card arrive while those here are read"
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
    alike: dict[int, PhaseSnapshots] = {}
    by_stage = []
    outside = program.communicators(workload)
    most = program.most_communicator_bytes(outside)
    outside_buffers = PersistentBuffers(
        outside=outside, library_high_bytes=most, library_bytes=sum([part.bytes for part in outside])
    )
    for rank in ranks(architecture, workload, counts):
        same = id(rank.stage.architecture)
        if same not in alike:
            alike[same] = _rank_timeline(rank, workload, program, card_class, outside_buffers)
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


def _rank_timeline(
    rank: Rank,
    workload: Training | Inference,
    program: SoftwareMemory[Any],
    card_class: Hashable,
    outside_buffers: PersistentBuffers,
) -> PhaseSnapshots:
    """Return the memory timeline of a card of `rank`, which computes its share of `workload`."""
    if isinstance(workload, Training) and isinstance(rank.workload, Training):
        timeline = _training_timeline(rank, workload, rank.workload, outside_buffers)
    else:
        timeline = _with_communication(
            program.timeline(rank.stage.architecture, rank.workload, card_class), outside_buffers
        )
    outside = outside_buffers.library_bytes
    return timeline._replace(outside_bytes=outside) if outside else timeline


def _training_timeline(
    rank: Rank, workload: Training, own: Training, outside_buffers: PersistentBuffers
) -> PhaseSnapshots:
    """Return the memory timeline of a card of `rank` in training, with communication buffers and sharding."""
    architecture, program = rank.stage.architecture, training_memory(workload.profile)
    sharding_strategy = program.sharding_strategy(workload)
    is_last = rank.stage.place == workload.parallel.pipeline - 1
    persistent_buffers = outside_buffers.with_buffers(
        (*program.library_buffers(), *_transfer_buffer_parts(architecture, workload, own))
    )
    if sharding_strategy.shares_states:
        timeline = sharded_timeline(architecture, workload, own, program, sharding_strategy, persistent_buffers)
        return timeline if is_last else _without_loss(timeline)
    plain = program.timeline(architecture, own)
    timeline = _with_communication(
        plain, persistent_buffers.with_buffers(_gradient_bucket_parts(plain, workload)), with_loss=is_last
    )
    in_view = workload.parallel.gradient_as_bucket_view and workload.parallel.state_shards > 1
    return _with_persistent_gradients(timeline) if in_view else timeline


def _with_communication(
    timeline: PhaseSnapshots, persistent_buffers: PersistentBuffers, *, with_loss: bool = True
) -> PhaseSnapshots:
    """Return `timeline` with communication buffers from the first pass on; without the loss unless `with_loss`."""
    if not persistent_buffers.held and not persistent_buffers.outside:
        return timeline if with_loss else _without_loss(timeline)
    held = communication_term((), "", persistent_buffers)
    snapshots = [
        snapshot if snapshot.name == "load" else snapshot.with_terms([*snapshot.terms, held])
        for snapshot in timeline.snapshots
        if with_loss or snapshot.name != "loss"
    ]
    return timeline._replace(snapshots=tuple(snapshots))


def _gradient_bucket_parts(plain: PhaseSnapshots, workload: Training) -> tuple[TermPart, ...]:
    """Return DistributedDataParallel's gradient buckets; empty if gradients are views into these buckets."""
    if workload.parallel.state_shards < 2 or workload.parallel.gradient_as_bucket_view:
        return ()
    size = sum([item.bytes for item in plain.snapshots[-1].terms if item.name == "gradients"])
    return (_buffer_part("gradient buckets, a second copy of the gradients", size, f"{size:,}", _DDP_SOURCE),)


def _with_persistent_gradients(timeline: PhaseSnapshots) -> PhaseSnapshots:
    """Return `timeline` with all gradients from the first pass on, as views into persistent buckets."""
    gradients = [item for item in timeline.snapshots[-1].terms if item.name == "gradients"]
    snapshots = tuple(
        snapshot
        if snapshot.name == "load"
        else snapshot.with_terms([*(item for item in snapshot.terms if item.name != "gradients"), *gradients])
        for snapshot in timeline.snapshots
    )
    return timeline._replace(snapshots=snapshots)


def _transfer_buffer_parts(architecture: Architecture, workload: Training, own: Training) -> tuple[TermPart, ...]:
    """Return the buffers of tensors sent between cards: gathered tokens, keys and values, stage inputs."""
    parallel, tokens, hidden = workload.parallel, own.micro_batch * (own.sequence_length or 0), architecture.hidden
    size = ELEMENT_BYTES[product_format(own.compute)]
    stream = tokens * hidden * size
    parts = []
    if parallel.sequence and parallel.tensor > 1:
        parts.append(
            _buffer_part(
                "tokens gathered from all cards for a block", stream, f"{tokens:,} × {hidden:,} × w", _SEQUENCE_SOURCE
            )
        )
    if parallel.context > 1:
        width = _key_value_width(architecture)
        parts.append(
            _buffer_part(
                "keys and values in transfer",
                4 * tokens * width * size,
                f"4 × {tokens:,} × {width:,} × w",
                _RING_SOURCE,
            )
        )
    if parallel.pipeline > 1:
        sent = ceil_div(stream, parallel.tensor if parallel.sequence else 1)
        parts.append(_buffer_part("input of a stage and its gradient", 2 * sent, f"2 × {sent:,}", _PIPELINE_SOURCE))
    return tuple(parts)


@lru_cache(maxsize=256)
def _key_value_width(architecture: Architecture) -> int:
    """Return the largest width of keys or values in any attention layer, in elements per token."""
    mixers = [group.layer.mixer for group in architecture.main.groups]
    return max([mixer.kv_dim for mixer in mixers if isinstance(mixer, Attention)], default=0)


def _buffer_part(name: str, size: int, formula: str, source: str) -> TermPart:
    """Return a communication buffer of `size` bytes as part of a memory term."""
    return TermPart(name=name, bytes=size, formula=formula, source=source)


def _without_loss(timeline: PhaseSnapshots) -> PhaseSnapshots:
    """Return `timeline` without the loss phase, for a pipeline stage without an output head."""
    return timeline._replace(snapshots=tuple([snapshot for snapshot in timeline.snapshots if snapshot.name != "loss"]))
