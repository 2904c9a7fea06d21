"""Llama 3.2 Vision (mllama): a tower over image tiles, and a decoder whose every fifth layer attends to it instead."""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Attention, Layer, Stack
from planner.models.readers.blocks import AttentionStyle, MlpStyle, Sizes, attention_blocks, mlp_block, read_sizes
from planner.models.readers.decoder.family import Frame, network
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import (
    LAYER,
    RMS,
    Tensors,
    attention_tensors,
    conv,
    embedding,
    grouped,
    norm_tensors,
    qk_norm_tensors,
    tensor,
)
from planner.models.readers.registry import Reader
from planner.models.readers.towers import LayerNames, full_attention, patches, plain_mlp, tower_layer, vision_stack

_NORMS: Final = ("input_layernorm", "post_attention_layernorm")
_VISION: Final = LayerNames(
    attention=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    norms=_NORMS,
    mlp=("mlp.fc1", "mlp.fc2"),
)
_ASPECT_RATIOS: Final = 8
_TILES: Final = 4
_CROSS_LAYERS: Final = (3, 8, 13, 18, 23, 28, 33, 38)
# Rows of the embedding beyond the vocabulary, for the image token and its neighbours.
_SPECIAL_TOKENS: Final = 8
# The patches of a tile are padded to a multiple of this.
_PADDING: Final = 8


def mllama_vision(fields: Fields) -> Stack:
    """Return the tower: local layers, and global ones behind gates, over all tiles of an image at once."""
    hidden = fields.integer("hidden_size")
    attention = full_attention(fields, hidden, "attention_heads")
    mlp = plain_mlp(fields, fields.integer("intermediate_size"), "hidden_act")
    gates = (*tensor("gate_attn", 1), *tensor("gate_ffn", 1))
    local = fields.integer("num_hidden_layers", high=MAX_LAYERS)
    layers = local + fields.integer("num_global_layers", high=MAX_LAYERS)
    rows = patches(fields) + 1
    tiles = fields.integer("max_num_tiles", default=_TILES)
    layer = tower_layer(_VISION, hidden, attention, mlp, qkv_bias=False, out_bias=False)
    return vision_stack(
        hidden,
        grouped(
            (place >= local for place in range(layers)),
            lambda gated: layer.evolve(tensors=(*layer.tensors, *gates)) if gated else layer,
        ),
        before=_vision_input(fields, hidden, rows, tiles),
        after=norm_tensors("layernorm_post", hidden, LAYER),
        positions=tiles * -(-rows // _PADDING) * _PADDING,
    )


def _vision_input(fields: Fields, hidden: int, rows: int, tiles: int) -> Tensors:
    ratios = (fields.size("supported_aspect_ratios") or _ASPECT_RATIOS) + 1
    table = "gated_positional_embedding"
    channels = fields.integer("num_channels", default=3)
    return (
        *tensor("class_embedding", hidden),
        *conv("patch_embedding", hidden, channels, *fields.pair("patch_size"), bias=False),
        *tensor(f"{table}.gate", 1),
        *tensor(f"{table}.embedding", rows, hidden, role="embedding"),
        *embedding(f"{table}.tile_embedding", ratios, tiles * rows * hidden),
        *tensor("pre_tile_positional_embedding.gate", 1),
        *embedding("pre_tile_positional_embedding.embedding", ratios, tiles * hidden),
        *tensor("post_tile_positional_embedding.gate", 1),
        *embedding("post_tile_positional_embedding.embedding", ratios, tiles * hidden),
        *norm_tensors("layernorm_pre", hidden, LAYER),
    )


def read_mllama_text(fields: Fields) -> Architecture:
    """Read the decoder; a cross-attention layer has no self-attention."""
    sizes = read_sizes(fields, kv_heads=8)
    listed = fields.integers("cross_attention_layers")
    crossing = frozenset(_CROSS_LAYERS if listed is None else listed)
    groups = grouped(
        (place in crossing for place in range(sizes.layers)),
        lambda crosses: _cross_layer(fields, sizes) if crosses else _self_layer(fields, sizes),
    )
    before = embedding("model.embed_tokens", sizes.vocabulary + _SPECIAL_TOKENS, sizes.hidden)
    # Its head is its own, whatever the file says.
    return network(fields.changed({"tie_word_embeddings": False}), sizes, Frame(), groups, before=before)


def _self_layer(fields: Fields, sizes: Sizes) -> Layer:
    attention = attention_blocks(fields, sizes, AttentionStyle(dropout=0.0))[0]
    forward = mlp_block(fields, sizes, MlpStyle())
    return Layer(
        mixer=attention.mixer,
        feed_forward=forward.block,
        norm=RMS,
        norm_count=2,
        tensors=(*attention.tensors, *forward.tensors, *_norms(sizes.hidden)),
    )


def _cross_layer(fields: Fields, sizes: Sizes) -> Layer:
    attention = Attention(
        heads=sizes.heads, kv_heads=sizes.kv_heads, head_dim=sizes.head_dim, qk_norm="head", rotary=False
    )
    forward = mlp_block(fields, sizes, MlpStyle())
    return Layer(
        cross_attention=attention,
        feed_forward=forward.block,
        norm=RMS,
        norm_count=2,
        tensors=(
            *tensor("cross_attn_attn_gate", 1),
            *tensor("cross_attn_mlp_gate", 1),
            *attention_tensors(attention, sizes.hidden, prefix="cross_attn."),
            *qk_norm_tensors(attention, prefix="cross_attn."),
            *forward.tensors,
            *_norms(sizes.hidden),
        ),
    )


def _norms(hidden: int) -> Tensors:
    return tuple(found for name in _NORMS for found in norm_tensors(name, hidden, RMS))


READERS: Final[Mapping[str, Reader]] = {"mllama_text_model": read_mllama_text}
