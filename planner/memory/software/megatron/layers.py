"""Activations that Megatron-LM's own transformer layers save for the backward pass.

Its layers differ from those of transformers: norms save no fp32 copies, biases, activations and dropout are fused, and
softmax runs in one kernel in 16 bits.

**Source**: Megatron-LM 0.20 (core/transformer, core/fusions, core/models/gpt/gpt_layer_specs.py) with Transformer
Engine 2 (`LayerNormLinear`, `UnfusedDotProductAttention`); for a layer of classic shape 34 · h + 5 · a · s bytes per
token, Korthikanti et al. 2022, arXiv 2205.05198, table 2.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.kernels import MASK, AttentionKind
from planner.memory.precision import Precision
from planner.memory.training.autograd.layer import (
    STATISTIC,
    dropout_bytes,
    saved_by_cross_attention,
    saved_by_mixer,
)
from planner.memory.training.autograd.network import is_norm, trained_stacks
from planner.memory.training.saved import BackwardPoint, SavedActivations, SavedBytes, SavedPerToken, sum_of_saved_bytes
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe, Norm
from planner.workload.choices import Checkpointing

_CLASSIC: Final = 2
"""Number of norms per layer that read the residual stream: before attention, before the feed-forward block."""


class _EqualLayers(NamedTuple):
    """Equal layers of a stack: their number, tokens per sequence, and activation bytes saved per layer."""

    number: int
    layer: Layer
    hidden: int
    tokens: int
    source: int
    ledger: SavedPerToken


def saved_by_megatron(
    architecture: Architecture,
    sequences: int,
    length: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointing: Checkpointing,
) -> SavedActivations:
    """Return the activations that Megatron saves in a forward pass over `sequences` × `length` tokens.

    With full checkpointing each layer saves its input only; with selective checkpointing the scores of attention are
    recomputed, one layer at a time.

    **Formula**: Σ over layers of the ledger; after the layers the last norm's input and output.
    """
    layers = _equal_layers(architecture, length, precision, attention)
    edges = _edge_bytes(architecture, sequences, length, precision)
    each = [(one.number, one.ledger.for_batch(sequences, one.tokens, one.source)) for one in layers]
    largest, again = max([saved.total for _, saved in each]), max([saved.scores for _, saved in each])
    kept = [saved * number for number, saved in each]
    if checkpointing == "full":
        kept = [SavedBytes(checkpoints=_layer_input_bytes(one, sequences, precision)) for one in layers]
    elif checkpointing == "selective":
        kept = [saved._replace(scores=0) for saved in kept]
    return SavedActivations(
        kept=sum_of_saved_bytes([edges, *kept]),
        one_layer=largest,
        point=BackwardPoint(max([_gradient_bytes_in_flight(one, sequences, precision) for one in layers])),
        first=edges.dropout,
        behind=edges.norms,
        layers=() if checkpointing == "full" else tuple([(one.number, one.ledger) for one in layers]),
        depth=sum([one.number for one in layers]),
        recomputed={"none": 0, "selective": again, "full": largest}[checkpointing],
    )


def _layer_input_bytes(layers: _EqualLayers, sequences: int, precision: Precision) -> int:
    """Return the bytes of the inputs that full checkpointing saves for these layers."""
    stream = layers.hidden * precision.compute_bytes
    return layers.number * sequences * layers.tokens * stream // layers.layer.stream_shards


@lru_cache(maxsize=512)
def _equal_layers(
    architecture: Architecture, length: int, precision: Precision, attention: AttentionKind
) -> tuple[_EqualLayers, ...]:
    """Return groups of equal layers in all stacks, each with the activation bytes that one of its layers saves."""
    layer_groups, source = [], 0
    for stack in trained_stacks(architecture):
        tokens = stack.token_count(length)
        for group in stack.groups:
            ledger = saved_by_megatron_layer(group.layer, stack.hidden, precision, attention)
            layer_groups.append(_EqualLayers(group.count, group.layer, stack.hidden, tokens, source, ledger))
        source = tokens
    return tuple(layer_groups)


def _edge_bytes(architecture: Architecture, sequences: int, length: int, precision: Precision) -> SavedBytes:
    """Return the bytes saved outside the layers: by the last norm with the head's input, and by embedding dropout."""
    shards = architecture.main.groups[0].layer.stream_shards
    norms = masks = 0
    for stack in trained_stacks(architecture):
        tokens = sequences * stack.token_count(length)
        behind = sum([1 for tensor in stack.after if is_norm(tensor, stack.hidden)])
        each = (
            _norm_saved_bytes(stack.groups[0].layer.norm, stack.hidden, precision)
            + precision.compute_bytes * stack.hidden
        )
        norms += tokens * behind * each // shards
        masks += tokens * MASK * stack.hidden // shards if stack.embedding_dropout else 0
    return SavedBytes(norms=norms, dropout=masks)


