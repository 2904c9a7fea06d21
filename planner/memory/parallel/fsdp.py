"""Memory of a card under PyTorch's FSDP2, which shards parameters, gradients and optimizer states by layer."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.parallel.sharding import ShardingStrategy, SharedStep, UnshardedTerms, counts_per_card
from planner.memory.parallel.shares import (
    OFFLOADED,
    Buffer,
    PersistentBuffers,
    ShardedCounts,
    communication_term,
    partial_term,
    sharded_term,
    with_more_bytes,
)
from planner.memory.phases import NO_TERMS, AnyTerm, LastingTerms, PhaseSnapshots, Snapshot, lasting_terms
from planner.memory.precision import Precision, training_precision
from planner.memory.training.step import LOADED, Moment, StepMoments
from planner.models.architecture import Architecture, Stack
from planner.units import ceil_div
from planner.workload.parallel import Parallel
from planner.workload.training import Training

SOURCE: Final = "PyTorch 2.13 torch/distributed/fsdp/_fully_shard"
_BEFORE_THE_LAST: Final = "the backward pass is in the second-last layer while the last layer's gradients are reduced"
_AFTER_THE_FIRST: Final = "the backward pass is in the second layer; the later layers' gradients have been reduced"
_FREED: Final = "activations freed by the backward pass so far, minus those of the norm that runs"


class FsdpUnitBytes(NamedTuple):
    """Bytes of FSDP's units (the largest layer, the edges): parameters, gradients, and gradients being reduced.

    The edges are the tensors outside the layers: embeddings, the last norm, the head.
    """

    layer: int
    edges: int
    layer_gradients: int
    edge_gradients: int
    layer_reduced: int
    edges_reduced: int


class FsdpShares(NamedTuple):
    """A training step sharded by FSDP: parameter counts, bytes of its units, and one card's shares.

    `persistent` are the shares that stay on the card, accumulated gradients among them; `gradients` the share of the
    others, None if there are none on the card, `gradient_bytes` those of one gradient. `keeps_units` means that layers
    stay unsharded after the forward pass; `host_bytes` are those of offloaded shares.
    """

    counts: ShardedCounts
    cards: int
    units: FsdpUnitBytes
    persistent: LastingTerms
    gradients: AnyTerm | None
    gradient_bytes: int
    keeps_units: bool
    host_bytes: int | None
    persistent_buffers: PersistentBuffers = PersistentBuffers()

    def layer_gradient_terms(self, layers: int) -> list[AnyTerm]:
        """Return a card's share of the gradients of `layers` layers, empty if it is not on the card or persistent."""
        if self.gradients is None or not layers:
            return []
        made, every = layers * self.counts.layer, self.counts.share * self.cards
        return [partial_term(self.gradients, made, every, "share reduced so far, of all gradients")]

    def all_gradient_terms(self) -> list[AnyTerm]:
        """Return a card's share of all gradients, empty if it is not on the card or persistent."""
        return [] if self.gradients is None else [self.gradients]

    def communication(self, *unit_buffers: Buffer) -> AnyTerm:
        """Return the memory of the communication buffers that hold `unit_buffers` at one moment."""
        return communication_term(unit_buffers, SOURCE, self.persistent_buffers)


class FreedActivations(NamedTuple):
    """Activation bytes of the backward pass: freed with each layer, and left in the last but one's first norm.

    `left` is relative to the bytes alive in the last layer; the norm comes last, when the layer's gradients exist.
    """

    layer: int
    left: int


