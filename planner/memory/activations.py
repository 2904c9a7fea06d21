"""What the forward pass keeps for the backward pass, operation by operation.

Each operation of a layer saves what its derivative needs. A `Ledger` holds those bytes per token, apart for norms,
attention, feed-forward and dropout, so that every share has its own formula.

**Source**: the saved tensors of PyTorch 2.13's operators and of the step-by-step modules of transformers 5.23,
checked by `tests/memory/test_saved_activations.py` against networks that really run.
"""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from planner.memory.precision import Precision
from planner.models.architecture import Activation, Attention, LatentAttention, Layer, Mlp, Moe, Norm, Stack, StateMixer

AttentionKind = Literal["flash", "sdpa", "eager"]

STATISTIC: Final = 4
"""Bytes of one fp32 statistic: a mean, a reciprocal deviation, a log-sum-exp."""
MASK: Final = 1
"""Bytes of one element of a mask: true or false."""
LARGEST_GROUPED_HEAD: Final = 256
"""Elements of a head up to which the fused kernel takes grouped keys and values as they are."""

_KEPT_BY_ACTIVATION: Final[dict[Activation, int]] = {
    "silu": 2,
    "gelu": 2,
    "gelu-tanh": 2,
    "gelu-new": 5,
    "quick-gelu": 3,
    "relu": 1,
    "relu2": 2,
    "clamped-swiglu": 2,
}
"""Tensors of the intermediate width that an activation function and the product after it keep."""


class Ledger(NamedTuple):
    """Bytes kept per token by one layer; `scores` per token and per token of context."""

    norms: int
    attention: int
    feed_forward: int
    dropout: int
    scores: int

    def total(self, context: int) -> int:
        """Return the bytes per token when each token attends to `context` tokens."""
        return self.norms + self.attention + self.feed_forward + self.dropout + self.scores * context


@lru_cache(maxsize=4096)
def layer_ledger(
    layer: Layer, hidden: int, precision: Precision, attention: AttentionKind, masked: bool = False
) -> Ledger:
    """Return what one `layer` keeps per token; `masked` says that the fused kernel is given a mask of its own.

    **Formula** (bf16, RMSNorm, gated MLP, flash): 16h + 4q + 4kv + 8i + 4a + 8 bytes, made of norms 2 · (4h + 2h + 2h
    + 4), attention 2q + 2kv + 2kv + 2q + 4a, feed-forward 4 · 2i.
    """
    readers = _linear_readers(layer)
    mixers = [mixer for mixer in (layer.mixer, layer.second_mixer, layer.cross_attention) if mixer is not None]
    kept = [_mixer(mixer, precision, attention, layer, masked) for mixer in mixers]
    return Ledger(
        norms=_norms(layer, hidden, precision, readers),
        attention=sum(bytes_ for bytes_, _ in kept),
        feed_forward=_feed_forward(layer.feed_forward, hidden, precision),
        dropout=_dropout(layer, hidden, precision),
        scores=sum(scores for _, scores in kept),
    )


def norm_bytes(norm: Norm, width: int, precision: Precision) -> int:
    """Return what one norm over `width` elements keeps per token, its output not counted.

    **Formula**: fused LayerNorm r·h + 8; fused RMSNorm r·h + 4; step-by-step RMSNorm 4h (fp32 input) + 4 (reciprocal
    root) + r·h (normalised input in the stream's format; 4h where the weight multiplies in fp32); step-by-step
    LayerNorm 4h more, since the centred input is computed twice.
    """
    return _norm_bytes(norm, width, precision.residual_bytes)


def stack_positions(stack: Stack, tokens: int) -> int:
    """Return the tokens one sequence has in `stack`: its fixed length, or `tokens`."""
    return stack.positions or tokens


def _linear_readers(layer: Layer) -> tuple[int, int]:
    """Return how many projections read the normed input of the mixer and of the feed-forward block."""
    fused = isinstance(layer.mixer, Attention) and layer.mixer.fused_qkv
    mixer_readers = 0 if layer.mixer is None else 3 if isinstance(layer.mixer, Attention) and not fused else 1
    block = layer.feed_forward
    if isinstance(block, Mlp):
        return mixer_readers, 2 if block.gated and not block.fused_gate_up else 1
    return mixer_readers, 0 if block is None else 1


