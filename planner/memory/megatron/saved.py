"""What a forward pass of Megatron-LM's own layers keeps for the backward pass.

Its layers are not those of transformers: norms keep no fp32 copies, biases, activations and dropout are fused, and
softmax runs in one kernel in 16 bits.

**Source**: Megatron-LM 0.20 (core/transformer, core/fusions, core/models/gpt/gpt_layer_specs.py) with Transformer
Engine 2 (`LayerNormLinear`, `UnfusedDotProductAttention`); for a layer of classic shape 34 · h + 5 · a · s bytes per
token, Korthikanti et al. 2022, arXiv 2205.05198, table 2.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.kernels import MASK, AttentionKind
from planner.memory.precision import Precision
from planner.memory.training.activations import Ledger, crossed_ledger, dropout_bytes, mixer_bytes, stack_positions
from planner.memory.training.backward import Stage
from planner.memory.training.feed_forward import STATISTIC
from planner.memory.training.saved import Saved, is_norm, trained_stacks
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe, Norm
from planner.workload.choices import Checkpointing

_CLASSIC: Final = 2
"""Norms of a layer that read the stream: before attention and before the feed-forward block."""


class _Layers(NamedTuple):
    """Some equal layers of a stack, with what each keeps and how many tokens it sees."""

    number: int
    layer: Layer
    hidden: int
    tokens: int
    source: int
    ledger: Ledger


@lru_cache(maxsize=1024)
def megatron_saved(
    architecture: Architecture,
    sequences: int,
    length: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointing: Checkpointing,
) -> Saved:
    """Return what a forward pass over `sequences` × `length` tokens keeps.

    With full checkpointing each layer keeps its input only; with selective checkpointing the scores of attention are
    computed again, one layer at a time.

    **Formula**: Σ over layers of the ledger; behind them the last norm's input and output.
    """
    layers = [*_layers_of(architecture, length, precision, attention)]
    whole = checkpointing != "full"
    every = [(one, sequences * one.tokens * one.number) for one in layers] if whole else []
    keeps_scores = checkpointing == "none"
    shards = architecture.main.groups[0].layer.stream_shards
    norms, masks = _edges(architecture, sequences, length, precision, shards)
    inputs = [
        one.number * sequences * one.tokens * one.hidden * precision.compute_bytes // one.layer.stream_shards
        for one in layers
    ]
    scores = [one.number * one.ledger.score_bytes(sequences, one.tokens, one.source) for one in layers]
    largest = max([one.ledger.total(sequences, one.tokens, one.source) for one in layers])
    again = max([one.ledger.score_bytes(sequences, one.tokens, one.source) for one in layers])
    return Saved(
        norms=norms + sum([tokens * one.ledger.norms for one, tokens in every]),
        attention=sum(
            [one.number * one.ledger.attention_bytes(sequences, one.tokens, one.source) for one in layers if whole]
        ),
        feed_forward=sum([tokens * one.ledger.feed_forward for one, tokens in every]),
        dropout=masks + sum([tokens * one.ledger.dropout for one, tokens in every]),
        scores=sum(scores) if keeps_scores else 0,
        checkpoints=0 if whole else sum(inputs),
        one_layer=largest,
        stage=Stage(max([_flight(one, sequences, precision) for one in layers]), 0, 0),
        first=masks,
        behind=norms,
        layers=tuple([(one.number, one.ledger) for one in layers]) if whole else (),
        depth=sum([one.number for one in layers]),
        recomputed={"none": 0, "selective": again, "full": largest}[checkpointing],
    )


def _layers_of(
    architecture: Architecture, length: int, precision: Precision, attention: AttentionKind
) -> list[_Layers]:
    found, source = [], 0
    for stack in trained_stacks(architecture):
        tokens = stack_positions(stack, length)
        for group in stack.groups:
            ledger = megatron_ledger(group.layer, stack.hidden, precision, attention)
            found.append(_Layers(group.count, group.layer, stack.hidden, tokens, source, ledger))
        source = tokens
    return found


def _edges(
    architecture: Architecture, sequences: int, length: int, precision: Precision, shards: int
) -> tuple[int, int]:
    """Return what the norms behind the layers keep with the head's input, and the masks of dropped embeddings."""
    norms = masks = 0
    for stack in trained_stacks(architecture):
        tokens = sequences * stack_positions(stack, length)
        behind = sum([1 for tensor in stack.after if is_norm(tensor, stack.hidden)])
        each = _norm(stack.groups[0].layer.norm, stack.hidden, precision) + precision.compute_bytes * stack.hidden
        norms += tokens * behind * each // shards
        masks += tokens * MASK * stack.hidden // shards if stack.embedding_dropout else 0
    return norms, masks