def fsdp_timeline(step: StepMoments, sharding: FsdpShares, freed: FreedActivations) -> PhaseSnapshots:
    """Return the timeline of a training `step` sharded by FSDP.

    **Formula**: shares of parameters, gradients and states; in addition the unsharded edges, from the forward pass on,
    and for each layer: in the forward pass its unsharded parameters and the buffer they were gathered in; in the
    backward pass its unsharded parameters, those of the next layer gathered ahead, the layer's gradients, and the
    buffer in which the gradients of the previous layer are reduced. Gradients of the edges are reduced last.

    **Source**: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: `unshard`, `wait_for_unshard`,
    `_backward_prefetch`, `post_backward`; `_fsdp_collectives.py` `foreach_reduce`.
    """
    forward = [moment for moment in step.moments if moment.phase in ("forward", "loss")]
    head, last, first, *ends = [moment for moment in step.moments if moment.phase == "backward"]
    return step.timeline(
        Snapshot("load", sharding.persistent.before[:1], LOADED if sharding.host_bytes is None else OFFLOADED),
        _last_layer_forward_snapshot(forward[-1], sharding),
        *[_forward_snapshot(moment, sharding) for moment in forward],
        *_layer_backward_snapshots(head, last, first, sharding, freed),
        *[held for end in ends for held in _edge_backward_snapshots(end, sharding)],
        *[_step_snapshot(moment, sharding) for moment in step.moments if moment.phase == "step"],
        host_bytes=sharding.host_bytes,
    )


def _last_layer_forward_snapshot(moment: Moment, sharding: FsdpShares) -> Snapshot:
    """Return the memory snapshot when the forward pass has just gathered the last layer's parameters."""
    held = [item for item in (*moment.before, *moment.after) if item.name != "logits"]
    gathered = (
        _gather_buffer(sharding, "unsharded parameters of the last layer"),
        _gather_buffer(sharding, "gather buffer of the last layer"),
    )
    parts = (_edges_buffer(sharding), *_kept_layer_buffers(sharding, sharding.counts.layers - 1), *gathered)
    explanation = "the forward pass runs the last layer, whose parameters have just been gathered"
    return Snapshot("forward", [*held, sharding.communication(*parts)], explanation, sharding.persistent)


def _forward_snapshot(moment: Moment, sharding: FsdpShares) -> Snapshot:
    """Return a memory snapshot of the forward pass or the loss under FSDP."""
    # The backward pass gathers the last layer again as it starts, unless it was not freed.
    is_gathered = moment.phase == "forward" or not sharding.keeps_units
    parts = (
        _edges_buffer(sharding),
        *_kept_layer_buffers(sharding, sharding.counts.layers),
        *((_gather_buffer(sharding, "gather buffer of a layer"),) if is_gathered else ()),
        _head_gradient_buffer(moment, sharding),
    )
    held = [*moment.before, *moment.after, sharding.communication(*parts)]
    return Snapshot(moment.phase, held, moment.explanation, sharding.persistent)


def _layer_backward_snapshots(
    head: Moment, last: Moment, first: Moment, sharding: FsdpShares, freed: FreedActivations
) -> Iterator[Snapshot]:
    """Yield the memory snapshots of the backward pass at the head, in the last layers and in the first layers."""
    units, depth = sharding.units, sharding.counts.layers
    in_layer = min(max((last.gradients - head.gradients) * sharding.gradient_bytes, 0), units.layer_gradients)
    edges = (_edges_buffer(sharding), _head_gradient_buffer(head, sharding))
    partly = ("gradients of the running layer, not reduced yet", in_layer)
    wholly = ("gradients of the running layer, not reduced yet", units.layer_gradients)
    reducing = ("gradients of the previous layer, being reduced", units.layer_reduced)
    here = () if sharding.keeps_units else (_gather_buffer(sharding, "unsharded parameters of the running layer"),)
    ahead = () if sharding.keeps_units else (_gather_buffer(sharding, "prefetched parameters of the next layer"),)
    whole = _kept_layer_buffers(sharding, depth)
    yield _backward_snapshot(head, head.after, sharding, 0, (*edges, *whole, *ahead))
    yield _backward_snapshot(
        last, last.after, sharding, 0, (*edges, *whole, *here, *(ahead if depth > 1 else ()), partly)
    )
    # Activations shrink and gradient shares grow linearly from layer to layer: the first or the last is the highest.
    for done in sorted({1, max(depth - 2, 1)}) if depth > 1 else ():
        more = (
            *edges,
            *_kept_layer_buffers(sharding, depth - done),
            *here,
            *(ahead if done < depth - 1 else ()),
            reducing,
        )
        explanation = _BEFORE_THE_LAST if done == 1 else _AFTER_THE_FIRST
        early, late = -done * freed.layer, freed.left - (done + 1) * freed.layer
        yield _backward_snapshot(
            last, _terms_with_more_activations(last.after, early), sharding, done, (*more, partly), explanation
        )
        yield _backward_snapshot(
            last, _terms_with_more_activations(last.after, late), sharding, done, (*more, wholly), explanation
        )
    whole = _kept_layer_buffers(sharding, 1)
    reduced = (reducing,) if depth > 1 else ()
    yield _backward_snapshot(first, first.after, sharding, depth - 1, (*edges, *whole, *here, *reduced, partly))


