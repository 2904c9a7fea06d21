"""The vision towers of composite models, by the `model_type` of their part of the configuration."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.models.architecture import Layer, Mlp, Stack
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.multimodal.mllama import mllama_vision
from planner.models.readers.parts import (
    ACTIVATIONS,
    LAYER,
    RMS,
    conv,
    linear,
    norm_tensors,
    qk_norm_tensors,
    repeated,
    tensor,
)
from planner.models.readers.towers import LayerNames, full_attention, patches, plain_mlp, tower_layer, vision_stack
from planner.models.readers.vision.clip import clip_vision, siglip_vision
from planner.models.readers.vision.qwen import qwen2_5_vision, qwen2_vision, qwen3_vision

_PIXTRAL: Final = LayerNames(
    attention=("attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj"),
    norms=("attention_norm", "ffn_norm"),
    mlp=("feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj"),
)
_INTERNVL: Final = LayerNames(
    attention=("attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.projection_layer"),
    norms=("layernorm_before", "layernorm_after"),
    mlp=("mlp.fc1", "mlp.fc2"),
)
_LLAMA4: Final = LayerNames(
    attention=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    norms=("input_layernorm", "post_attention_layernorm"),
    mlp=("mlp.fc1", "mlp.fc2"),
)


def pixtral_vision(fields: Fields) -> Stack:
    """Return Pixtral's tower, which reads images at their own resolution."""
    hidden = fields.integer("hidden_size")
    attention = full_attention(
        fields, hidden, "num_attention_heads", dropout=fields.dropout("attention_dropout"), rotary=True
    )
    mlp = Mlp(
        intermediate=fields.integer("intermediate_size"),
        gated=True,
        activation=fields.choice("hidden_act", among=ACTIVATIONS, default="gelu"),
    )
    layer = tower_layer(_PIXTRAL, hidden, attention, mlp, norm=RMS, bias=False)
    channels = fields.integer("num_channels", default=3)
    return vision_stack(
        hidden,
        repeated(layer, _layers(fields)),
        before=(
            *conv("patch_conv", hidden, channels, *fields.pair("patch_size"), bias=False),
            *norm_tensors("ln_pre", hidden, RMS),
        ),
    )


def internvl_vision(fields: Fields) -> Stack:
    """Return InternVL's tower."""
    hidden = fields.integer("hidden_size")
    rows = patches(fields) + 1
    absolute = fields.flag("use_absolute_position_embeddings", default=True)
    masked = fields.flag("use_mask_token", default=False)
    pooled = fields.flag("use_mean_pooling", default=True)
    channels = fields.integer("num_channels", default=3)
    dropout = fields.dropout("hidden_dropout_prob")
    return vision_stack(
        hidden,
        repeated(_internvl_layer(fields, hidden, dropout), _layers(fields)),
        before=(
            *tensor("embeddings.cls_token", 1, 1, hidden),
            *(tensor("embeddings.mask_token", 1, 1, hidden) if masked else ()),
            *(tensor("embeddings.position_embeddings", 1, rows, hidden, role="embedding") if absolute else ()),
            *conv("embeddings.patch_embeddings.projection", hidden, channels, *fields.pair("patch_size")),
        ),
        after=() if pooled else norm_tensors("layernorm", hidden, LAYER),
        positions=rows,
        dropout=dropout,
    )


def _internvl_layer(fields: Fields, hidden: int, dropout: float) -> Layer:
    normed = fields.flag("use_qk_norm", default=False)
    attention = full_attention(
        fields, hidden, "num_attention_heads", dropout=fields.dropout("attention_dropout"), fp32_softmax=False
    ).evolve(qk_norm="all" if normed else "none")
    norm = fields.choice("norm_type", among={"layer_norm": LAYER, "rms_norm": RMS}, default="layer_norm")
    return tower_layer(
        _INTERNVL,
        hidden,
        attention,
        plain_mlp(fields, fields.integer("intermediate_size"), "hidden_act"),
        norm=norm,
        qkv_bias=fields.flag("attention_bias", default=False),
        dropout=dropout,
        extra=(
            *tensor("lambda_1", hidden),
            *tensor("lambda_2", hidden),
            *qk_norm_tensors(attention, prefix="attention."),
        ),
    )


def llama4_vision(fields: Fields) -> Stack:
    """Return Llama 4's tower over one tile, and the adapter that shrinks its patches."""
    hidden = fields.integer("hidden_size")
    rows = patches(fields) + 1
    attention = full_attention(
        fields,
        hidden,
        "num_attention_heads",
        dropout=fields.dropout("attention_dropout"),
        fp32_softmax=False,
        rotary=True,
    )
    intermediate = fields.integer("intermediate_size")
    height, width = fields.pair("patch_size")
    pixels = fields.integer("num_channels", default=3) * height * width
    middle, out = fields.integer("projector_input_dim"), fields.integer("projector_output_dim")
    return vision_stack(
        hidden,
        repeated(
            tower_layer(_LLAMA4, hidden, attention, plain_mlp(fields, intermediate, "hidden_act")), _layers(fields)
        ),
        before=(
            *tensor("class_embedding", hidden),
            *tensor("positional_embedding_vlm", rows, hidden, role="embedding"),
            *linear("patch_embedding.linear", hidden, pixels),
            *norm_tensors("layernorm_pre", hidden, LAYER),
        ),
        after=(
            *norm_tensors("layernorm_post", hidden, LAYER),
            *linear("vision_adapter.mlp.fc1", middle, intermediate),
            *linear("vision_adapter.mlp.fc2", out, out),
        ),
        positions=rows,
    )


def _layers(fields: Fields) -> int:
    return fields.integer("num_hidden_layers", high=MAX_LAYERS)


_TOWERS: Final[Mapping[str, Callable[[Fields], Stack]]] = {
    "clip_vision_model": clip_vision,
    "idefics3_vision": siglip_vision,
    "internvl_vision": internvl_vision,
    "llama4_vision_model": llama4_vision,
    "mllama_vision_model": mllama_vision,
    "pixtral": pixtral_vision,
    "qwen2_5_vl_vision": qwen2_5_vision,
    "qwen2_vl_vision": qwen2_vision,
    "qwen3_5_moe_vision": qwen3_vision,
    "qwen3_5_vision": qwen3_vision,
    "qwen3_vl_moe_vision": qwen3_vision,
    "qwen3_vl_vision": qwen3_vision,
    "siglip_vision_model": siglip_vision,
    "smolvlm_vision": siglip_vision,
}


def vision_tower(fields: Fields) -> Stack:
    """Return the vision tower that a part of a configuration describes.

    Raises:
        ModelFileError: If its `model_type` is not known.
    """
    return fields.choice("model_type", among=_TOWERS)(fields)
