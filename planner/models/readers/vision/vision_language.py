"""Readers of vision-language models: LLaVA, Qwen-VL, Llama 3.2 Vision, Gemma 3 and others.

The nested configurations state only differences from their classes' defaults (`config_defaults`). The language model
is the last stack and determines the head; the projector is at the end of the vision tower.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Attention, Layer, Stack
from planner.models.readers.attention_patterns import windowed_upper_layers
from planner.models.readers.blocks import AttentionStyle, MlpStyle, StackSizes, attention_blocks, mlp_block, read_sizes
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields, component_fields, config_defaults
from planner.models.readers.decoder.assembly import (
    PRE_NORMS,
    QWEN_EXPERTS,
    DecoderFamily,
    DecoderFrame,
    decoder_network,
)
from planner.models.readers.decoder.llama_like import HEAD_NORMED
from planner.models.readers.registry import Reader, read_fields
from planner.models.readers.tensors import (
    LAYER,
    RMS,
    Tensors,
    attention_tensors,
    embedding,
    group_layers,
    linear,
    norm_tensors,
    qk_norm_tensors,
    tensor,
)
from planner.models.readers.vision.towers import vision_tower

_QWEN2: Final = DecoderFamily(attention=AttentionStyle(bias=True, pattern=windowed_upper_layers), kv_heads=8)
_QWEN3: Final = DecoderFamily(attention=HEAD_NORMED, kv_heads=32, head_dim=128)
_QWEN3_EXPERTS: Final = DecoderFamily(
    attention=HEAD_NORMED,
    kv_heads=16,
    feed_forwards=QWEN_EXPERTS._replace(
        prefix="mlp.experts.", names=("gate_up_proj", "down_proj"), layout="transposed"
    ).blocks,
)


Projector = Callable[[ConfigFields, ConfigFields, Stack, int], Tensors]
"""Function that returns the projector's tensors from the model's and the vision tower's configuration, the vision
tower, and the language model's hidden width."""

_PALIGEMMA_WIDTH: Final = 2048
_GEMMA3_TOKENS: Final = 256


Merge = Callable[[ConfigFields, ConfigFields, Stack], int]
"""Function that returns the number of patches per prompt token from the model's and the vision tower's configuration
and the vision tower."""


def _merge_by_side(name: str, default: int, *, of_tower: bool = False) -> Merge:
    """Return the function for merged squares of patches; the field `name` holds the square's side."""
    return lambda fields, vision, _: (vision if of_tower else fields).integer(name, default=default, high=64) ** 2


def _merge_by_side_ratio(name: str, *, of_tower: bool = False) -> Merge:
    """Return the function for merged squares of patches; the field `name` holds the ratio of the sides."""
    return lambda fields, vision, _: (
        int(1 / (vision if of_tower else fields).number(name, default=0.5, low=0.01, high=1)) ** 2
    )


