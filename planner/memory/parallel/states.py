"""What training keeps beside the network, where replicas share it: by FSDP, DeepSpeed or Megatron."""

from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.one_card import Run
from planner.memory.parallel.deepspeed import PERSISTENT, Zero, zero_moments
from planner.memory.parallel.fsdp import KEPT, Backward, Sharding, Units, fsdp_moments
from planner.memory.parallel.fsdp import SOURCE as FSDP_SOURCE
from planner.memory.parallel.megatron import MainCopies, megatron_moments
from planner.memory.parallel.shares import Beside, Counts, Held, renamed, sharded_counts, shared
from planner.memory.parallel.work import ALONE, sharder_of
from planner.memory.phases import Moment, Moments
from planner.memory.precision import Precision, training_precision
from planner.memory.result import TermName
from planner.memory.tensors import placed_tensors
from planner.models.architecture import Architecture, Stack
from planner.units import ceil_div
from planner.workload.formats import arithmetic
from planner.workload.training import Training

_DECIDING: Final = (
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
_deciding: Final = attrgetter(*_DECIDING)


def sharded_moments(architecture: Architecture, workload: Training, own: Training, run: Run, beside: Beside) -> Moments:
    """Return the moments of a step whose states, gradients or parameters replicas share.

    `own` is what a card does of `workload` as if it were alone, without autocast; `beside` is there throughout.

    **Formula**: under autocast the parameters are sharded in fp32 and gathered in 16 bits, in which everything is
    computed; nothing is cast once more.

    **Source**: PyTorch `MixedPrecisionPolicy`, as set by accelerate (`param_dtype`, `reduce_dtype`: 16 bits);
    DeepSpeed's and Megatron's 16-bit engines with fp32 copies.
    """
    found = run(architecture, own)
    sharder = sharder_of(workload)
    kept = _kept(architecture, _what_is_kept(workload, own, copies=sharder != "fsdp"), run)
    if sharder == "fsdp":
        return _fsdp(architecture, workload, own, found, kept, beside)
    if sharder == "deepspeed":
        return _deepspeed(architecture, workload, found, kept, beside)
    return _megatron(architecture, workload, found, kept, beside)


class _KeptBy(NamedTuple):
    """What decides what a step keeps, whatever it computes: the `_DECIDING` fields, and whether all is in fp32."""

    values: tuple[object, ...]
    in_fp32: bool


def _what_is_kept(workload: Training, own: Training, *, copies: bool) -> _KeptBy:
    """Return what decides what `workload` keeps between steps.

    It keeps fp32 where parameters are in fp32 between steps; with `copies` 16-bit ones have fp32 copies.
    """
    return _KeptBy(_deciding(workload), own.weights != workload.weights or (copies and not own.adapts))


@lru_cache(maxsize=256)
def _kept(architecture: Architecture, by: _KeptBy, run: Run) -> tuple[Held, ...]:
    """Return what is there while the optimizer steps."""
    fields = dict(zip(_DECIDING, by.values, strict=True))
    formats = {"compute": "fp32", "weights": "fp32"} if by.in_fp32 else {}
    smallest = Training.model_validate({**fields, **formats, "sequence_length": 1, "parallel": ALONE})
    step = run(architecture, smallest).moments[-1]
    return tuple(item for item in step.terms if item.name in (*KEPT, "gradients"))


@lru_cache(maxsize=256)
def _shares(architecture: Architecture, kept: tuple[Held, ...], cards: int, expert_cards: int) -> tuple[Held, ...]:
    """Return what one of `cards` holds of what is kept."""
    counts = sharded_counts(architecture, cards, expert_cards)
    return tuple(shared(item, counts.share, counts.total, cards, FSDP_SOURCE) for item in kept)


def _named(kept: tuple[Held, ...], name: TermName) -> Held | None:
    return next((item for item in kept if item.name == name), None)


def _fsdp(
    architecture: Architecture,
    workload: Training,
    own: Training,
    found: Moments,
    kept: tuple[Held, ...],
    beside: Beside,
) -> Moments:
    parallel = workload.parallel
    cards = parallel.state_shards
    counts = sharded_counts(architecture, cards, cards // parallel.expert)
    shares = _shares(architecture, kept, cards, cards // parallel.expert)
    lasting = tuple([item for item in shares if item.name != "gradients"])
    reduced = [item for item in shares if item.name == "gradients"]
    accumulates, offloads = workload.gradient_accumulation > 1, parallel.offload == "parameters"
    sharding = Sharding(
        counts=counts,
        cards=cards,
        units=_units(counts, workload.adapts, *_gathered_bytes(found.moments[-1])),
        kept=lasting,
        gradients=reduced[0] if reduced else None,
        persistent=() if offloads else (*lasting, *reduced) if accumulates else lasting,
        accumulates=accumulates,
        keeps_units=not parallel.reshard_after_forward,
        offloads=offloads,
        beside=beside,
    )
    frees = Backward(found.layer_bytes, found.behind_bytes, _norm_flight(architecture, own))
    moments = fsdp_moments(found.moments, sharding, frees)
    return found._replace(moments=moments, host_bytes=sharding.host_bytes())


def _norm_flight(architecture: Architecture, own: Training) -> int:
    """Return what the backward pass holds in the norm before the mixer, where all gradients of the layer are there.

    **Formula**: a fused norm reads the gradient of the projections' input and writes its own, beside that of the
    stream: 3 · w · h; one computed in steps holds five fp32 tensors of the stream beside them, and what it kept itself.
    """
    precision = training_precision(own)
    tokens = own.micro_batch * (own.sequence_length or 0)
    return tokens * max([_norm_bytes(stack, precision) for stack in architecture.stacks])


@lru_cache(maxsize=512)
def _norm_bytes(stack: Stack, precision: Precision) -> int:
    norm = stack.groups[0].layer.norm
    flight = 3 * precision.compute_bytes * stack.hidden
    return flight if norm.native else flight + 5 * 4 * stack.hidden + 4 * stack.hidden


def _gathered_bytes(step: Moment) -> tuple[int, int]:
    """Return the bytes of all parameters in the format that the step computes in, and of all gradients."""
    held = sum([item.bytes for item in step.terms if item.name in ("weights", "adapters")])
    return held, sum([item.bytes for item in step.terms if item.name == "gradients"])


@lru_cache(maxsize=512)
def _units(counts: Counts, adapts: bool, held: int, gradients: int) -> Units:
    """Return the bytes of a layer and of the edges."""

    def of(count: int, whole: int) -> int:
        return ceil_div(whole * count, counts.total)

    if adapts:
        each = ceil_div(gradients, counts.layers)
        return Units(of(counts.layer, held), of(counts.edges, held), each, 0, each, 0)
    # Gradients have the shapes of their parameters; only what is gathered and what is reduced is filled up.
    return Units(
        of(counts.layer, held),
        of(counts.edges, held),
        of(counts.own_layer, gradients),
        of(counts.own_edges, gradients),
        of(counts.layer, gradients),
        of(counts.edges, gradients),
    )


def _deepspeed(
    architecture: Architecture,
    workload: Training,
    found: Moments,
    kept: tuple[Held, ...],
    beside: Beside,
) -> Moments:
    parallel = workload.parallel
    cards = parallel.state_shards
    counts = sharded_counts(architecture, cards, cards // parallel.expert)
    step = {item.name: item for item in found.moments[-1].terms}
    size = ELEMENT_BYTES[arithmetic(workload.compute)]
    zero = Zero(
        stage=parallel.zero,
        cards=cards,
        counts=counts,
        size=size,
        small=_small(architecture),
        weights=step["weights"],
        gradients=step.get("gradients"),
        states=_named(kept, "optimizer_states"),
        master=_master(_named(kept, "weights"), step["weights"]),
        adapters=_named(kept, "adapters"),
        offload=parallel.offload,
        beside=beside,
    )
    moments = zero_moments(found.moments, zero, workload.gradient_accumulation > 1)
    return found._replace(moments=moments, host_bytes=zero.host_bytes())


def _megatron(
    architecture: Architecture,
    workload: Training,
    found: Moments,
    kept: tuple[Held, ...],
    beside: Beside,
) -> Moments:
    parallel = workload.parallel
    cards = parallel.state_shards
    weights = next(item for item in found.moments[-1].terms if item.name == "weights")
    main = MainCopies(
        counts=sharded_counts(architecture, cards, cards // parallel.expert),
        shards=cards if parallel.zero else 1,
        gradients=_named(kept, "gradients"),
        states=_named(kept, "optimizer_states"),
        master=_master(_named(kept, "weights"), weights),
        beside=beside,
    )
    return found._replace(moments=megatron_moments(found.moments, main))


def _master(copies: Held | None, weights: Held) -> Held | None:
    """Return the fp32 copies of parameters in 16 bits; parameters in fp32 need none."""
    if copies is None or copies.bytes <= weights.bytes:
        return None
    return renamed(copies, "the fp32 parameters that the optimizer updates", "master_weights")


@lru_cache(maxsize=256)
def _small(architecture: Architecture) -> int:
    """Return the parameters in tensors that ZeRO-3 does not share."""
    return sum([tensor.size * count for tensor, count in placed_tensors(architecture) if tensor.size < PERSISTENT])
