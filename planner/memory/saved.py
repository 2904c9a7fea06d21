"""What a forward pass keeps for the backward pass, over the whole network, with or without checkpoints."""

from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from planner.memory.activations import (
    MASK,
    AttentionKind,
    Ledger,
    is_masked,
    layer_ledger,
    mask_bytes,
    norm_bytes,
    stack_positions,
)
from planner.memory.precision import Precision
from planner.memory.result import Part, Term
from planner.memory.terms import checked, model
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture, LayerGroup, Mlp, Moe, Stack, Tensor
from planner.workload.workload import Training

_SOURCE = "saved tensors of PyTorch 2.13 operators and transformers 5.23 modules, operation by operation"


class Saved(NamedTuple):
    """Bytes the forward pass keeps, by kind, and the largest layer's share with its scratch in the backward pass.

    `layers` says how many layers keep what per token, for the formulas.
    """

    norms: int
    attention: int
    feed_forward: int
    dropout: int
    scores: int
    checkpoints: int
    one_layer: int
    scratch: int
    layers: tuple[tuple[int, Ledger], ...]

    @property
    def in_last_layer(self) -> int:
        """Return what the backward pass through the last layer adds: its gradients, and its values if recomputed."""
        return self.scratch + (self.one_layer if self.checkpoints else 0)

    @property
    def total(self) -> int:
        """Return all bytes alive when the forward pass ends."""
        return self.norms + self.attention + self.feed_forward + self.dropout + self.scores + self.checkpoints


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
    layers: list[tuple[int, Ledger]] = []
    for stack in architecture.stacks:
        if stack.name in ("vision", "audio") and architecture.kind == "vision-language":
            continue
        tokens = stack_positions(stack, length)
        every = sequences * tokens
        edges, masks = _edges(stack, precision)
        norms += every * edges
        dropout += every * masks
        if checkpointed:
            scores += mask_bytes(stack, sequences, tokens, precision, attention)
        for group in stack.groups:
            masked = is_masked(group.layer, tokens, attention)
            ledger = layer_ledger(group.layer, stack.hidden, precision, attention, masked)
            largest = max(largest, every * ledger.total(tokens))
            scratch = max(scratch, every * _scratch(group, stack.hidden, precision))
            if checkpointed:
                checkpoints += group.count * every * stack.hidden * precision.residual_bytes
                continue
            layers.append((group.count, ledger))
            n = group.count * every
            norms += n * ledger.norms
            kept_attention += n * ledger.attention
            feed_forward += n * ledger.feed_forward
            dropout += n * ledger.dropout
            scores += n * ledger.scores * tokens
    return Saved(norms, kept_attention, feed_forward, dropout, scores, checkpoints, largest, scratch, tuple(layers))


def activations_term(saved: Saved, alive: int, workload: Training) -> Term:
    """Return the activations of `workload` at a moment when `alive` bytes of them are there.

    **Formula**: Σ over what is kept, or one layer where the backward pass has freed the rest.
    """
    tokens = workload.micro_batch * (workload.sequence_length or 0)
    shares = _shares(saved, alive, tokens)
    return checked(
        "activations",
        alive,
        " + ".join(symbol for symbol, _ in shares),
        (
            *(model(symbol, part.bytes, f"bytes of {part.name}") for symbol, part in shares),
            chosen("T", tokens, f"tokens: {workload.micro_batch:,} × {workload.sequence_length:,}"),
        ),
        _SOURCE,
        tuple(part for _, part in shares),
    )


def _shares(saved: Saved, alive: int, tokens: int) -> list[tuple[str, Part]]:
    """Return what the `alive` bytes are made of, each with its symbol."""
    if alive < saved.total:
        return [("O", _part("one layer and its gradients", alive, f"{alive:,}"))]
    found = [
        (symbol, _part(name, kept, _per_token(kept, tokens, [(count, pick(ledger)) for count, ledger in saved.layers])))
        for symbol, name, kept, pick in (
            ("N", "norms and their inputs", saved.norms, attrgetter("norms")),
            ("Q", "queries, keys, values and attention output", saved.attention, attrgetter("attention")),
            ("F", "feed-forward blocks", saved.feed_forward, attrgetter("feed_forward")),
            ("S", "attention scores and masks", saved.scores, _not_per_layer),
            ("D", "dropout masks", saved.dropout, attrgetter("dropout")),
            ("C", "checkpoints, each layer's input", saved.checkpoints, _not_per_layer),
        )
        if kept
    ]
    extra = alive - saved.total
    if extra:
        name = "one layer computed again, with its gradients" if saved.checkpoints else "gradients of the last layer"
        found.append(("G", _part(name, extra, _per_token(extra, tokens, []))))
    return found


def _part(name: str, count_bytes: int, formula: str) -> Part:
    return Part(name=name, bytes=count_bytes, formula=formula, source=_SOURCE)


def _per_token(kept: int, tokens: int, layers: list[tuple[int, int]]) -> str:
    """Return `kept` as bytes per token: layers × what each keeps, and what stands outside the layers."""
    if tokens == 0 or kept % tokens:
        return f"{kept:,}"
    numbers: dict[int, int] = {}
    for count, each in layers:
        numbers[each] = numbers.get(each, 0) + count
    rest = kept // tokens - sum(count * each for each, count in numbers.items())
    if rest < 0:
        return f"{kept:,}"
    shown = [f"{count} × {each:,}" for each, count in numbers.items() if each]
    shown += [f"{rest:,}"] if rest else []
    return f"T × {shown[0]}" if len(shown) == 1 else f"T × ({' + '.join(shown)})"


def _not_per_layer(_ledger: Ledger) -> int:
    return 0


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
    """Return the gradients in flight while the widest block of a layer runs backward, per token.

    Two branches meet in a gate's product, and in an activation that Python computes step by step.
    """
    block = group.layer.feed_forward
    if isinstance(block, Mlp):
        branches = block.gated or block.activation in ("gelu-new", "quick-gelu")
        width = block.intermediate * (2 if branches else 1)
    elif isinstance(block, Moe):
        width = block.top_k * block.intermediate * 2
    else:
        width = hidden
    return precision.compute_bytes * width + precision.residual_bytes * hidden