def _patches_per_stated_token(fields: ConfigFields, _: ConfigFields, tower: Stack) -> int:
    """Return patches per prompt token: the tower's patches divided by `mm_tokens_per_image` of the configuration."""
    return max(1, (tower.positions or 1) // fields.integer("mm_tokens_per_image", default=_GEMMA3_TOKENS))


class CompositeFamily(NamedTuple):
    """Declaration of a vision-language family.

    `text` and `vision` are the default `model_type`s of the components, which files may override with `states_text` or
    `states_vision`. `flat` files have the fields of the language model at the top level; `tied_by_text` means that the
    head is also tied if only the part on text says so. `merge` returns the number of patches per token; None if the
    language model has cross-attention to images. Where it `selects` features, a field says whether the prompt gets the
    class token. `feature_layer` is the layer that the projector reads unless a field names another. `kept` are outputs
    of the tower's layers and tensors of an image's tokens that are alive while the prompt is read, with
    `prompt_masks`. `decoder` is the class that is the language model alone, if there is one.

    **Source**: the `forward` of these classes in transformers 5.23.
    """

    text: str
    vision: str
    projector: Projector = lambda *_: ()
    tied: bool = False
    tied_by_text: bool = False
    states_text: bool = False
    states_vision: bool = False
    flat: bool = False
    merge: Merge | None = lambda *_: 1
    selects: bool = False
    feature_layer: int = -1
    kept: tuple[int, int] = (1, 1)
    prompt_masks: int = 0
    decoder: str | None = None

    def read(self, fields: ConfigFields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        text_fields = self._text_fields(fields)
        if self.decoder is not None and (fields.texts("architectures") or ("",))[0] == self.decoder:
            return read_fields(text_fields)
        default = text_fields.flag("tie_word_embeddings", default=self.tied)
        tied = fields.flag("tie_word_embeddings", default=default) or (self.tied_by_text and default)
        text = read_fields(text_fields.with_changes({"tie_word_embeddings": tied}))
        vision_fields = component_fields(fields, "vision_config", self.vision, states_class=self.states_vision)
        tower = vision_tower(vision_fields)
        projector = self.projector(fields, vision_fields, tower, text.hidden)
        cut = self.selects and fields.text("vision_feature_select_strategy", default="default") == "default"
        return text.evolve(
            model_type=fields.model_type,
            kind="vision-language",
            stacks=(
                tower.evolve(
                    after=(*tower.after, *projector),
                    merge=None if self.merge is None else self.merge(fields, vision_fields, tower),
                    images=tower.images.evolve(
                        skipped=int(cut),
                        kept_outputs=self.kept[0],
                        kept_features=self.kept[1],
                        prompt_masks=self.prompt_masks,
                        unread_layers=self._unread_layers(fields, tower),
                    ),
                ),
                *text.stacks,
            ),
        )

    def _unread_layers(self, fields: ConfigFields, tower: Stack) -> int:
        """Return how many of the tower's last layers no feature is read from; 0 where several layers are read."""
        if fields.is_list("vision_feature_layer"):
            return 0
        read = fields.integer("vision_feature_layer", default=self.feature_layer, low=-MAX_LAYERS, high=MAX_LAYERS)
        # The first of the hidden states is what the layers read.
        return max(0, -1 - read if read < 0 else tower.layer_count - read)

    def _text_fields(self, fields: ConfigFields) -> ConfigFields:
        if self.flat and not fields.has("text_config") and fields.has("hidden_size"):
            return fields.with_defaults(config_defaults(self.text)).with_changes({"model_type": self.text})
        return component_fields(fields, "text_config", self.text, states_class=self.states_text)


def _llava_projector(fields: ConfigFields, _: ConfigFields, tower: Stack, text_width: int) -> Tensors:
    bias = fields.flag("multimodal_projector_bias", default=True)
    return _two_layer_projector(tower.hidden * _feature_layers(fields), text_width, bias=bias)


def _two_layer_projector(in_features: int, text_width: int, *, bias: bool) -> Tensors:
    return (
        *linear("multi_modal_projector.linear_1", text_width, in_features, bias=bias),
        *linear("multi_modal_projector.linear_2", text_width, text_width, bias=bias),
    )


def _feature_layers(fields: ConfigFields) -> int:
    """Return the number of vision-tower layers whose output the projector reads."""
    return (fields.length("vision_feature_layer") or 1) if fields.is_list("vision_feature_layer") else 1


def _mistral3_projector(fields: ConfigFields, _: ConfigFields, tower: Stack, text_width: int) -> Tensors:
    merged = tower.hidden * fields.integer("spatial_merge_size", default=2) ** 2
    bias = fields.flag("multimodal_projector_bias", default=False)
    return (
        *norm_tensors("multi_modal_projector.norm", tower.hidden, RMS),
        *linear("multi_modal_projector.patch_merger.merging_layer", tower.hidden, merged),
        *_two_layer_projector(tower.hidden * _feature_layers(fields), text_width, bias=bias),
    )


def _internvl_projector(fields: ConfigFields, _: ConfigFields, tower: Stack, text_width: int) -> Tensors:
    ratio = fields.number("downsample_ratio", default=0.5, low=0.01, high=1)
    merged = tower.hidden * int(1 / ratio) ** 2
    return (
        *norm_tensors("multi_modal_projector.layer_norm", merged, LAYER),
        *_two_layer_projector(merged, text_width, bias=True),
    )


def _gemma3_projector(_: ConfigFields, __: ConfigFields, tower: Stack, text_width: int) -> Tensors:
    return (
        *tensor("multi_modal_projector.mm_input_projection_weight", tower.hidden, text_width, role="linear"),
        *norm_tensors("multi_modal_projector.mm_soft_emb_norm", tower.hidden, RMS),
    )


def _paligemma_projector(fields: ConfigFields, _: ConfigFields, tower: Stack, __: int) -> Tensors:
    width = fields.integer("projection_dim", default=_PALIGEMMA_WIDTH)
    return linear("multi_modal_projector.linear", width, tower.hidden, bias=True)


def _idefics3_projector(fields: ConfigFields, _: ConfigFields, tower: Stack, text_width: int) -> Tensors:
    merged = tower.hidden * fields.integer("scale_factor", default=2) ** 2
    return linear("connector.modality_projection.proj", text_width, merged)


def _mllama_projector(_: ConfigFields, vision: ConfigFields, tower: Stack, text_width: int) -> Tensors:
    """Return Llama 3.2's projector, which reads the outputs of the vision tower and of some of its layers."""
    width = tower.hidden * (1 + (vision.length("intermediate_layers_indices") or 0))
    return linear("multi_modal_projector", text_width, vision.integer("vision_output_dim", default=width), bias=True)


_LLAVA: Final = CompositeFamily(
    text="llama",
    vision="clip_vision_model",
    projector=_llava_projector,
    tied_by_text=True,
    states_text=True,
    states_vision=True,
    selects=True,
    feature_layer=-2,
    kept=(2, 2),
)
_IDEFICS3: Final = CompositeFamily(
    text="llama",
    vision="idefics3_vision",
    projector=_idefics3_projector,
    states_text=True,
    merge=_merge_by_side("scale_factor", 2),
    kept=(1, 2),
)

_QWEN_MERGE: Final = _merge_by_side("spatial_merge_size", 2, of_tower=True)
_QWEN2_VL: Final = CompositeFamily(
    text="qwen2_vl_text", vision="qwen2_vl_vision", tied_by_text=True, flat=True, merge=_QWEN_MERGE, kept=(1, 2)
)


_CROSS_LAYERS: Final = (3, 8, 13, 18, 23, 28, 33, 38)
# Rows of the embedding beyond the vocabulary, for the image token and its neighbours.
_SPECIAL_TOKENS: Final = 8


def read_mllama_text(fields: ConfigFields) -> Architecture:
    """Read Llama 3.2's decoder; its cross-attention layers have no self-attention."""
    sizes = read_sizes(fields, kv_heads=8)
    listed = fields.integers("cross_attention_layers")
    crossing = frozenset(_CROSS_LAYERS if listed is None else listed)
    groups = group_layers(
        (index in crossing for index in range(sizes.layers)),
        lambda crosses: _mllama_layer(fields, sizes, crosses=crosses),
    )
    before = embedding("model.embed_tokens", sizes.vocabulary + _SPECIAL_TOKENS, sizes.hidden)
    # Its head is never tied, even if the file states it.
    return decoder_network(
        fields.with_changes({"tie_word_embeddings": False}), sizes, DecoderFrame(), groups, before=before
    )


def _mllama_layer(fields: ConfigFields, sizes: StackSizes, *, crosses: bool) -> Layer:
    """Return a layer with attention to the images if it `crosses`, else to the text."""
    mixer, tensors = attention_blocks(fields, sizes, AttentionStyle(dropout=0.0))[0]
    cross: Attention | None = None
    if crosses:
        cross = Attention(
            heads=sizes.heads, kv_heads=sizes.kv_heads, head_dim=sizes.head_dim, qk_norm="head", rotary=False
        )
        tensors = (
            *tensor("cross_attn_attn_gate", 1),
            *tensor("cross_attn_mlp_gate", 1),
            *attention_tensors(cross, sizes.hidden, prefix="cross_attn."),
            *qk_norm_tensors(cross, prefix="cross_attn."),
        )
    forward = mlp_block(fields, sizes, MlpStyle())
    norms = (found for name in PRE_NORMS for found in norm_tensors(name, sizes.hidden, RMS))
    return Layer(
        mixer=None if crosses else mixer,
        cross_attention=cross,
        feed_forward=forward.block,
        norm=RMS,
        norm_count=2,
        tensors=(*tensors, *forward.tensors, *norms),
    )


READERS: Final[Mapping[str, Reader]] = {
    "gemma3": CompositeFamily(
        text="gemma3_text",
        vision="siglip_vision_model",
        projector=_gemma3_projector,
        tied=True,
        merge=_patches_per_stated_token,
        prompt_masks=2,
        decoder="Gemma3ForCausalLM",
    ).read,
    "idefics3": _IDEFICS3.read,
    "internvl": CompositeFamily(
        text="qwen2",
        vision="internvl_vision",
        projector=_internvl_projector,
        states_text=True,
        tied=True,
        merge=_merge_by_side_ratio("downsample_ratio"),
    ).read,
    "llama4": CompositeFamily(
        text="llama4_text",
        vision="llama4_vision_model",
        projector=lambda _, vision, __, width: linear(
            "multi_modal_projector.linear_1", width, vision.integer("vision_output_dim")
        ),
        merge=_merge_by_side_ratio("pixel_shuffle_ratio", of_tower=True),
        decoder="Llama4ForCausalLM",
    ).read,
    "llava": _LLAVA.read,
    "llava_next": _LLAVA._replace(
        tied_by_text=False,
        projector=lambda fields, vision, tower, width: (
            *tensor("image_newline", width),
            *_llava_projector(fields, vision, tower, width),
        ),
    ).read,
    "mistral3": CompositeFamily(
        text="mistral",
        vision="pixtral",
        projector=_mistral3_projector,
        states_text=True,
        tied=True,
        merge=_merge_by_side("spatial_merge_size", 2),
        kept=(1, 2),
    ).read,
    "mllama": CompositeFamily(
        text="mllama_text_model",
        vision="mllama_vision_model",
        projector=_mllama_projector,
        merge=None,
        decoder="MllamaForCausalLM",
    ).read,
    "paligemma": CompositeFamily(
        text="gemma",
        vision="siglip_vision_model",
        projector=_paligemma_projector,
        states_text=True,
        tied=True,
        prompt_masks=1,
    ).read,
    "qwen2_5_vl": _QWEN2_VL._replace(text="qwen2_5_vl_text", vision="qwen2_5_vl_vision").read,
    "qwen2_vl": _QWEN2_VL.read,
    "qwen3_5": CompositeFamily(
        text="qwen3_5_text", vision="qwen3_5_vision", merge=_QWEN_MERGE, decoder="Qwen3_5ForCausalLM"
    ).read,
    "qwen3_5_moe": CompositeFamily(
        text="qwen3_5_moe_text", vision="qwen3_5_moe_vision", merge=_QWEN_MERGE, decoder="Qwen3_5MoeForCausalLM"
    ).read,
    "qwen3_vl": CompositeFamily(text="qwen3_vl_text", vision="qwen3_vl_vision", merge=_QWEN_MERGE).read,
    "qwen3_vl_moe": CompositeFamily(text="qwen3_vl_moe_text", vision="qwen3_vl_moe_vision", merge=_QWEN_MERGE).read,
    "smolvlm": _IDEFICS3.read,
    "qwen2_5_vl_text": _QWEN2.read,
    "qwen2_vl_text": _QWEN2.read,
    "qwen3_vl_moe_text": _QWEN3_EXPERTS.read,
    "qwen3_vl_text": _QWEN3.read,
    "mllama_text_model": read_mllama_text,
}
