"""MiniMax-Text-01: linear ("lightning") attention beside softmax attention in a few layers.

**Source**: MiniMax-01 (arXiv:2501.08313) §2.2 and the modelling code of transformers 5.23.
"""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, StateMixer
from planner.models.readers.blocks import AttentionStyle, MixerBlock, MlpStyle, attention_blocks
from planner.models.readers.decoder.experts import forward_blocks
from planner.models.readers.decoder.family import Frame, assemble
from planner.models.readers.decoder.moe import MIXTRAL_EXPERTS
from planner.models.readers.fields import Fields
from planner.models.readers.parts import RMS, linear, norm_tensors
from planner.models.readers.registry import Reader
from planner.models.readers.sizes import Sizes, read_sizes


def _minimax(fields: Fields) -> Architecture:
    sizes = read_sizes(fields, kv_heads=8)
    softmax = attention_blocks(fields, sizes, AttentionStyle())[0]
    linear_attention = _lightning(sizes)
    mixers = [softmax if plain else linear_attention for plain in _softmax_layers(fields, sizes.layers)]
    return assemble(fields, sizes, Frame(), mixers, forward_blocks(fields, sizes, MIXTRAL_EXPERTS, MlpStyle()))


def _lightning(sizes: Sizes) -> MixerBlock:
    """Return linear attention, whose state is one head_dim × head_dim matrix a head."""
    width = sizes.heads * sizes.head_dim
    mixer = StateMixer(
        name="linear-attention",
        conv_state_elements=0,
        recurrent_state_elements=width * sizes.head_dim,
        inner_dim=width,
    )
    return MixerBlock(
        mixer,
        (
            *norm_tensors("self_attn.norm", width, RMS),
            *linear("self_attn.qkv_proj", 3 * width, sizes.hidden),
            *linear("self_attn.out_proj", sizes.hidden, width),
            *linear("self_attn.output_gate", width, sizes.hidden),
        ),
    )


def _softmax_layers(fields: Fields, layers: int) -> tuple[bool, ...]:
    kinds = fields.texts("layer_types")
    if kinds is None:
        return tuple(place % 2 == 0 for place in range(layers))
    if len(kinds) != layers or not set(kinds) <= {"full_attention", "linear_attention"}:
        fields.fail("layer_types", f"must say full_attention or linear_attention for each of the {layers} layers")
    return tuple(kind == "full_attention" for kind in kinds)


READERS: Final[Mapping[str, Reader]] = {"minimax": _minimax}
