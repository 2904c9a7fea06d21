"""Activations saved by one of LitGPT's transformer blocks, and inputs that bitsandbytes keeps after the step."""

from functools import lru_cache
from typing import NamedTuple

from planner.memory.kernels import MASK
from planner.memory.software.litgpt.parameters import AdaptedParts, merged_width
from planner.memory.training.autograd.layer import STATISTIC
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import Attention, Layer, Mlp, Norm


class BlockSettings(NamedTuple):
    """Bytes per element of residual stream and matrix products; the adapted parts, None in full fine-tuning.

    `quantized` means that bitsandbytes computes the products.
    """

    stream: int
    computed: int
    parts: AdaptedParts | None
    quantized: bool = False

    @property
    def autocast(self) -> bool:
        """Return whether the residual stream has more bytes per element than inputs of matrix products."""
        return self.stream != self.computed

    def adapts(self, name: str) -> bool:
        """Return whether the part `name`, such as `query` or `mlp`, has an adapter."""
        return self.parts is not None and name in self.parts.names

    @property
    def rank(self) -> int:
        """Return the rank of the adapters, 0 without adapters."""
        return self.parts.rank if self.parts else 0


@lru_cache(maxsize=1024)
def saved_by_block(
    layer: Layer, hidden: int, settings: BlockSettings, input_has_gradient: bool = True
) -> SavedPerToken:
    """Return the bytes saved per token by a block.

    `input_has_gradient` is false for the first block if only adapters are trained.

    **Formula** (bf16-true, RMSNorm, grouped heads, gated, adapters on queries and values with dropout): norms
    2 · (4h + 4); queries, keys and values as wide as all heads 3 · 2q, the output 2q + 4a; the adapters' input 2h + h,
    result of A 2 · 2r and of B 2 · (q + kv); feed-forward 3 · 2i. The first block keeps neither what its first norm
    reads nor the mask of the dropout after it.

    **Source**: litgpt/model.py and litgpt/lora.py at 00af8b0d (September 2024): `RMSNorm.forward` copies to fp32,
    `CausalSelfAttention.forward` expands keys and values to all heads, `LoRAQKVLinear.zero_pad` keeps what
    `index_copy_` copies.
    """
    mixer, block = layer.mixer, layer.feed_forward
    if not isinstance(mixer, Attention) or not isinstance(block, Mlp):
        return SavedPerToken()
    mixed, between = _gradient_reaches(layer, settings, input_has_gradient)
    norms = _norms_saved_bytes(layer, hidden, settings, input_has_gradient, between)
    merged, beside = _merged_projection_bytes(mixer, hidden, settings, input_has_gradient)
    written = _adapter_saved_bytes(
        mixer.q_dim, "projection", settings, copied=_copies_attention_output(settings), input_has_gradient=mixed
    )
    kept, adapters = _feed_forward_saved_bytes(block, hidden, settings, between)
    return SavedPerToken(
        norms=norms + merged,
        attention=_attention_saved_bytes(mixer, settings) if mixed else 0,
        feed_forward=kept,
        adapters=adapters + beside + written,
    )


def _gradient_reaches(layer: Layer, settings: BlockSettings, input_has_gradient: bool) -> tuple[bool, bool]:
    """Return whether a gradient passes through attention, and whether one reaches the feed-forward input."""
    mixed = input_has_gradient or settings.parts is None or settings.parts.merged_adapter_count > 0
    return mixed, input_has_gradient if layer.parallel else mixed or settings.adapts("projection")


def _norms_saved_bytes(
    layer: Layer, hidden: int, settings: BlockSettings, input_has_gradient: bool, reaches_feed_forward: bool
) -> int:
    """Return the bytes per token saved by a block's norms that are trained or pass a gradient on."""
    each = litgpt_norm_bytes(layer.norm, hidden, settings)
    if settings.parts is None or input_has_gradient:
        shared = (layer.norm_count - 1) * settings.stream * hidden if layer.parallel and layer.norm.native else 0
        return layer.norm_count * each - shared
    return each * (layer.norm_count - 1) if reaches_feed_forward else 0


def litgpt_norm_bytes(norm: Norm, width: int, settings: BlockSettings) -> int:
    """Return the bytes per token that a norm saves: input (fp32 for RMSNorm), and normed values if trained.

    **Formula**: LayerNorm r · h + 8; RMSNorm 4h + 4, and 4h where it is trained.
    """
    if norm.kind == "layer":
        return settings.stream * width + 2 * STATISTIC
    return (4 if settings.parts else 8) * width + STATISTIC


def _attention_saved_bytes(mixer: Attention, settings: BlockSettings) -> int:
    """Return the bytes per token saved by attention: rotated queries and keys, values, output, statistics.

    Values are a view into the merged result, all of which is saved, unless grouped heads are expanded by a copy.
    """
    size, grouped = settings.computed, 1 < mixer.kv_heads < mixer.heads
    values = mixer.q_dim if grouped else mixer.q_dim + 2 * mixer.kv_dim
    output = mixer.q_dim * (2 if settings.parts is None and _copies_attention_output(settings) else 1)
    return size * (2 * mixer.q_dim + values + output) + STATISTIC * mixer.heads