@lru_cache(maxsize=4096)
def megatron_ledger(layer: Layer, hidden: int, precision: Precision, attention: AttentionKind) -> Ledger:
    """Return what one `layer` keeps, in bytes per token and, for the scores, per token and token of context.

    **Formula** (16 bits): norms 2 · (2h + 2h + 4), 8 with a mean; dropout 2 · h; queries, keys, values and the output
    4q + 4kv; feed-forward 4i, gated 6i; unfused scores 2 · a, and 3 · a more where they are dropped.
    """
    size = precision.compute_bytes
    crossed = crossed_ledger(layer.cross_attention, hidden, precision, attention)
    kept, scores = _attention(layer, precision, attention)
    inputs = min(layer.norm_count, _CLASSIC + (1 if layer.cross_attention else 0))
    read = 1 if layer.parallel else inputs
    norms = inputs * _norm(layer.norm, hidden, precision) + read * size * hidden
    return Ledger(
        norms=norms // layer.stream_shards,
        attention=kept + crossed.attention,
        feed_forward=_feed_forward(layer.feed_forward, hidden, precision),
        dropout=dropout_bytes(layer, hidden),
        scores=scores,
        source=crossed.source,
        source_scores=crossed.source_scores,
    )


def _norm(norm: Norm, width: int, precision: Precision) -> int:
    """Count the input and its statistics; the output is counted with what reads it."""
    return precision.compute_bytes * width + STATISTIC * (2 if norm.kind == "layer" else 1)


def _attention(layer: Layer, precision: Precision, kind: AttentionKind) -> tuple[int, int]:
    """Count one projection's output, of which keys and values are views, copies of what is rotated or normed, the rest.

    **Source**: `SelfAttention.get_query_key_value_tensors`: queries of grouped heads are copied out of the projection's
    output (`reshape`), others are views; `apply_rotary_pos_emb` and norms of queries and keys make new tensors.
    """
    mixer, size = layer.mixer, precision.compute_bytes
    if mixer is None:
        return 0, 0
    if not isinstance(mixer, Attention):
        return mixer_bytes(mixer, precision, kind, layer, masked=False)
    remade = mixer.rotary or mixer.qk_norm != "none"
    copied = mixer.q_dim if remade or mixer.kv_heads != mixer.heads else 0
    copied += mixer.kv_dim if remade else 0
    kept = size * (2 * mixer.q_dim + 2 * mixer.kv_dim + copied)
    if mixer.qk_norm != "none":
        kept += STATISTIC * (mixer.heads + mixer.kv_heads)
    if kind != "eager":
        return kept + STATISTIC * mixer.heads, 0
    return kept, mixer.heads * (size + (MASK + size if mixer.dropout else 0))


def _feed_forward(block: Mlp | Moe | None, hidden: int, precision: Precision) -> int:
    """Count what the first projection puts out and what the second one reads; experts copy what they read.

    **Source**: core/fusions/fused_bias_gelu.py, fused_bias_swiglu.py; core/transformer/moe: `TEGroupedMLP` weights the
    activations, so that what experts put out is not kept; `TopKRouter` works in fp32.
    """
    size = precision.compute_bytes
    if block is None:
        return 0
    if isinstance(block, Mlp):
        return size * block.intermediate * (3 if block.gated else 2)
    routed = block.visits * size * (hidden + 3 * block.intermediate)
    return routed + 3 * size * block.shared_intermediate + 2 * STATISTIC * block.experts


def _flight(one: _Layers, sequences: int, precision: Precision) -> int:
    """Return the gradients in flight in a layer: in its feed-forward block, or in the scores of unfused attention.

    **Formula**: w · n · i + w · h; the gradients of the dropped scores and of the softmax, less the dropped scores and
    the feed-forward block, which are freed by then.
    """
    layer, size, tokens = one.layer, precision.compute_bytes, sequences * one.tokens
    block = layer.feed_forward
    wide = 0 if block is None else block.intermediate * (2 if block.gated else 1)
    wide *= block.visits if isinstance(block, Moe) else 1
    forward = tokens * size * (wide + one.hidden)
    mixer = layer.mixer
    if not one.ledger.scores or not isinstance(mixer, Attention | LatentAttention):
        return forward
    dropped = isinstance(mixer, Attention) and mixer.dropout
    scores = tokens * one.tokens * mixer.heads * size * (1 if dropped else 2)
    return max(forward, scores - tokens * one.ledger.feed_forward)
