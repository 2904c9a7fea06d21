"""Readers of convolutional components: the U-Net of Stable Diffusion and SDXL, and the autoencoder."""

from collections.abc import Iterator
from typing import Final

from planner.models.diffusion import Component, ImageDecoder, UNet, UNetModule
from planner.models.layers import Tensor
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.tensors import LAYER, Tensors, conv, linear, norm_tensors, projection_tensors

_DOWN: Final = {"CrossAttnDownBlock2D": True, "DownBlock2D": False}
_LATENT: Final = 4
_TEXT: Final = 1280
_FACTORS: Final = 4
_HEADS: Final = 8
_MOST_BLOCKS: Final = 64
_MOST_LEVELS: Final = 16
"""Bounds for untrusted files, well above every published network."""


def read_unet(fields: ConfigFields, name: str) -> Component:
    """Return the U-Net that a configuration of `UNet2DConditionModel` describes.

    Raises:
        ModelFileError: If it has unsupported parts, such as other kinds of blocks.
    """
    unet = _unet_from_fields(fields)
    return Component(name=name, part="denoiser", network=unet, tensors=tuple(_unet_tensors(unet, fields)))


def _unet_from_fields(fields: ConfigFields) -> UNet:
    channels = _level_widths(fields, (320, 640, 1280, 1280))
    kinds = fields.texts("down_block_types") or ("CrossAttnDownBlock2D",) * (len(channels) - 1) + ("DownBlock2D",)
    unknown = next((kind for kind in kinds if kind not in _DOWN), None)
    if unknown is not None or len(kinds) != len(channels):
        fields.fail("down_block_types", f"must be {len(channels)} of {', '.join(_DOWN)}")
    each = _level_values(fields, "transformer_layers_per_block", len(channels), 1)
    layers = _level_values(fields, "layers_per_block", len(channels), 2, high=_MOST_BLOCKS)
    if len(set(layers)) > 1:
        fields.fail("layers_per_block", "differs between the levels, which is not supported")
    for name in ("class_embed_type", "encoder_hid_dim_type"):
        if fields.has(name):
            fields.fail(name, "is not supported")
    return UNet(
        channels=channels,
        depths=tuple(depth if _DOWN[kind] else 0 for kind, depth in zip(kinds, each, strict=True)),
        # The class takes `attention_head_dim` for the number of heads unless `num_attention_heads` is given, too.
        heads=_level_values(
            fields,
            "num_attention_heads" if fields.has("num_attention_heads") else "attention_head_dim",
            len(channels),
            _HEADS,
        ),
        mid_depth=each[-1],
        layers=layers[0],
        latent_channels=fields.integer("in_channels", default=_LATENT),
        text_width=fields.integer("cross_attention_dim", default=_TEXT),
        sample_size=fields.integer("sample_size", default=64, high=4096),
        linear_projection=fields.flag("use_linear_projection", default=False),
    )


def _level_widths(fields: ConfigFields, default: tuple[int, ...]) -> tuple[int, ...]:
    found = fields.integers("block_out_channels", low=1) or default
    if len(found) > _MOST_LEVELS:
        fields.fail("block_out_channels", f"must hold at most {_MOST_LEVELS} numbers, got {len(found):,}")
    return found


def _level_values(
    fields: ConfigFields, name: str, levels: int, default: int, high: int = MAX_LAYERS
) -> tuple[int, ...]:
    if not fields.is_list(name):
        return (fields.integer(name, default=default, high=high),) * levels
    found = fields.integers(name, low=1, high=high) or ()
    if len(found) != levels:
        fields.fail(name, f"must be a number or a list of {levels}, got a list of {len(found)}")
    return found


def _unet_tensors(unet: UNet, fields: ConfigFields) -> Iterator[Tensor]:
    first = unet.channels[0]
    time = _FACTORS * first
    yield from conv("conv_in", first, unet.latent_channels, 3, 3)
    yield from linear("time_embedding.linear_1", time, first, bias=True)
    yield from linear("time_embedding.linear_2", time, time, bias=True)
    if fields.text("addition_embed_type", default="") == "text_time":
        added = fields.integer("projection_class_embeddings_input_dim")
        yield from linear("add_embedding.linear_1", time, added, bias=True)
        yield from linear("add_embedding.linear_2", time, time, bias=True)
    for number, step in enumerate(unet.steps()):
        yield from _module_tensors(unet, step, f"{step.kind}.{number}", time)
    yield from norm_tensors("conv_norm_out", first, LAYER)
    yield from conv("conv_out", fields.integer("out_channels", default=_LATENT), first, 3, 3)


def _module_tensors(unet: UNet, step: UNetModule, name: str, time: int) -> Iterator[Tensor]:
    if step.kind == "resnet":
        yield from _resnet_tensors(name, step.into, step.out, time)
    elif step.kind == "transformer":
        yield from _transformer_tensors(unet, name, step.out, step.depth)
    elif step.kind == "mid":
        yield from _resnet_tensors(f"{name}.0", step.into, step.out, time)
        yield from _transformer_tensors(unet, f"{name}.1", step.out, step.depth)
        yield from _resnet_tensors(f"{name}.2", step.out, step.out, time)
    else:
        yield from conv(name, step.out, step.into, 3, 3)