def _copies_attention_output(settings: BlockSettings) -> bool:
    """Return whether attention's output is copied because flash attention stores it head by head.

    **Source**: aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, `mha_fwd`: empty_like(q); the
    memory-efficient kernel, which is used for fp32, writes token by token.
    """
    return settings.computed < 4


class _ProjectionBytes(NamedTuple):
    """Bytes per token saved by projections themselves, and by their adapters."""

    own: int
    adapters: int


def _merged_projection_bytes(
    mixer: Attention, hidden: int, settings: BlockSettings, input_has_gradient: bool
) -> _ProjectionBytes:
    """Return the bytes per token saved by the merged query-key-value projection, and by its adapters."""
    size, parts = settings.computed, settings.parts
    if parts is None:
        return _ProjectionBytes(size * hidden, 0)
    if not parts.merged_adapter_count:
        return _ProjectionBytes(0, 0)
    spread = merged_width(mixer, parts) if parts.merged_adapter_count < 3 else 0
    mask = MASK * hidden if parts.dropout and input_has_gradient else 0
    return _ProjectionBytes(0, size * (hidden + parts.merged_adapter_count * parts.rank + spread) + mask)


def _feed_forward_saved_bytes(
    block: Mlp, hidden: int, settings: BlockSettings, input_has_gradient: bool
) -> _ProjectionBytes:
    """Return the bytes per token saved by a feed-forward block, and by its adapters."""
    size, width = settings.computed, block.intermediate
    readers = 2 if block.gated else 1
    kept = size * width * (3 if block.gated else 1)
    if settings.parts is None:
        read = size * hidden * (readers if settings.autocast else 1)
        return _ProjectionBytes(kept + read + size * width, 0)
    if not settings.adapts("mlp"):
        return _ProjectionBytes(kept if input_has_gradient else 0, 0)
    each = _adapter_saved_bytes(hidden, "mlp", settings, input_has_gradient=input_has_gradient)
    shared = 0 if settings.parts.dropout or settings.autocast else (readers - 1) * size * hidden
    return _ProjectionBytes(kept, readers * each - shared + _adapter_saved_bytes(width, "mlp", settings))


def _adapter_saved_bytes(
    width: int, name: str, settings: BlockSettings, *, copied: bool = True, input_has_gradient: bool = True
) -> int:
    """Return the bytes per token that an adapter saves: its input, or dropout's result and mask, and A's output.

    The input is not counted if something else saves it anyway.
    """
    if not settings.adapts(name):
        return 0
    size, dropout = settings.computed, settings.parts is not None and settings.parts.dropout
    read = size * width if dropout or copied else 0
    return read + (MASK * width if dropout and input_has_gradient else 0) + size * settings.rank


class BitsandbytesInputs(NamedTuple):
    """Bytes per token of a block's inputs of quantized projections that bitsandbytes keeps.

    `unshared` are those of the inputs that nothing else saves, `total` those of all.
    """

    unshared: int
    total: int


def bitsandbytes_input_bytes(
    layer: Layer, hidden: int, settings: BlockSettings, input_has_gradient: bool = True
) -> BitsandbytesInputs:
    """Return the bytes per token of the inputs of a block's quantized projections that bitsandbytes keeps.

    **Formula**: h for each norm, i, and q for the copy of attention's output; nothing for inputs without a gradient.

    **Source**: bitsandbytes 0.42 `MatMul4Bit.forward`, ctx.tensors = (A, B): no saved tensors, so that the backward
    pass does not free them; from 0.43.2 on they are dropped (bitsandbytes 9e753741).
    """
    mixer, block, parts = layer.mixer, layer.feed_forward, settings.parts
    if not settings.quantized or parts is None or not isinstance(mixer, Attention) or not isinstance(block, Mlp):
        return BitsandbytesInputs(0, 0)
    mixed, between = _gradient_reaches(layer, settings, input_has_gradient)
    into = hidden * ((1 if input_has_gradient else 0) + (layer.norm_count - 1 if between else 0))
    last = block.intermediate if between or settings.adapts("mlp") else 0
    written = mixer.q_dim if mixed else 0
    shared = 0 if _copies_attention_output(settings) else written
    if not parts.dropout:
        shared += written if settings.adapts("projection") and _copies_attention_output(settings) else 0
        shared += hidden if parts.merged_adapter_count and input_has_gradient else 0
        shared += last + (hidden if between else 0) if settings.adapts("mlp") else 0
    every = into + last + written
    return BitsandbytesInputs(settings.computed * (every - shared), settings.computed * every)


def graph_matrix_elements(layer: Layer, hidden: int, settings: BlockSettings, input_has_gradient: bool = True) -> int:
    """Return the elements of a block's weights that the autograd graph holds because their inputs need gradients."""
    mixer, block = layer.mixer, layer.feed_forward
    if not isinstance(mixer, Attention) or not isinstance(block, Mlp):
        return 0
    mixed, between = _gradient_reaches(layer, settings, input_has_gradient)
    readers = 2 if block.gated else 1
    return (
        (hidden * (mixer.q_dim + 2 * mixer.kv_dim) if input_has_gradient else 0)
        + (hidden * mixer.q_dim if mixed else 0)
        + (readers * hidden * block.intermediate if between else 0)
        + (hidden * block.intermediate if between or settings.adapts("mlp") else 0)
    )