def _norms(layer: Layer, hidden: int, precision: Precision, readers: tuple[int, int]) -> int:
    """Count the norms and the normed values that projections read.

    Without autocast the readers share the norm's output. Under autocast each of them keeps a cast copy of its own.
    Norms side by side (parallel blocks) keep one input together.
    """
    inputs = sum(readers) if precision.autocast else sum(1 for count in readers if count)
    if layer.parallel and not precision.autocast:
        inputs = max(layer.norm_count, 1) if inputs else 0
    own = layer.norm_count * norm_bytes(layer.norm, hidden, precision)
    if layer.parallel and layer.norm.native:
        own -= (layer.norm_count - 1) * precision.residual_bytes * hidden
    crossed = 1 if layer.cross_attention is not None else 0
    return own + (inputs + crossed) * precision.compute_bytes * hidden


def _mixer(
    mixer: Attention | LatentAttention | StateMixer,
    precision: Precision,
    kind: AttentionKind,
    layer: Layer,
    masked: bool,
) -> tuple[int, int]:
    if isinstance(mixer, StateMixer):
        return _state_mixer(mixer, precision), 0
    if isinstance(mixer, LatentAttention):
        return _latent(mixer, precision, kind, layer)
    return _attention(mixer, precision, kind, layer, masked)


def is_masked(layer: Layer, tokens: int, attention: AttentionKind) -> bool:
    """Return whether `layer` gives the fused kernel a mask: its window is shorter than the sequence.

    **Source**: transformers `masking_utils`: without a window the kernel is told that it is causal instead.
    """
    window = layer.mixer.window if isinstance(layer.mixer, Attention) else None
    return attention == "sdpa" and window is not None and window < tokens


def mask_bytes(stack: Stack, sequences: int, tokens: int, precision: Precision, attention: AttentionKind) -> int:
    """Return the masks that the layers of `stack` share, one for each window.

    **Formula**: eager attention b · s² numbers in the stream's format; the fused kernel s² of true or false, where a
    window is shorter than the sequence.

    **Source**: transformers `masking_utils.sdpa_mask` and `eager_mask`.
    """
    windows = {group.layer.mixer.window for group in stack.groups if isinstance(group.layer.mixer, Attention)}
    if attention == "eager":
        return max(len(windows), 1) * sequences * tokens * tokens * precision.residual_bytes
    short = sum(1 for window in windows if attention == "sdpa" and window is not None and window < tokens)
    return short * tokens * tokens * MASK


def repeats_heads(mixer: Attention, attention: AttentionKind, masked: bool) -> bool:
    """Return whether grouped keys and values are copied to the number of the query heads.

    **Source**: transformers `sdpa_attention.use_gqa_in_sdpa`: the fused kernel takes them as they are without a mask
    and with heads of at most 256; `repeat_kv` repeats a single head without a copy.
    """
    if attention == "eager":
        return mixer.kv_heads < mixer.heads
    copied = attention == "sdpa" and (masked or mixer.head_dim > LARGEST_GROUPED_HEAD)
    return copied and 1 < mixer.kv_heads < mixer.heads


def _attention(
    mixer: Attention, precision: Precision, kind: AttentionKind, layer: Layer, masked: bool
) -> tuple[int, int]:
    """Return the bytes per token, and per token and token of context: the scores, or the kernel's mask."""
    size = precision.compute_bytes
    kind = kind if mixer.sdpa else "eager"
    q, kv = mixer.q_dim, mixer.kv_dim
    keys_values = 2 * (q if repeats_heads(mixer, kind, masked) else kv)
    if mixer.fused_qkv and mixer.rotary and kind != "eager":
        keys_values += q + kv
    kept = size * (2 * q + keys_values)
    if mixer.qk_norm != "none":
        kept += _qk_norm(layer.norm, mixer, precision)
    if kind == "eager":
        capped = mixer.heads * size if mixer.softcap else 0
        return kept, _scores(mixer.heads, precision, mixer.fp32_softmax, mixer.dropout) + capped
    copied_output = size * q if mixer.partial_rotary else 0
    return kept + copied_output + STATISTIC * mixer.heads, size if masked else 0


