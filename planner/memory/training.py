"""The phases of one training step and what is alive in each."""

from functools import lru_cache
from typing import NamedTuple

from planner.memory.activations import (
    MASK,
    AttentionKind,
    layer_ledger,
    norm_bytes,
    stack_positions,
)
from planner.memory.gradients import gradients_term
from planner.memory.logits import logits_term, loss_bytes_per_logit, output_width, predicts_every_token
from planner.memory.optimizer import optimizer_term
from planner.memory.phases import Moment, Moments
from planner.memory.precision import Precision, training_precision
from planner.memory.result import Part, Term
from planner.memory.tensors import parameter_counts
from planner.memory.terms import library, model, number_format, term
from planner.memory.terms import workload as chosen
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, LayerGroup, Mlp, Moe, Stack, Tensor
from planner.units import MIB
from planner.workload.workload import Training

_SAVED_SOURCE = "saved tensors of PyTorch 2.13 operators and transformers 5.23 modules, operation by operation"
_DDP_SOURCE = "torch DistributedDataParallel: gradient_as_bucket_view is off by default"
_NCCL_SOURCE = "NVIDIA/nccl#964: 544 MB for 2 cards, 688 MB for more, on A100 with NVLink"


class Saved(NamedTuple):
    """Bytes the forward pass keeps, by kind, and the largest layer's share with its scratch in the backward pass."""

    norms: int
    attention: int
    feed_forward: int
    dropout: int
    scores: int
    checkpoints: int
    one_layer: int
    scratch: int

    @property
    def in_last_layer(self) -> int:
        """Return what the backward pass through the last layer adds: its gradients, and its values if recomputed."""
        return self.scratch + (self.one_layer if self.checkpoints else 0)

    @property
    def total(self) -> int:
        """Return all bytes alive when the forward pass ends."""
        return self.norms + self.attention + self.feed_forward + self.dropout + self.scores + self.checkpoints


def training_moments(architecture: Architecture, workload: Training) -> Moments:
    """Return what is alive in each phase of one optimizer step of `workload` (defaults filled in).

    **Formula**: the peak is the largest of: load; forward (everything saved, with the loss being computed); loss (its
    derivative); backward (first the head, last the first layer with all gradients); step.

    **Assumes** fused optimizer kernels, which need no copy of the parameters, as transformers chooses on PyTorch ≥ 2.8.
    """
    precision = training_precision(workload)
    sequences, length = workload.micro_batch, workload.sequence_length or 0
    saved = saved_activations(
        architecture, sequences, length, precision, workload.attention, workload.activation_checkpointing == "full"
    )
    counts = parameter_counts(architecture)
    weights = weights_term(architecture, workload.weights or "fp32")
    states = optimizer_term(architecture, workload.optimizer, precision)
    gradients = gradients_term(counts.total, precision)
    communication = _communication_term(gradients.bytes, workload.parallel.data or 1)
    persistent = [item for item in (weights, states, communication) if item is not None]
    if workload.gradient_accumulation > 1:
        persistent.append(gradients)
    outputs = sequences * length if predicts_every_token(architecture) else sequences
    per_forward, per_backward = loss_bytes_per_logit(precision)
    kept = _activations_term(saved, saved.total, workload)
    casts = _cast_term(architecture, precision, counts.linear + counts.experts + _head_matrix(architecture))
    head_cast = _cast_term(architecture, precision, _head_matrix(architecture))
    held_casts = head_cast if workload.activation_checkpointing == "full" else casts
    one_layer = saved.one_layer + saved.scratch
    alive_logits = logits_term(architecture, outputs, precision.compute_bytes, precision)
    head_gradient = gradients_term(_head_matrix(architecture), precision)
    growing = [] if workload.gradient_accumulation > 1 else [gradients]
    growing_head = [] if workload.gradient_accumulation > 1 else [head_gradient]
    return Moments(
        (
            Moment("load", [weights], "the parameters are on the card"),
            Moment(
                "forward",
                [*persistent, kept, *casts, logits_term(architecture, outputs, per_forward, precision)],
                "the forward pass is through: everything kept for the backward pass is there, and the loss is computed",
            ),
            Moment(
                "loss",
                [*persistent, kept, *held_casts, logits_term(architecture, outputs, per_backward, precision)],
                "the derivative of the loss needs several fp32 copies of the logits",
            ),
            Moment(
                "backward",
                [
                    *persistent,
                    *growing_head,
                    kept,
                    *held_casts,
                    logits_term(architecture, outputs, 2 * precision.compute_bytes, precision),
                ],
                "the backward pass starts at the head, with everything still kept",
            ),
            Moment(
                "backward",
                [
                    *persistent,
                    *growing_head,
                    _activations_term(saved, saved.total + saved.in_last_layer, workload),
                    *held_casts,
                    alive_logits,
                ],
                "the backward pass works on the last layer, with nearly everything still kept",
            ),
            Moment(
                "backward",
                [
                    *persistent,
                    *growing,
                    _activations_term(saved, one_layer, workload),
                    alive_logits,
                ],
                "the backward pass reaches the first layer: all gradients are there",
            ),
            Moment(
                "backward",
                [*persistent, *growing, *_tied_gradient_term(architecture, precision), alive_logits],
                "the backward pass reaches the embedding: its gradient is dense",
            ),
            Moment("step", [*persistent, *growing], "the optimizer updates: parameters, gradients and its states"),
        ),
        dynamic=saved.total,
    )


