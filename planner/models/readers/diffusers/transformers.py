"""Readers of denoising transformers: FLUX, Stable Diffusion 3 and PixArt."""

from collections.abc import Iterable, Iterator
from typing import Final

from planner.models.diffusion import Component, DiffusionTransformer
from planner.models.layers import Tensor
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.tensors import Tensors, conv, linear, projection_tensors, tensor

_TIME: Final = 256
_ATTENTION: Final = ("to_q", "to_k", "to_v", "to_out.0")
_GUIDED: Final = "guidance_embeds"


def read_flux(fields: ConfigFields, name: str) -> Component:
    """Return the denoiser that a configuration of `FluxTransformer2DModel` describes.

    Its pipeline packs squares of 2 × 2 latent pixels into tokens.
    """
    network = _transformer_network(
        fields, "flux", text="joint_attention_dim", blocks=19, latent=64, heads=24, head_dim=128, patch=1
    )
    network = network.evolve(
        patch=2 * network.patch,
        single_blocks=fields.integer("num_single_layers", default=38, low=0, high=MAX_LAYERS),
        # FLUX.1-schnell has no guidance embedding and needs no guidance: both models make one pass.
        guidance_embedded=True,
    )
    return _denoiser(name, network, _flux_tensors(network, fields))


def _flux_tensors(network: DiffusionTransformer, fields: ConfigFields) -> Iterator[Tensor]:
    hidden = network.hidden
    out = fields.integer("out_channels", default=network.latent_channels)
    yield from linear("x_embedder", hidden, network.latent_channels, bias=True)
    yield from linear("context_embedder", hidden, network.text_width, bias=True)
    pooled = fields.integer("pooled_projection_dim", default=768)
    yield from _conditioning_tensors(hidden, pooled, guided=fields.flag(_GUIDED, default=False))
    yield from _block_copies("transformer_blocks", network.blocks, _joint_block_tensors(network, normed=True))
    yield from _block_copies("single_transformer_blocks", network.single_blocks, _single_block_tensors(network))
    yield from _output_tensors(hidden, out)


def read_sd3(fields: ConfigFields, name: str) -> Component:
    """Return the denoiser that a configuration of `SD3Transformer2DModel` describes."""
    network = _transformer_network(
        fields, "sd3", text="joint_attention_dim", blocks=18, latent=16, heads=18, head_dim=64
    ).evolve(dual_blocks=fields.length("dual_attention_layers") or 0)
    side = fields.integer("pos_embed_max_size", default=96, high=4096)
    return _denoiser(name, network, _sd3_tensors(network, fields), side)


def _sd3_tensors(network: DiffusionTransformer, fields: ConfigFields) -> Iterator[Tensor]:
    hidden, normed = network.hidden, fields.has("qk_norm")
    out = fields.integer("out_channels", default=16) * network.patch**2
    yield from conv("pos_embed.proj", hidden, network.latent_channels, network.patch, network.patch)
    yield from _conditioning_tensors(hidden, fields.integer("pooled_projection_dim", default=2048), guided=False)
    yield from linear("context_embedder", hidden, network.text_width, bias=True)
    yield from _block_copies("transformer_blocks", network.blocks - 1, _joint_block_tensors(network, normed=normed))
    yield from _block_copies("transformer_blocks.last", 1, _joint_block_tensors(network, normed=normed, last=True))
    yield from _block_copies(
        "transformer_blocks.dual", network.dual_blocks, _second_attention_tensors(network, normed=normed)
    )
    yield from _output_tensors(hidden, out)


def read_pixart(fields: ConfigFields, name: str) -> Component:
    """Return the denoiser that a configuration of `PixArtTransformer2DModel` describes."""
    network = _transformer_network(
        fields, "pixart", text="caption_channels", blocks=28, latent=4, heads=16, head_dim=72
    )
    side = fields.integer("sample_size", default=128, high=4096) // network.patch
    return _denoiser(name, network, _pixart_tensors(network, fields), side)