def _norm_bytes(norm: Norm, width: int, size: int, groups: int = 1) -> int:
    """Count a norm of `groups` normalised vectors, `width` elements together, whose input has `size` bytes each."""
    if norm.native:
        return size * width + STATISTIC * groups * (2 if norm.kind == "layer" else 1)
    centred = 4 if norm.kind == "layer" else 0
    return (4 + centred + (4 if norm.fp32_product else size)) * width + STATISTIC * groups


def _qk_norm(norm: Norm, mixer: Attention, precision: Precision) -> int:
    """Count the norm of queries and keys: it reads a projection's output, which is in the computing format."""
    groups = (mixer.heads + mixer.kv_heads) if mixer.qk_norm == "head" else 2
    return _norm_bytes(norm, mixer.q_dim + mixer.kv_dim, precision.compute_bytes, groups)


def _scores(heads: int, precision: Precision, fp32_softmax: bool, dropout: float) -> int:
    """Count eager attention's score matrix: the softmax's result, its cast, and dropout's mask and result."""
    size = precision.compute_bytes
    softmax = 4 if fp32_softmax or precision.autocast else size
    cast = 0 if softmax == size else size
    dropped = (MASK + (size if not cast else 0)) if dropout else 0
    return heads * (softmax + cast + dropped)


def _latent(mixer: LatentAttention, precision: Precision, kind: AttentionKind, layer: Layer) -> tuple[int, int]:
    size = precision.compute_bytes
    query_key = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
    value = mixer.heads * mixer.v_head_dim
    expanded = mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
    latents = (mixer.q_lora_rank or 0) + mixer.kv_lora_rank
    normed = (4 + size) * latents + size * latents + STATISTIC * (2 if mixer.q_lora_rank else 1)
    if kind == "eager":
        kept = size * (2 * query_key + 2 * value) + normed
        return kept, _scores(mixer.heads, precision, fp32_softmax=True, dropout=0.0)
    kept = size * (2 * query_key + expanded + value) + normed
    return kept + STATISTIC * mixer.heads, 0


def _state_mixer(mixer: StateMixer, precision: Precision) -> int:
    """Count a scan's inputs: the expanded stream before and after the convolution, its gate, and the result."""
    return 4 * precision.compute_bytes * mixer.inner_dim


def _feed_forward(block: Mlp | Moe | None, hidden: int, precision: Precision) -> int:
    """Count a feed-forward block. Routed experts run in the stream's format: grouped_mm knows no autocast."""
    if block is None:
        return 0
    size = precision.compute_bytes
    if isinstance(block, Mlp):
        return size * block.intermediate * _kept(block.gated, block.activation)
    routed = (
        block.top_k
        * precision.residual_bytes
        * (2 * hidden + block.intermediate * _kept(block.gated, block.activation))
    )
    shared = size * block.shared_intermediate * _kept(gated=True, activation=block.activation)
    router_input = 4 * hidden if block.fp32_router and precision.residual_bytes < 4 else 0
    return routed + shared + router_input + STATISTIC * block.experts


def _kept(gated: bool, activation: Activation) -> int:
    """Return how many tensors of the intermediate width are kept; a gate adds itself and the product."""
    return _KEPT_BY_ACTIVATION[activation] + (2 if gated else 0)


def _dropout(layer: Layer, hidden: int, precision: Precision) -> int:
    """Count the masks of what each block adds, and of the activated width where it is dropped, with its result."""
    blocks = sum(1 for part in (layer.mixer, layer.cross_attention, layer.feed_forward) if part is not None)
    inner = 0
    if isinstance(layer.feed_forward, Mlp) and layer.feed_forward.dropout:
        inner = (MASK + precision.compute_bytes) * layer.feed_forward.intermediate
    return inner + (MASK * hidden * blocks if layer.hidden_dropout else 0)
