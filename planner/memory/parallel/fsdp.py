"""Memory of a card under PyTorch's FSDP2, which shards parameters, gradients and optimizer states by layer."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.parallel.sharding import LASTING, ShardedStep, ShardingStrategy
from planner.memory.parallel.shares import (
    OFFLOADED,
    AnyTerm,
    Buffer,
    PersistentBuffers,
    ShardedCounts,
    communication_term,
    partial_term,
    sharded_term,
    with_more_bytes,
)
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.precision import Precision, training_precision
from planner.memory.result import TermName
from planner.models.architecture import Architecture, Stack
from planner.units import ceil_div
from planner.workload.parallel import Parallel
from planner.workload.training import Training

SOURCE: Final = "PyTorch 2.13 torch/distributed/fsdp/_fully_shard"
_PERSISTENT_TERMS: Final[frozenset[TermName]] = frozenset((*LASTING, "gradients", "communication"))

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

    `kept` are the shares of terms that persist from step to step, `gradients` the share of all reduced gradients,
    `persistent` the shares of either kind that stay on the card. `accumulates` means that gradients outlive the first
    backward pass of the step, `offloads` that the shares stay in host memory.
    """

    counts: ShardedCounts
    cards: int
    units: FsdpUnitBytes
    kept: tuple[AnyTerm, ...]
    gradients: AnyTerm | None
    persistent: tuple[AnyTerm, ...]
    accumulates: bool
    keeps_units: bool
    offloads: bool
    persistent_buffers: PersistentBuffers

    def layer_gradient_terms(self, layers: int) -> list[AnyTerm]:
        """Return a card's share of the gradients of `layers` layers, empty if accumulated gradients include it."""
        if self.accumulates or self.offloads or self.gradients is None or not layers:
            return []
        made, every = layers * self.counts.layer, self.counts.share * self.cards
        return [partial_term(self.gradients, made, every, "share reduced so far, of all gradients")]

    def all_gradient_terms(self) -> list[AnyTerm]:
        """Return a card's share of all gradients, empty if accumulated gradients include it."""
        return [] if self.accumulates or self.offloads or self.gradients is None else [self.gradients]

    def host_bytes(self) -> int | None:
        """Return the bytes that each card offloads to host memory, None without offloading."""
        if not self.offloads:
            return None
        held = [*self.kept, *([self.gradients] if self.gradients else [])]
        return sum([item.bytes for item in held])

    def communication(self, *unit_buffers: Buffer) -> AnyTerm:
        """Return the memory of the communication buffers that hold `unit_buffers` at one moment."""
        return communication_term(unit_buffers, SOURCE, self.persistent_buffers)


class FreedActivations(NamedTuple):
    """Activation bytes that the backward pass frees: in each layer, and after the layers before reaching the last one.

    `norm` is the memory of a layer's first norm, which comes last, in addition to all gradients of that layer.
    """

    layer: int
    behind: int
    norm: int


def fsdp_snapshots(
    snapshots: tuple[Snapshot, ...], sharding: FsdpShares, freed: FreedActivations
) -> tuple[Snapshot, ...]:
    """Return the snapshots of a step sharded by FSDP, derived from the snapshots of an unsharded step.

    `snapshots` are load, forward, loss, the backward pass at the head, in the last and in the first layer and, where it
    is trained, at the embedding, and the step.

    **Formula**: shares of parameters, gradients and states; in addition the unsharded edges, from the forward pass on,
    and for each layer: in the forward pass its unsharded parameters and the buffer they were gathered in; in the
    backward pass its unsharded parameters, those of the next layer gathered ahead, the layer's gradients, and the
    buffer in which the gradients of the previous layer are reduced. Gradients of the edges are reduced last.

    **Source**: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: `unshard`, `wait_for_unshard`,
    `_backward_prefetch`, `post_backward`; `_fsdp_collectives.py` `foreach_reduce`.
    """
    forward = [snapshot for snapshot in snapshots if snapshot.name in ("forward", "loss")]
    backward = [snapshot for snapshot in snapshots if snapshot.name == "backward"]
    return (
        Snapshot("load", sharding.persistent[:1], OFFLOADED if sharding.offloads else snapshots[0].explanation),
        _last_layer_forward_snapshot(forward[-1], sharding),
        *(_forward_snapshot(snapshot, sharding) for snapshot in forward),
        *_layer_backward_snapshots(backward[0], backward[1], backward[2], sharding, freed),
        *(held for end in backward[3:] for held in _edge_backward_snapshots(end, sharding)),
        *(_step_snapshot(snapshot, sharding) for snapshot in snapshots if snapshot.name == "step"),
    )