def _terms_with_more_activations(short_lived: Sequence[AnyTerm], more: int) -> list[AnyTerm]:
    """Return `short_lived` terms with `more` bytes of activations, fewer if `more` is negative."""
    return [
        with_more_bytes(item, more, _FREED) if more and item.name == "activations" else item for item in short_lived
    ]


def _edge_backward_snapshots(end: Moment, sharding: FsdpShares) -> Iterator[Snapshot]:
    """Yield the backward pass's last snapshots, in which gradients of embedding and head are reduced."""
    units, depth = sharding.units, sharding.counts.layers
    gradients = ("gradients of embeddings and head, not reduced yet", units.edge_gradients)
    reducing = ("gradients of the first layer, being reduced", units.layer_reduced)
    yield _backward_snapshot(end, end.after, sharding, depth, (_edges_buffer(sharding), reducing, gradients))
    reducing = ("gradients of embeddings and head, being reduced", units.edges_reduced)
    explanation = "the gradients of embeddings and head are reduced together at the end"
    yield _backward_snapshot(end, [], sharding, depth, (gradients, reducing), explanation)


def _backward_snapshot(
    moment: Moment,
    short_lived: Sequence[AnyTerm],
    sharding: FsdpShares,
    reduced_layers: int,
    buffers: tuple[Buffer, ...],
    explanation: str = "",
) -> Snapshot:
    """Return a backward-pass snapshot with the gradients of `reduced_layers` layers and the communication `buffers`."""
    held = [*sharding.layer_gradient_terms(reduced_layers), *short_lived, sharding.communication(*buffers)]
    return Snapshot("backward", held, explanation or moment.explanation, sharding.persistent)


def _step_snapshot(moment: Moment, sharding: FsdpShares) -> Snapshot:
    """Return the memory snapshot of the optimizer step under FSDP."""
    held = [*sharding.all_gradient_terms(), *moment.after, sharding.communication()]
    return Snapshot(moment.phase, held, moment.explanation, sharding.persistent)


def _edges_buffer(sharding: FsdpShares) -> Buffer:
    """Return name and bytes of the unsharded embeddings, last norm and head."""
    return ("unsharded embeddings, last norm and head", sharding.units.edges)


def _head_gradient_buffer(moment: Moment, sharding: FsdpShares) -> Buffer:
    """Return name and bytes of the head's gradients at a `moment` when nothing else has any."""
    return ("gradients of the head, not reduced yet", moment.gradients * sharding.gradient_bytes)


def _gather_buffer(sharding: FsdpShares, name: str) -> Buffer:
    """Return name and bytes of a buffer with one layer's unsharded parameters."""
    return (name, sharding.units.layer)


def _kept_layer_buffers(sharding: FsdpShares, layers: int) -> tuple[Buffer, ...]:
    """Return name and bytes of `layers` layers that FSDP keeps unsharded after the forward pass; empty if none."""
    if not sharding.keeps_units:
        return ()
    return (("layers that stay unsharded until their backward pass", layers * sharding.units.layer),)