def _pixart_tensors(network: DiffusionTransformer, fields: ConfigFields) -> Iterator[Tensor]:
    hidden, patch = network.hidden, network.patch
    sized = fields.flag("use_additional_conditions", default=fields.integer("sample_size", default=128) == 128)
    yield from conv("pos_embed.proj", hidden, network.latent_channels, patch, patch)
    yield from linear("caption_projection.linear_1", hidden, network.text_width, bias=True)
    yield from linear("caption_projection.linear_2", hidden, hidden, bias=True)
    yield from _embedding_mlp_tensors("adaln_single.emb.timestep_embedder", hidden, _TIME)
    if sized:
        yield from _embedding_mlp_tensors("adaln_single.emb.resolution_embedder", hidden // 3, _TIME)
        yield from _embedding_mlp_tensors("adaln_single.emb.aspect_ratio_embedder", hidden // 3, _TIME)
    yield from linear("adaln_single.linear", 6 * hidden, hidden, bias=True)
    yield from _block_copies("transformer_blocks", network.blocks, _cross_attention_block_tensors(network))
    yield from tensor("scale_shift_table", 2, hidden)
    yield from linear("proj_out", patch**2 * fields.integer("out_channels", default=8), hidden, bias=True)


def _transformer_network(
    fields: ConfigFields, family: str, *, text: str, blocks: int, latent: int, heads: int, head_dim: int, patch: int = 2
) -> DiffusionTransformer:
    """Return the network of a family with its defaults; `text` names the field with the width of the text."""
    width = fields.integer("attention_head_dim", default=head_dim)
    hidden = fields.integer("num_attention_heads", default=heads, high=MAX_LAYERS) * width
    return DiffusionTransformer.model_validate(
        {
            "family": family,
            "hidden": hidden,
            "intermediate": 4 * hidden,
            "head_dim": width,
            # FLUX may have single blocks alone.
            "blocks": fields.integer("num_layers", default=blocks, low=0 if family == "flux" else 1, high=MAX_LAYERS),
            "patch": fields.integer("patch_size", default=patch),
            "latent_channels": fields.integer("in_channels", default=latent),
            "text_width": fields.integer(text, default=4096),
            "sample_size": fields.integer("sample_size", default=128, high=4096),
        }
    )


def _denoiser(name: str, network: DiffusionTransformer, tensors: Iterator[Tensor], side: int = 0) -> Component:
    """Return the denoiser with this network, and a stored table of positions of `side` × `side` patches."""
    return Component(
        name=name, part="denoiser", network=network, tensors=tuple(tensors), buffers=side * side * network.hidden
    )


def _output_tensors(hidden: int, out_features: int) -> Tensors:
    return (
        *linear("norm_out.linear", 2 * hidden, hidden, bias=True),
        *linear("proj_out", out_features, hidden, bias=True),
    )


def _block_copies(prefix: str, copies: int, tensors: Tensors) -> Tensors:
    if copies < 1:
        return ()
    return tuple(one.evolve(name=f"{prefix}.{one.name}", copies=copies) for one in tensors)


def _conditioning_tensors(hidden: int, pooled: int, *, guided: bool) -> Tensors:
    return (
        *_embedding_mlp_tensors("time_text_embed.timestep_embedder", hidden, _TIME),
        *(_embedding_mlp_tensors("time_text_embed.guidance_embedder", hidden, _TIME) if guided else ()),
        *_embedding_mlp_tensors("time_text_embed.text_embedder", hidden, pooled),
    )


def _embedding_mlp_tensors(name: str, hidden: int, in_features: int) -> Tensors:
    return (
        *linear(f"{name}.linear_1", hidden, in_features, bias=True),
        *linear(f"{name}.linear_2", hidden, hidden, bias=True),
    )


def _joint_block_tensors(network: DiffusionTransformer, *, normed: bool, last: bool = False) -> Tensors:
    """Return the tensors of a joint block, separate for image and text; the last block of SD3 has no text output."""
    hidden = network.hidden
    names = (*_ATTENTION, "add_q_proj", "add_k_proj", "add_v_proj")
    norms = ("norm_q", "norm_k", "norm_added_q", "norm_added_k") if normed else ()
    return (
        *linear("norm1.linear", 6 * hidden, hidden, bias=True),
        *linear("norm1_context.linear", (2 if last else 6) * hidden, hidden, bias=True),
        *projection_tensors("attn.", names, hidden, hidden, bias=True),
        *(() if last else linear("attn.to_add_out", hidden, hidden, bias=True)),
        *_head_norm_tensors("attn.", norms, network),
        *_feed_forward_tensors(network, "ff"),
        *(() if last else _feed_forward_tensors(network, "ff_context")),
    )


def _second_attention_tensors(network: DiffusionTransformer, *, normed: bool) -> Tensors:
    """Return the tensors that a second attention adds to a block, including three modulations."""
    hidden = network.hidden
    norms = ("norm_q", "norm_k") if normed else ()
    return (
        *linear("norm1.linear.more", 3 * hidden, hidden, bias=True),
        *projection_tensors("attn2.", _ATTENTION, hidden, hidden, bias=True),
        *_head_norm_tensors("attn2.", norms, network),
    )


def _single_block_tensors(network: DiffusionTransformer) -> Tensors:
    hidden, inner = network.hidden, network.intermediate
    return (
        *linear("norm.linear", 3 * hidden, hidden, bias=True),
        *linear("proj_mlp", inner, hidden, bias=True),
        *projection_tensors("attn.", _ATTENTION[:3], hidden, hidden, bias=True),
        *_head_norm_tensors("attn.", ("norm_q", "norm_k"), network),
        *linear("proj_out", hidden, hidden + inner, bias=True),
    )


def _cross_attention_block_tensors(network: DiffusionTransformer) -> Tensors:
    hidden = network.hidden
    return (
        *tensor("scale_shift_table", 6, hidden),
        *projection_tensors("attn1.", _ATTENTION, hidden, hidden, bias=True),
        *projection_tensors("attn2.", _ATTENTION, hidden, hidden, bias=True),
        *_feed_forward_tensors(network, "ff"),
    )


def _head_norm_tensors(prefix: str, names: Iterable[str], network: DiffusionTransformer) -> Tensors:
    return tuple(found for name in names for found in tensor(f"{prefix}{name}.weight", network.head_dim, role="norm"))


def _feed_forward_tensors(network: DiffusionTransformer, name: str) -> Tensors:
    hidden, inner = network.hidden, network.intermediate
    return (
        *linear(f"{name}.net.0.proj", inner, hidden, bias=True),
        *linear(f"{name}.net.2", hidden, inner, bias=True),
    )