def _last_layer_forward_snapshot(snapshot: Snapshot, sharding: FsdpShares) -> Snapshot:
    """Return the memory snapshot when the forward pass has just gathered the last layer's parameters."""
    held = [item for item in _short_lived_terms(snapshot) if item.name != "logits"]
    gathered = (
        _gather_buffer(sharding, "unsharded parameters of the last layer"),
        _gather_buffer(sharding, "gather buffer of the last layer"),
    )
    parts = (_edges_buffer(sharding), *_kept_layer_buffers(sharding, sharding.counts.layers - 1), *gathered)
    explanation = "the forward pass runs the last layer, whose parameters have just been gathered"
    return Snapshot("forward", [*sharding.persistent, *held, sharding.communication(*parts)], explanation)


def _forward_snapshot(snapshot: Snapshot, sharding: FsdpShares) -> Snapshot:
    """Return a memory snapshot of the forward pass or the loss under FSDP."""
    head_gradient_bytes = _gradient_bytes(snapshot)
    # The backward pass gathers the last layer again as it starts, unless it was not freed.
    is_gathered = snapshot.name == "forward" or not sharding.keeps_units
    parts = (
        _edges_buffer(sharding),
        *_kept_layer_buffers(sharding, sharding.counts.layers),
        *((_gather_buffer(sharding, "gather buffer of a layer"),) if is_gathered else ()),
        ("gradients of the head, not reduced yet", head_gradient_bytes),
    )
    held = [*sharding.persistent, *_short_lived_terms(snapshot), sharding.communication(*parts)]
    return snapshot.with_terms(held)


def _layer_backward_snapshots(
    head: Snapshot, last: Snapshot, first: Snapshot, sharding: FsdpShares, freed: FreedActivations
) -> Iterator[Snapshot]:
    """Yield the memory snapshots of the backward pass at the head, in the last layers and in the first layers."""
    units, depth = sharding.units, sharding.counts.layers
    of_head = _gradient_bytes(head)
    in_layer = min(max(_gradient_bytes(last) - of_head, 0), units.layer_gradients)
    edges = (_edges_buffer(sharding), ("gradients of the head, not reduced yet", of_head))
    partly = ("gradients of the running layer, not reduced yet", in_layer)
    wholly = ("gradients of the running layer, not reduced yet", units.layer_gradients)
    reducing = ("gradients of the previous layer, being reduced", units.layer_reduced)
    here = () if sharding.keeps_units else (_gather_buffer(sharding, "unsharded parameters of the running layer"),)
    ahead = () if sharding.keeps_units else (_gather_buffer(sharding, "prefetched parameters of the next layer"),)
    whole = _kept_layer_buffers(sharding, depth)
    in_head, in_last, in_first = _short_lived_terms(head), _short_lived_terms(last), _short_lived_terms(first)
    yield _backward_snapshot(head, in_head, sharding, 0, (*edges, *whole, *ahead))
    yield _backward_snapshot(last, in_last, sharding, 0, (*edges, *whole, *here, *(ahead if depth > 1 else ()), partly))
    left = _activation_bytes(head) - _activation_bytes(last) - freed.behind + freed.norm
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
        early, late = -done * freed.layer, left - (done + 1) * freed.layer
        yield _backward_snapshot(
            last, _terms_with_more_activations(in_last, early), sharding, done, (*more, partly), explanation
        )
        yield _backward_snapshot(
            last, _terms_with_more_activations(in_last, late), sharding, done, (*more, wholly), explanation
        )
    whole = _kept_layer_buffers(sharding, 1)
    reduced = (reducing,) if depth > 1 else ()
    yield _backward_snapshot(first, in_first, sharding, depth - 1, (*edges, *whole, *here, *reduced, partly))


def _terms_with_more_activations(short_lived: list[AnyTerm], more: int) -> list[AnyTerm]:
    """Return `short_lived` terms with `more` bytes of activations, fewer if `more` is negative."""
    return [
        with_more_bytes(item, more, _FREED) if more and item.name == "activations" else item for item in short_lived
    ]


def _edge_backward_snapshots(end: Snapshot, sharding: FsdpShares) -> Iterator[Snapshot]:
    """Yield the backward pass's last snapshots, in which gradients of embedding and head are reduced."""
    units, depth = sharding.units, sharding.counts.layers
    gradients = ("gradients of embeddings and head, not reduced yet", units.edge_gradients)
    reducing = ("gradients of the first layer, being reduced", units.layer_reduced)
    yield _backward_snapshot(
        end, _short_lived_terms(end), sharding, depth, (_edges_buffer(sharding), reducing, gradients)
    )
    held = [*sharding.persistent, *sharding.layer_gradient_terms(depth)]
    reducing = ("gradients of embeddings and head, being reduced", units.edges_reduced)
    explanation = "the gradients of embeddings and head are reduced together at the end"
    yield Snapshot("backward", [*held, sharding.communication(gradients, reducing)], explanation)


def _backward_snapshot(
    snapshot: Snapshot,
    short_lived: list[AnyTerm],
    sharding: FsdpShares,
    reduced_layers: int,
    buffers: tuple[Buffer, ...],
    explanation: str = "",
) -> Snapshot:
    """Return a backward-pass snapshot with the gradients of `reduced_layers` layers and the communication `buffers`."""
    held = [
        *sharding.persistent,
        *sharding.layer_gradient_terms(reduced_layers),
        *short_lived,
        sharding.communication(*buffers),
    ]
    return Snapshot("backward", held, explanation or snapshot.explanation)


