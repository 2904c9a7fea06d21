"""What one of LitGPT's blocks keeps for the backward pass, and what bitsandbytes holds on to after it."""

from functools import lru_cache
from typing import NamedTuple

from planner.memory.activations import Ledger
from planner.memory.feed_forward import STATISTIC
from planner.memory.kernels import MASK
from planner.memory.litgpt.parts import Parts, merged_width
from planner.models.architecture import Attention, Layer, Mlp, Norm


class Recipe(NamedTuple):
    """Bytes per element of the stream, and of what matrix products read; what is adapted, or none if all is trained.

    `quantised` says that bitsandbytes multiplies.
    """

    stream: int
    computed: int
    parts: Parts | None
    quantised: bool = False

    @property
    def autocast(self) -> bool:
        """Return whether the stream is wider than what matrix products read."""
        return self.stream != self.computed

    def adapts(self, name: str) -> bool:
        """Return whether the part `name` is adapted."""
        return self.parts is not None and name in self.parts.names

    @property
    def rank(self) -> int:
        """Return the rank of the adapters, 0 without."""
        return self.parts.rank if self.parts else 0


@lru_cache(maxsize=1024)
def block_ledger(layer: Layer, hidden: int, recipe: Recipe) -> Ledger:
    """Return what a block keeps per token.

    **Formula** (bf16-true, RMSNorm, grouped heads, gated, adapters on queries and values with dropout): norms
    2 · (4h + 4); queries, keys and values as wide as all heads 3 · 2q, the output 2q + 4a; the adapters' input 2h + h,
    result of A 2 · 2r and of B 2 · (q + kv); feed-forward 3 · 2i.

    **Source**: litgpt/model.py and litgpt/lora.py at 00af8b0d (September 2024): `RMSNorm.forward` copies to fp32,
    `CausalSelfAttention.forward` expands keys and values to all heads, `LoRAQKVLinear.zero_pad` keeps what
    `index_copy_` copies.
    """
    mixer, block = layer.mixer, layer.feed_forward
    if not isinstance(mixer, Attention) or not isinstance(block, Mlp):
        return Ledger(0, 0, 0, 0, 0)
    norms = layer.norm_count * norm_kept(layer.norm, hidden, recipe)
    if layer.parallel and layer.norm.native:
        norms -= (layer.norm_count - 1) * recipe.stream * hidden
    forward, adapters = _forward(block, hidden, recipe)
    merged, beside = _merged(layer, hidden, recipe)
    written = _adapter(mixer.q_dim, "projection", recipe, is_kept=True)
    return Ledger(
        norms=norms + merged,
        attention=_attention(mixer, recipe),
        feed_forward=forward,
        dropout=0,
        scores=0,
        adapters=adapters + beside + written,
    )


def norm_kept(norm: Norm, width: int, recipe: Recipe) -> int:
    """Return what a norm keeps: its input, in fp32 for RMSNorm, and where its weight is trained the normed values.

    **Formula**: LayerNorm r · h + 8; RMSNorm 4h + 4, and 4h where it is trained.
    """
    if norm.kind == "layer":
        return recipe.stream * width + 2 * STATISTIC
    return (4 if recipe.parts else 8) * width + STATISTIC


def _attention(mixer: Attention, recipe: Recipe) -> int:
    """Count queries and keys, which are rotated and put together anew, values, the output and its statistics.

    Values are a view into the merged result, all of which is kept, unless a few heads are copied to be many.
    """
    size, grouped = recipe.computed, 1 < mixer.kv_heads < mixer.heads
    values = mixer.q_dim if grouped else mixer.q_dim + 2 * mixer.kv_dim
    return size * (2 * mixer.q_dim + values + mixer.q_dim) + STATISTIC * mixer.heads


def _merged(layer: Layer, hidden: int, recipe: Recipe) -> tuple[int, int]:
    """Return what the projection to queries, keys and values keeps of its input, and its adapters apart."""
    size, parts = recipe.computed, recipe.parts
    if parts is None:
        return size * hidden, 0
    if not parts.merged:
        return 0, 0
    spread = merged_width(layer, parts) if parts.merged < 3 else 0
    return 0, size * (hidden + parts.merged * parts.rank + spread) + (MASK * hidden if parts.dropout else 0)


def _forward(block: Mlp, hidden: int, recipe: Recipe) -> tuple[int, int]:
    """Return what a feed-forward block keeps, and its adapters apart."""
    size, width = recipe.computed, block.intermediate
    readers = 2 if block.gated else 1
    kept = size * width * (3 if block.gated else 1)
    if recipe.parts is None:
        read = size * hidden * (readers if recipe.autocast else 1)
        return kept + read + size * width, 0
    shared = recipe.adapts("mlp") and not recipe.parts.dropout and not recipe.autocast
    into = size * hidden + readers * size * recipe.rank if shared else readers * _adapter(hidden, "mlp", recipe)
    return kept, into + _adapter(width, "mlp", recipe)


def _adapter(width: int, name: str, recipe: Recipe, *, is_kept: bool = False) -> int:
    """Return what an adapter keeps: its input, or a copy after dropout with the mask, and what A put out."""
    if not recipe.adapts(name):
        return 0
    size, dropout = recipe.computed, recipe.parts is not None and recipe.parts.dropout
    copied = size * width if dropout or not is_kept else 0
    return copied + (MASK * width if dropout else 0) + size * recipe.rank


@lru_cache(maxsize=1024)
def inputs_of(layer: Layer, hidden: int, recipe: Recipe) -> tuple[int, int]:
    """Return the inputs of the quantised projections that bitsandbytes refers to: those kept by nothing else, and all.

    **Formula**: h for each norm, i, and q for attention's output, which attention keeps itself.

    **Source**: bitsandbytes 0.42 `MatMul4Bit.forward`, ctx.tensors = (A, B): no saved tensors, so that the backward
    pass does not free them; from 0.43.2 on they are dropped (bitsandbytes 9e753741).
    """
    mixer, block = layer.mixer, layer.feed_forward
    if not recipe.quantised or not isinstance(mixer, Attention) or not isinstance(block, Mlp):
        return 0, 0
    read = layer.norm_count * hidden + block.intermediate
    size = recipe.computed
    dropped = recipe.parts is not None and recipe.parts.dropout
    shared = 0
    if not dropped:
        shared += hidden if recipe.parts and recipe.parts.merged else 0
        shared += hidden + block.intermediate if recipe.adapts("mlp") else 0
    return size * (read - shared), size * (read + mixer.q_dim)