@lru_cache(maxsize=1024)
def saved_activations(
    architecture: Architecture,
    sequences: int,
    length: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> Saved:
    """Return what a forward pass over `sequences` × `length` tokens keeps.

    With checkpointing each layer keeps its input only, and one layer at a time is computed again in the backward pass.
    """
    norms = kept_attention = feed_forward = dropout = scores = checkpoints = largest = scratch = 0
    for stack in architecture.stacks:
        if stack.name in ("vision", "audio") and architecture.kind == "vision-language":
            continue
        tokens = stack_positions(stack, length)
        every = sequences * tokens
        edges, masks = _edges(stack, precision)
        norms += every * edges
        dropout += every * masks
        if attention == "eager":
            scores += sequences * tokens * tokens * precision.compute_bytes
        for group in stack.groups:
            ledger = layer_ledger(group.layer, stack.hidden, precision, attention)
            largest = max(largest, every * ledger.total(tokens))
            scratch = max(scratch, every * _scratch(group, stack.hidden, precision))
            if checkpointed:
                checkpoints += group.count * every * stack.hidden * precision.residual_bytes
                continue
            n = group.count * every
            norms += n * ledger.norms
            kept_attention += n * ledger.attention
            feed_forward += n * ledger.feed_forward
            dropout += n * ledger.dropout
            scores += n * ledger.scores * tokens
    return Saved(norms, kept_attention, feed_forward, dropout, scores, checkpoints, largest, scratch)


def _edges(stack: Stack, precision: Precision) -> tuple[int, int]:
    """Return what the norms outside the layers keep per token, and the embedding's dropout mask.

    What the first norms put out is counted with the layer that reads it; what the last put out is read by the head.
    """
    own = norm_bytes(stack.groups[0].layer.norm, stack.hidden, precision)
    read = precision.compute_bytes * stack.hidden
    kept = _norm_count(stack.before, stack.hidden) * own + _norm_count(stack.after, stack.hidden) * (own + read)
    return kept, MASK * stack.hidden if stack.embedding_dropout else 0


def _norm_count(tensors: tuple[Tensor, ...], width: int) -> int:
    return sum(1 for t in tensors if t.role == "norm" and t.shape == (width,) and not t.name.endswith("bias"))


def _scratch(group: LayerGroup, hidden: int, precision: Precision) -> int:
    """Return the gradients in flight while the widest block of a layer runs backward, per token."""
    block = group.layer.feed_forward
    if isinstance(block, Mlp):
        width = block.intermediate * (2 if block.gated else 1)
    elif isinstance(block, Moe):
        width = block.top_k * block.intermediate * 2
    else:
        width = hidden
    return precision.compute_bytes * width + precision.residual_bytes * hidden


def _activations_term(saved: Saved, alive: int, workload: Training) -> Term:
    kinds = (
        ("norms and their inputs", saved.norms, "T × Σ layers × norm bytes"),
        ("queries, keys, values, attention output", saved.attention, "T × Σ layers × (2q + 2kv) × w + statistics"),
        ("feed-forward", saved.feed_forward, "T × Σ layers × kept tensors × i × w"),
        ("attention scores", saved.scores, "T × s × Σ layers × heads × bytes per score"),
        ("dropout masks", saved.dropout, "T × Σ layers × h"),
        ("checkpoints: each layer's input", saved.checkpoints, "T × L × h × r"),
    )
    parts = [Part(name=n, bytes=b, formula=f, source=_SAVED_SOURCE) for n, b, f in kinds if b]
    if alive < saved.total:
        parts = [Part(name="one layer with its gradients", bytes=alive, formula="T × layer", source=_SAVED_SOURCE)]
    elif alive > saved.total:
        extra = alive - saved.total
        parts.append(Part(name="one layer computed again", bytes=extra, formula="T × layer", source=_SAVED_SOURCE))
    tokens = workload.micro_batch * (workload.sequence_length or 0)
    return term(
        "activations",
        alive,
        "T × Σ layers × bytes kept per token",
        (
            chosen("T", tokens, f"tokens: {workload.micro_batch:,} × {workload.sequence_length:,}"),
            model("A", round(alive / max(tokens, 1)), "bytes kept per token, all layers together"),
        ),
        _SAVED_SOURCE,
        parts=tuple(parts),
    )


def _cast_term(architecture: Architecture, precision: Precision, elements: int) -> list[Term]:
    if not precision.autocast or not elements:
        return []
    return [
        term(
            "temporaries",
            elements * precision.compute_bytes,
            "P_c × w",
            (
                model("P_c", elements, "parameters of the projections cast for the step"),
                number_format("w", precision.compute_bytes, "bytes per element of the autocast format"),
            ),
            "torch.autocast caches the cast of each fp32 weight; the graph keeps it until its backward",
        )
    ]


def _tied_gradient_term(architecture: Architecture, precision: Precision) -> list[Term]:
    if not architecture.tied_head:
        return []
    elements = parameter_counts(architecture).token_embedding
    return [
        term(
            "temporaries",
            2 * elements * precision.parameter_bytes,
            "2 × V × h × w",
            (
                model("V × h", elements, "elements of the token embedding"),
                number_format("w", precision.parameter_bytes, "bytes per gradient"),
            ),
            "torch.autograd holds the embedding's dense gradient and its sum with the tied head's beside the latter",
        )
    ]


def _communication_term(gradient_bytes: int, replicas: int) -> Term | None:
    if replicas < 2:
        return None
    buffers = 544 * 10**6 if replicas == 2 else 688 * 10**6
    return term(
        "communication",
        gradient_bytes + buffers,
        "G + N",
        (
            model("G", gradient_bytes, "bytes of the gradient buckets, a second copy of the gradients"),
            library("N", buffers, "bytes of the NCCL communicator"),
        ),
        f"{_DDP_SOURCE}; {_NCCL_SOURCE}",
        certainty="assumed",
        low_bytes=gradient_bytes,
        high_bytes=gradient_bytes + buffers + 512 * MIB,
        parts=(
            Part(name="gradient buckets", bytes=gradient_bytes, formula="G", source=_DDP_SOURCE),
            Part(name="NCCL communicator", bytes=buffers, formula="N", source=_NCCL_SOURCE),
        ),
    )


def _head_matrix(architecture: Architecture) -> int:
    return output_width(architecture) * architecture.hidden