@lru_cache(maxsize=4096)
def saved_by_megatron_layer(layer: Layer, hidden: int, precision: Precision, attention: AttentionKind) -> SavedPerToken:
    """Return the activation bytes that one `layer` saves per token, and per query-key pair for scores.

    **Formula** (16 bits): norms 2 · (2h + 2h + 4), 8 with a mean; dropout 2 · h; queries, keys, values and the output
    4q + 4kv; feed-forward 4i, gated 6i; unfused scores 2 · a, and 3 · a more where they are dropped.
    """
    inputs = min(layer.norm_count, _CLASSIC + (1 if layer.cross_attention else 0))
    read = 1 if layer.parallel else inputs
    norms = inputs * _norm_saved_bytes(layer.norm, hidden, precision) + read * precision.compute_bytes * hidden
    own = SavedPerToken(
        norms=norms // layer.stream_shards,
        feed_forward=_feed_forward_saved_bytes(layer.feed_forward, hidden, precision),
        dropout=dropout_bytes(layer, hidden),
    )
    crossed = saved_by_cross_attention(layer.cross_attention, hidden, precision, attention)
    return own + _saved_by_attention(layer, precision, attention) + crossed


def _norm_saved_bytes(norm: Norm, width: int, precision: Precision) -> int:
    """Return the bytes per token that a norm saves: its input and statistics, not its output."""
    return precision.compute_bytes * width + STATISTIC * (2 if norm.kind == "layer" else 1)


def _saved_by_attention(layer: Layer, precision: Precision, kind: AttentionKind) -> SavedPerToken:
    """Return the bytes saved by attention: projected and rotated or normed tensors, and the kernel's statistics.

    Keys and values are views of the projection's output. **Source**: `SelfAttention.get_query_key_value_tensors`:
    queries of grouped heads are copied out of the projection's output (`reshape`), others are views;
    `apply_rotary_pos_emb` and norms of queries and keys make new tensors.
    """
    mixer, size = layer.mixer, precision.compute_bytes
    if mixer is None:
        return SavedPerToken()
    if not isinstance(mixer, Attention):
        return saved_by_mixer(mixer, precision, kind, layer, masked=False)
    remade = mixer.rotary or mixer.qk_norm != "none"
    copied = mixer.q_dim if remade or mixer.kv_heads != mixer.heads else 0
    copied += mixer.kv_dim if remade else 0
    kept = size * (2 * mixer.q_dim + 2 * mixer.kv_dim + copied)
    if mixer.qk_norm != "none":
        kept += STATISTIC * (mixer.heads + mixer.kv_heads)
    if kind != "eager":
        return SavedPerToken(attention=kept + STATISTIC * mixer.heads)
    return SavedPerToken(attention=kept, scores=mixer.heads * (size + (MASK + size if mixer.dropout else 0)))


def _feed_forward_saved_bytes(block: Mlp | Moe | None, hidden: int, precision: Precision) -> int:
    """Return the bytes per token saved by a feed-forward block: outputs of the first projection, last inputs.

    **Source**: core/fusions/fused_bias_gelu.py, fused_bias_swiglu.py; core/transformer/moe: `TEGroupedMLP` weights the
    activations, so that experts' outputs are not saved; `TopKRouter` computes in fp32.
    """
    size = precision.compute_bytes
    if block is None:
        return 0
    if isinstance(block, Mlp):
        return size * block.intermediate * (3 if block.gated else 2)
    routed = block.visits * size * (hidden + 3 * block.intermediate)
    return routed + 3 * size * block.shared_intermediate + 2 * STATISTIC * block.experts


def _gradient_bytes_in_flight(layers: _EqualLayers, sequences: int, precision: Precision) -> int:
    """Return the gradient bytes alive inside one layer's backward pass: feed-forward, or unfused scores.

    **Formula**: w · n · i + w · h; the gradients of the dropped scores and of the softmax, less the dropped scores and
    the feed-forward block, which are freed by then.
    """
    layer, size, tokens = layers.layer, precision.compute_bytes, sequences * layers.tokens
    block = layer.feed_forward
    wide = 0 if block is None else block.intermediate * (2 if block.gated else 1)
    wide *= block.visits if isinstance(block, Moe) else 1
    forward = tokens * size * (wide + layers.hidden)
    mixer = layer.mixer
    if not layers.ledger.scores or not isinstance(mixer, Attention | LatentAttention):
        return forward
    dropped = isinstance(mixer, Attention) and mixer.dropout
    scores = tokens * layers.tokens * mixer.heads * size * (1 if dropped else 2)
    return max(forward, scores - tokens * layers.ledger.feed_forward)