class Fsdp(ShardingStrategy):
    """PyTorch's FSDP2, which shards parameters, gradients and optimizer states in the parameters' format."""

    name = "fsdp"
    title = "FSDP"
    version = "FSDP2 of PyTorch 2.13"
    shares_states = True

    def stored_memory_summary(self, _parallel: Parallel) -> str:
        """Return a text on the shares of parameters, gradients and states that FSDP keeps on each card."""
        return (
            "each holds a shard of parameters, gradients and optimizer states in the parameters' format; layers are "
            "gathered one by one"
        )

    def timeline(self, shared: SharedStep) -> PhaseSnapshots:
        """Return the memory snapshots of one card in the training step `shared`."""
        workload, setup = shared.workload, shared.step.setup
        shares = _fsdp_shares(
            shared.architecture,
            shared.unsharded_terms(keeps_masters=self.keeps_masters),
            setup.weights.bytes + (setup.adapters.bytes if setup.adapters else 0),
            setup.gradients.all,
            setup.gradient_bytes,
            workload.adapts,
            workload.parallel,
            workload.gradient_accumulation > 1,
        )
        sharding = shares._replace(persistent_buffers=shared.persistent_buffers)
        saved = setup.saved
        left = saved.total - saved.in_last_layer - saved.behind + _norm_backward_bytes(shared.architecture, shared.own)
        return fsdp_timeline(shared.step, sharding, FreedActivations(saved.freed_with_a_layer, left))


FSDP: Final = Fsdp()


@lru_cache(maxsize=256)
def _fsdp_shares(
    architecture: Architecture,
    unsharded: UnshardedTerms,
    parameter_bytes: int,
    trained: int,
    gradient_bytes: int,
    adapts: bool,
    parallel: Parallel,
    accumulates: bool,
) -> FsdpShares:
    """Return one card's shares of a step, cached for all batch sizes, still without communication buffers.

    `parameter_bytes` are those of all parameters as computed, of which `trained` have gradients.
    """
    counts, cards = counts_per_card(architecture, parallel), parallel.state_shards
    *lasting, gradients = [
        sharded_term(item, counts.share, counts.total, cards, SOURCE)
        for item in (unsharded.weights, unsharded.adapters, unsharded.states, unsharded.gradients)
        if item is not None
    ]
    offloads = parallel.offload == "parameters"
    persistent = [*lasting, gradients] if accumulates else lasting
    return FsdpShares(
        counts=counts,
        cards=cards,
        units=_unit_bytes(counts, adapts, parameter_bytes, trained * gradient_bytes),
        persistent=NO_TERMS if offloads else lasting_terms(persistent),
        gradients=None if accumulates or offloads else gradients,
        gradient_bytes=gradient_bytes,
        keeps_units=not parallel.reshard_after_forward,
        host_bytes=sum([item.bytes for item in (*lasting, gradients)]) if offloads else None,
    )


def _norm_backward_bytes(architecture: Architecture, own: Training) -> int:
    """Return the peak bytes in the backward pass of a layer's first norm, which runs last in the layer.

    **Formula**: a fused norm reads the gradient of the projections' input and writes its own, in addition to that of
    the stream: 3 · w · h; an eager norm holds five more fp32 tensors of the stream, and its own saved input.
    """
    precision = training_precision(own)
    tokens = own.micro_batch * (own.sequence_length or 0)
    return tokens * max([_first_norm_bytes(stack, precision) for stack in architecture.stacks])


def _first_norm_bytes(stack: Stack, precision: Precision) -> int:
    """Return the bytes per token in the backward pass of the first norm in the layers of `stack`."""
    norm = stack.groups[0].layer.norm
    flight = 3 * precision.compute_bytes * stack.hidden
    return flight if norm.native else flight + 5 * 4 * stack.hidden + 4 * stack.hidden


def _unit_bytes(counts: ShardedCounts, adapts: bool, held: int, gradients: int) -> FsdpUnitBytes:
    """Return the bytes of FSDP's units: parameters and gradients of the largest layer and of the edges."""

    def proportional_bytes(count: int, whole: int) -> int:
        """Return the bytes of `count` elements if all elements together take `whole` bytes."""
        return ceil_div(whole * count, counts.total)

    if adapts:
        each = ceil_div(gradients, counts.layers)
        return FsdpUnitBytes(
            proportional_bytes(counts.layer, held), proportional_bytes(counts.edges, held), each, 0, each, 0
        )
    # Gradients have the shapes of their parameters; only what is gathered and what is reduced is filled up.
    return FsdpUnitBytes(
        proportional_bytes(counts.layer, held),
        proportional_bytes(counts.edges, held),
        proportional_bytes(counts.own_layer, gradients),
        proportional_bytes(counts.own_edges, gradients),
        proportional_bytes(counts.layer, gradients),
        proportional_bytes(counts.edges, gradients),
    )