def _step_snapshot(snapshot: Snapshot, sharding: FsdpShares) -> Snapshot:
    """Return the memory snapshot of the optimizer step under FSDP."""
    others = [item for item in _short_lived_terms(snapshot) if item.name != "communication"]
    held = [*sharding.persistent, *sharding.all_gradient_terms(), *others, sharding.communication()]
    return snapshot.with_terms(held)


def _edges_buffer(sharding: FsdpShares) -> Buffer:
    """Return name and bytes of the unsharded embeddings, last norm and head."""
    return ("unsharded embeddings, last norm and head", sharding.units.edges)


def _gather_buffer(sharding: FsdpShares, name: str) -> Buffer:
    """Return name and bytes of a buffer with one layer's unsharded parameters."""
    return (name, sharding.units.layer)


def _kept_layer_buffers(sharding: FsdpShares, layers: int) -> tuple[Buffer, ...]:
    """Return name and bytes of `layers` layers that FSDP keeps unsharded after the forward pass; empty if none."""
    if not sharding.keeps_units:
        return ()
    return (("layers that stay unsharded until their backward pass", layers * sharding.units.layer),)


def _short_lived_terms(snapshot: Snapshot) -> list[AnyTerm]:
    """Return the terms that do not persist between steps: activations, logits, temporaries."""
    return [item for item in snapshot.terms if item.name not in _PERSISTENT_TERMS]


def _activation_bytes(snapshot: Snapshot) -> int:
    """Return the bytes of activations alive in `snapshot`."""
    return sum([item.bytes for item in snapshot.terms if item.name == "activations"])


def _gradient_bytes(snapshot: Snapshot) -> int:
    """Return the bytes of gradients alive in `snapshot`."""
    return sum([item.bytes for item in snapshot.terms if item.name == "gradients"])


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

    def timeline(self, step: ShardedStep) -> PhaseSnapshots:
        """Return the memory snapshots of one card in the training step `step`."""
        workload, unsharded_timeline, counts, cards = step.workload, step.unsharded_timeline, step.counts, step.cards
        shares = [sharded_term(item, counts.share, counts.total, cards, SOURCE) for item in step.kept]
        lasting = tuple([item for item in shares if item.name != "gradients"])
        reduced = [item for item in shares if item.name == "gradients"]
        accumulates, offloads = workload.gradient_accumulation > 1, workload.parallel.offload == "parameters"
        sharding = FsdpShares(
            counts=counts,
            cards=cards,
            units=_unit_bytes(
                counts, workload.adapts, *_parameter_and_gradient_bytes(unsharded_timeline.snapshots[-1])
            ),
            kept=lasting,
            gradients=reduced[0] if reduced else None,
            persistent=() if offloads else (*lasting, *reduced) if accumulates else lasting,
            accumulates=accumulates,
            keeps_units=not workload.parallel.reshard_after_forward,
            offloads=offloads,
            persistent_buffers=step.persistent_buffers,
        )
        freed = FreedActivations(
            unsharded_timeline.layer_bytes,
            unsharded_timeline.behind_bytes,
            _norm_backward_bytes(step.architecture, step.own),
        )
        return unsharded_timeline._replace(
            snapshots=fsdp_snapshots(unsharded_timeline.snapshots, sharding, freed), host_bytes=sharding.host_bytes()
        )


FSDP: Final = Fsdp()


def _norm_backward_bytes(architecture: Architecture, own: Training) -> int:
    """Return the peak bytes in the backward pass of a layer's first norm, which runs last in the layer.

    **Formula**: a fused norm reads the gradient of the projections' input and writes its own, in addition to that of
    the stream: 3 · w · h; an eager norm holds five more fp32 tensors of the stream, and its own saved input.
    """
    precision = training_precision(own)
    tokens = own.micro_batch * (own.sequence_length or 0)
    return tokens * max([_first_norm_bytes(stack, precision) for stack in architecture.stacks])


@lru_cache(maxsize=512)
def _first_norm_bytes(stack: Stack, precision: Precision) -> int:
    """Return the bytes per token in the backward pass of the first norm in the layers of `stack`."""
    norm = stack.groups[0].layer.norm
    flight = 3 * precision.compute_bytes * stack.hidden
    return flight if norm.native else flight + 5 * 4 * stack.hidden + 4 * stack.hidden


def _parameter_and_gradient_bytes(step: Snapshot) -> tuple[int, int]:
    """Return the bytes of all parameters in the compute format, and the bytes of all gradients."""
    held = sum([item.bytes for item in step.terms if item.name in ("weights", "adapters")])
    return held, sum([item.bytes for item in step.terms if item.name == "gradients"])


@lru_cache(maxsize=512)
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