def _resnet_tensors(name: str, in_channels: int, out_channels: int, time: int | None = None) -> Tensors:
    """Return the tensors of a convolution block; in autoencoders it has no time embedding."""
    return (
        *norm_tensors(f"{name}.norm1", in_channels, LAYER),
        *conv(f"{name}.conv1", out_channels, in_channels, 3, 3),
        *(linear(f"{name}.time_emb_proj", out_channels, time, bias=True) if time else ()),
        *norm_tensors(f"{name}.norm2", out_channels, LAYER),
        *conv(f"{name}.conv2", out_channels, out_channels, 3, 3),
        *(conv(f"{name}.conv_shortcut", out_channels, in_channels, 1, 1) if in_channels != out_channels else ()),
    )


def _transformer_tensors(unet: UNet, name: str, width: int, depth: int) -> Tensors:
    """Return the tensors of `depth` transformer blocks: self-attention, cross-attention to the text and a gated MLP."""
    around = (
        (*linear(f"{name}.proj_in", width, width, bias=True), *linear(f"{name}.proj_out", width, width, bias=True))
        if unet.linear_projection
        else (*conv(f"{name}.proj_in", width, width, 1, 1), *conv(f"{name}.proj_out", width, width, 1, 1))
    )
    inner = (
        *(part for at in (1, 2, 3) for part in norm_tensors(f"norm{at}", width, LAYER)),
        *projection_tensors("attn1.to_", "qkv", width, width),
        *linear("attn1.to_out.0", width, width, bias=True),
        *linear("attn2.to_q", width, width),
        *projection_tensors("attn2.to_", "kv", width, unet.text_width),
        *linear("attn2.to_out.0", width, width, bias=True),
        *linear("ff.net.0.proj", 2 * _FACTORS * width, width, bias=True),
        *linear("ff.net.2", width, _FACTORS * width, bias=True),
    )
    return (
        *norm_tensors(f"{name}.norm", width, LAYER),
        *around,
        *(one.evolve(name=f"{name}.transformer_blocks.{one.name}", copies=depth) for one in inner),
    )


_PIXELS: Final = 3
_SAMPLE: Final = 32


def read_autoencoder(fields: ConfigFields, name: str) -> Component:
    """Return the autoencoder that a configuration of `AutoencoderKL` describes."""
    decoder = ImageDecoder(
        channels=_level_widths(fields, (64,)),
        layers=fields.integer("layers_per_block", default=1, high=_MOST_BLOCKS),
        latent_channels=fields.integer("latent_channels", default=4),
        sample_size=fields.integer("sample_size", default=_SAMPLE),
        upcast=fields.flag("force_upcast", default=True),
    )
    return Component(
        name=name, part="image-decoder", network=decoder, tensors=tuple(_autoencoder_tensors(decoder, fields))
    )


def _autoencoder_tensors(decoder: ImageDecoder, fields: ConfigFields) -> Iterator[Tensor]:
    latent = decoder.latent_channels
    attends = fields.flag("mid_block_add_attention", default=True)
    yield from _encoder_tensors(decoder, attends)
    yield from _decoder_tensors(decoder, attends)
    if fields.flag("use_quant_conv", default=True):
        yield from conv("quant_conv", 2 * latent, 2 * latent, 1, 1)
    if fields.flag("use_post_quant_conv", default=True):
        yield from conv("post_quant_conv", latent, latent, 1, 1)


def _encoder_tensors(decoder: ImageDecoder, attends: bool) -> Iterator[Tensor]:
    width, last = decoder.channels[0], len(decoder.channels) - 1
    yield from conv("encoder.conv_in", width, _PIXELS, 3, 3)
    for level, out in enumerate(decoder.channels):
        for at in range(decoder.layers):
            yield from _resnet_tensors(f"encoder.down_blocks.{level}.resnets.{at}", width, out)
            width = out
        if level < last:
            yield from conv(f"encoder.down_blocks.{level}.downsamplers.0.conv", width, width, 3, 3)
    yield from _middle_tensors("encoder", width, attends)
    yield from norm_tensors("encoder.conv_norm_out", width, LAYER)
    yield from conv("encoder.conv_out", 2 * decoder.latent_channels, width, 3, 3)


def _decoder_tensors(decoder: ImageDecoder, attends: bool) -> Iterator[Tensor]:
    width, last = decoder.channels[-1], len(decoder.channels) - 1
    yield from conv("decoder.conv_in", width, decoder.latent_channels, 3, 3)
    yield from _middle_tensors("decoder", width, attends)
    for level, out in enumerate(reversed(decoder.channels)):
        for at in range(decoder.layers + 1):
            yield from _resnet_tensors(f"decoder.up_blocks.{level}.resnets.{at}", width, out)
            width = out
        if level < last:
            yield from conv(f"decoder.up_blocks.{level}.upsamplers.0.conv", width, width, 3, 3)
    yield from norm_tensors("decoder.conv_norm_out", width, LAYER)
    yield from conv("decoder.conv_out", _PIXELS, width, 3, 3)


def _middle_tensors(side: str, width: int, attends: bool) -> Tensors:
    name = f"{side}.mid_block"
    attention = (
        *norm_tensors(f"{name}.attentions.0.group_norm", width, LAYER),
        *projection_tensors(f"{name}.attentions.0.", ("to_q", "to_k", "to_v", "to_out.0"), width, width, bias=True),
    )
    return (
        *_resnet_tensors(f"{name}.resnets.0", width, width),
        *(attention if attends else ()),
        *_resnet_tensors(f"{name}.resnets.1", width, width),
    )
