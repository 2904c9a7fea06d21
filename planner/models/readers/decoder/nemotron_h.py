"""Nemotron-H and Nemotron 3: layers that are one block each, be it Mamba-2, attention, an MLP or experts."""

from collections.abc import Mapping
from typing import Final, Literal

from planner.models.architecture import Architecture, Attention, Layer, Mlp, Moe
from planner.models.readers.decoder.llama_like import FP32_RMS
from planner.models.readers.decoder.state_mixers import Scan, mamba2_block
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import (
    ACTIVATIONS,
    Tensors,
    attention_tensors,
    decoder,
    embedding,
    expert_tensors,
    grouped,
    linear,
    mlp_tensors,
    norm_tensors,
    router_tensors,
)
from planner.models.readers.registry import Reader
from planner.models.readers.sizes import Sizes, read_sizes

Kind = Literal["mamba", "attention", "mlp", "moe"]

_LETTERS: Final[Mapping[str, Kind]] = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NAMES: Final[Mapping[str, Kind]] = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
}


def read_nemotron_h(fields: Fields) -> Architecture:
    """Read Nemotron-H; its layers are named one by one, or by one letter each."""
    kinds = _kinds(fields)
    # The number of layers may be left out: the list of their kinds decides.
    sizes = read_sizes(fields.over({"num_hidden_layers": len(kinds)}))
    return decoder(
        fields,
        hidden=sizes.hidden,
        vocabulary=sizes.vocabulary,
        groups=grouped(kinds, lambda kind: _layer(fields, sizes, kind)),
        before=embedding("embeddings", sizes.vocabulary, sizes.hidden),
        after=norm_tensors("norm_f", sizes.hidden, FP32_RMS),
        tied=fields.flag("tie_word_embeddings", default=False),
        max_context=sizes.max_context,
    )


def _kinds(fields: Fields) -> tuple[Kind, ...]:
    if fields.has("layers_block_type", "layer_types"):
        field, known, stated = "layers_block_type", _NAMES, fields.texts("layers_block_type", "layer_types") or ()
    else:
        field, known, stated = "hybrid_override_pattern", _LETTERS, tuple(fields.text("hybrid_override_pattern"))
    if not 0 < len(stated) <= MAX_LAYERS or not set(stated) <= set(known):
        fields.fail(field, f"must name the kind of each layer, one of {', '.join(known)}")
    return tuple(known[name] for name in stated)


def _layer(fields: Fields, sizes: Sizes, kind: Kind) -> Layer:
    norm = norm_tensors("norm", sizes.hidden, FP32_RMS)
    if kind == "mamba":
        block = mamba2_block(
            sizes.hidden,
            _scan(fields),
            prefix="mixer.",
            bias=fields.flag("use_bias", default=False),
            conv_bias=fields.flag("use_conv_bias", "mamba_conv_bias", default=True),
        )
        return Layer(mixer=block.mixer, norm=FP32_RMS, norm_count=1, tensors=(*norm, *block.tensors))
    if kind == "attention":
        attention = Attention(
            heads=sizes.heads,
            kv_heads=sizes.kv_heads,
            head_dim=sizes.head_dim,
            rotary=False,
            dropout=fields.dropout("attention_dropout"),
        )
        tensors = attention_tensors(attention, sizes.hidden, prefix="mixer.")
        return Layer(mixer=attention, norm=FP32_RMS, norm_count=1, tensors=(*norm, *tensors))
    forward, tensors = _mlp(fields, sizes) if kind == "mlp" else _experts(fields, sizes)
    return Layer(feed_forward=forward, norm=FP32_RMS, norm_count=1, tensors=(*norm, *tensors))


def _scan(fields: Fields) -> Scan:
    return Scan(
        heads=fields.integer("mamba_num_heads", high=MAX_LAYERS),
        head_dim=fields.integer("mamba_head_dim"),
        groups=fields.integer("n_groups", "mamba_n_groups"),
        state=fields.integer("ssm_state_size"),
        kernel=fields.integer("conv_kernel", "mamba_d_conv", default=4),
    )


def _mlp(fields: Fields, sizes: Sizes) -> tuple[Mlp, Tensors]:
    mlp = Mlp(
        intermediate=fields.integer("intermediate_size"),
        gated=False,
        activation=fields.choice("mlp_hidden_act", among=ACTIVATIONS, default="relu2"),
    )
    bias = fields.flag("mlp_bias", default=False)
    return mlp, mlp_tensors(mlp, sizes.hidden, prefix="mixer.", names=("up_proj", "down_proj"), bias=bias)


def _experts(fields: Fields, sizes: Sizes) -> tuple[Moe, Tensors]:
    """Return experts, which may work in a narrower latent space than the layer (Nemotron 3 Super)."""
    experts = fields.integer("n_routed_experts", "num_local_experts", high=MAX_LAYERS)
    shared = fields.integer("moe_shared_expert_intermediate_size")
    moe = Moe(
        experts=experts,
        top_k=fields.integer("num_experts_per_tok", high=experts),
        intermediate=fields.integer("moe_intermediate_size"),
        gated=False,
        activation=fields.choice("mlp_hidden_act", among=ACTIVATIONS, default="relu2"),
        shared_intermediate=shared,
    )
    names = ("up_proj", "down_proj")
    bias = fields.flag("mlp_bias", default=False)
    latent = fields.optional_integer("moe_latent_size")
    shared_mlp = Mlp(intermediate=shared, gated=False)
    return moe, (
        *router_tensors("mixer.gate", experts, sizes.hidden),
        *expert_tensors(moe, latent or sizes.hidden, prefix="mixer.experts.{expert}.", names=names),
        *(linear("mixer.fc1_latent_proj", latent, sizes.hidden, bias=bias) if latent else ()),
        *(linear("mixer.fc2_latent_proj", sizes.hidden, latent, bias=bias) if latent else ()),
        *mlp_tensors(shared_mlp, sizes.hidden, prefix="mixer.shared_experts.", names=names, bias=bias),
    )


READERS: Final[Mapping[str, Reader]] = {"nemotron_h": read_nemotron_h}
