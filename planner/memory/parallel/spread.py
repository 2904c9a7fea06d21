"""What the most loaded of several cards holds, and each of the others.

A card's share of the network is an `Architecture` of its own and its share of the work a workload of its own, so that
the formulas for one card give its moments. What training shares beside them is changed in those moments.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.one_card import Run
from planner.memory.parallel.micro_batches import Others, others_of
from planner.memory.parallel.nccl import communicators, most_bytes
from planner.memory.parallel.pipeline import Stage, in_flight, stages_of
from planner.memory.parallel.shares import Beside, buffers, portion
from planner.memory.parallel.splitting import split_layers
from planner.memory.parallel.states import sharded_moments
from planner.memory.parallel.tensor import tensor_share
from planner.memory.parallel.work import is_sharded, own_work
from planner.memory.phases import Moment, Moments
from planner.memory.result import Part
from planner.models.architecture import Architecture, Attention
from planner.units import MIB, ceil_div
from planner.workload.formats import arithmetic
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

_VOCABULARY_OF_MEGATRON: Final = 128
"""Megatron-LM `--make-vocab-size-divisible-by`, for each card of a tensor-parallel group."""
_VOCABULARY_OF_VLLM: Final = 64
"""vLLM `DEFAULT_VOCAB_PADDING_SIZE`, for the whole vocabulary."""
_DDP: Final = "torch DistributedDataParallel: gradient_as_bucket_view is off by default"
_SEQUENCE: Final = "Korthikanti et al. 2022, arXiv 2205.05198 §4.2.2: tokens are gathered before each block"
_RING: Final = "Liu et al. 2023, arXiv 2310.01889: keys and values of the next card arrive while those here are read"
_WORKSPACE: Final = 32 * MIB
_ENGINE: Final = "Transformer Engine get_cublas_workspace_size_bytes: 32 MiB on Hopper, 4 MiB on what was before it"
_HANDED_ON: Final = "Megatron-LM p2p_communication: a received input, and its gradient"


class Rank(NamedTuple):
    """Cards that hold the same: their share of the network, their work, and the micro-batches on their way."""

    stage: Stage
    workload: Training | Inference
    in_flight: int
    cards: int


class HeldByRank(NamedTuple):
    """What is alive on each card of `rank` with one micro-batch, and the `others` that are on their way there."""

    rank: Rank
    alone: Moments
    others: Others


def is_spread(workload: Training | Inference) -> bool:
    """Return whether cards share something, or have to agree: replicas that train do.

    What a step keeps beside the network in Megatron is its own even on one card.
    """
    parallel = workload.parallel
    if not isinstance(workload, Training):
        return not parallel.is_plain
    return not parallel.is_plain or parallel.state_shards > 1 or workload.profile == "megatron"


def held_by_rank(
    architecture: Architecture, workload: Training | Inference, run: Run, counts: tuple[int, ...] = ()
) -> tuple[HeldByRank, ...]:
    """Return the ranks of each stage with what is alive there in each phase; `workload` has its defaults filled in.

    `run` gives the moments of a network on one card; `counts` are the layers of the stages where they are given.
    """
    alike: dict[int, Moments] = {}
    found = []
    outside = communicators(workload)
    apart = Beside(outside=outside, most=most_bytes(outside), apart=sum([part.bytes for part in outside]))
    for rank in ranks(architecture, workload, counts):
        same = id(rank.stage.architecture)
        if same not in alike:
            alike[same] = _rank_moments(rank, workload, run, apart)
        others = others_of(alike[same], rank.in_flight, workload.parallel.interleave)
        found.append(HeldByRank(rank, alike[same], others))
    if len(found) > 1 and isinstance(workload, Inference) and workload.profile == "hf":
        back = _with_outputs_back(found[0].alone, found[-1].alone, ELEMENT_BYTES[workload.compute])
        found[0] = found[0]._replace(alone=back)
    return tuple(found)


def _with_outputs_back(first: Moments, last: Moments, size: int) -> Moments:
    """Return the moments of the first card with the outputs that come back to it, where the inputs were.

    **Source**: accelerate big_modeling.py `dispatch_model`: the hook of the whole model has `io_same_device`.
    """
    made = [item for moment in last.moments if moment.name == "prefill" for item in moment.terms]
    logits = [item for item in made if item.name == "logits"]
    read = [place for place, moment in enumerate(first.moments) if moment.name == "prefill"][-1]
    before = first.moments[read]
    back = [portion(item, 4, size + 4 if size < 4 else size, "share of the fp32 logits") for item in logits]
    held = Moment("prefill", [*before.terms, *back], "the logits come back to the first card, where the input was")
    return first._replace(moments=(*first.moments[: read + 1], held, *first.moments[read + 1 :]))


def ranks(architecture: Architecture, workload: Training | Inference, counts: tuple[int, ...] = ()) -> list[Rank]:
    """Return the ranks of `workload`, those of each stage together."""
    parallel = workload.parallel
    share = _share(architecture, workload)
    own = own_work(workload)
    stages = stages_of(
        share,
        counts or split_layers(architecture, workload),
        parallel.interleave,
        in_file=workload.profile == "llama.cpp",
    )
    cards = (parallel.data or 1) * parallel.tensor * parallel.context
    micro_batches = workload.gradient_accumulation if isinstance(workload, Training) else 1
    return [Rank(stage, own, in_flight(parallel, stage.place, micro_batches), cards) for stage in stages]


def _rank_moments(rank: Rank, workload: Training | Inference, run: Run, apart: Beside) -> Moments:
    """Return what is alive in each phase on a card of `rank`, which does its share of `workload`."""
    if isinstance(workload, Training) and isinstance(rank.workload, Training):
        found = _training(rank, workload, rank.workload, run, apart)
    else:
        found = _with_communication(run(rank.stage.architecture, rank.workload), apart)
    return found._replace(outside_bytes=apart.apart)


def _share(architecture: Architecture, workload: Training | Inference) -> Architecture:
    parallel = workload.parallel
    pad = 1
    if workload.profile == "megatron":
        pad = _VOCABULARY_OF_MEGATRON
    elif workload.profile == "vllm" and _VOCABULARY_OF_VLLM % parallel.tensor == 0:
        pad = _VOCABULARY_OF_VLLM // parallel.tensor
    return tensor_share(architecture, parallel.tensor, parallel.expert, pad, parallel.sequence)


def _training(rank: Rank, workload: Training, own: Training, run: Run, apart: Beside) -> Moments:
    architecture = rank.stage.architecture
    is_last = rank.stage.place == workload.parallel.pipeline - 1
    beside = apart.holding(_buffers(architecture, workload, own))
    if is_sharded(workload):
        found = sharded_moments(architecture, workload, own, run, beside)
        return found if is_last else _without_loss(found)
    plain = run(architecture, own)
    if not is_last:
        plain = _without_loss(plain)
    found = _with_communication(plain, beside.holding(_buckets(plain, workload)))
    in_view = workload.parallel.gradient_as_bucket_view and workload.parallel.state_shards > 1
    return _gradients_throughout(found) if in_view else found


def _with_communication(found: Moments, beside: Beside) -> Moments:
    """Return `found` with buffers that are there from the first pass on."""
    if not beside.held and not beside.outside:
        return found
    held = buffers((), "", beside)
    moments = [moment if moment.name == "load" else moment.beside(held) for moment in found.moments]
    return found._replace(moments=tuple(moments))


def _buckets(plain: Moments, workload: Training) -> tuple[Part, ...]:
    """Return the second copy of the gradients that DistributedDataParallel adds up, unless the first lie in it."""
    if workload.parallel.state_shards < 2 or workload.parallel.gradient_as_bucket_view:
        return ()
    size = sum([item.bytes for item in plain.moments[-1].terms if item.name == "gradients"])
    return (_part("gradient buckets, a second copy of the gradients", size, f"{size:,}", _DDP),)


def _gradients_throughout(found: Moments) -> Moments:
    """Return `found` with all gradients from the first pass on, since they are views of buckets that stay."""
    gradients = [item for item in found.moments[-1].terms if item.name == "gradients"]
    moments = tuple(
        moment
        if moment.name == "load"
        else Moment(
            moment.name,
            [*(item for item in moment.terms if item.name != "gradients"), *gradients],
            moment.explanation,
        )
        for moment in found.moments
    )
    return found._replace(moments=moments)


def _buffers(architecture: Architecture, workload: Training, own: Training) -> tuple[Part, ...]:
    """Return the tensors on their way between cards: gathered tokens, keys and values, inputs of the next stage."""
    parallel = workload.parallel
    return _sent(
        parallel,
        workload.profile,
        own.micro_batch * (own.sequence_length or 0),
        architecture.hidden,
        _key_width(architecture) if parallel.context > 1 else 0,
        ELEMENT_BYTES[arithmetic(own.compute)],
    )


@lru_cache(maxsize=256)
def _sent(parallel: Parallel, profile: str, tokens: int, hidden: int, width: int, size: int) -> tuple[Part, ...]:
    stream = tokens * hidden * size
    found = []
    if profile == "megatron":
        found.append(_part("workspace of Transformer Engine", _WORKSPACE, f"{_WORKSPACE:,}", _ENGINE))
    if parallel.sequence and parallel.tensor > 1:
        found.append(_part("tokens gathered for a block", stream, f"{tokens:,} × {hidden:,} × w", _SEQUENCE))
    if parallel.context > 1:
        found.append(
            _part("keys and values on their way", 4 * tokens * width * size, f"4 × {tokens:,} × {width:,} × w", _RING)
        )
    if parallel.pipeline > 1:
        sent = ceil_div(stream, parallel.tensor if parallel.sequence else 1)
        found.append(_part("input of a stage and its gradient", 2 * sent, f"2 × {sent:,}", _HANDED_ON))
    return tuple(found)


@lru_cache(maxsize=256)
def _key_width(architecture: Architecture) -> int:
    mixers = [group.layer.mixer for group in architecture.main.groups]
    return max([mixer.kv_dim for mixer in mixers if isinstance(mixer, Attention)], default=0)


def _part(name: str, size: int, formula: str, source: str) -> Part:
    return Part(name=name, bytes=size, formula=formula, source=source)


def _without_loss(found: Moments) -> Moments:
    """Return the moments of a stage without a head: there is no loss to compute."""
    return found._replace(moments=tuple([moment for moment in found.moments if moment.name != "loss"]))
