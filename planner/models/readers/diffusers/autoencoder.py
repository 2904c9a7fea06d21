"""The autoencoder between pixels and latent images: `AutoencoderKL`, of which generating runs the decoder."""

from collections.abc import Iterator
from typing import Final

from planner.models.layers import Tensor
from planner.models.pipeline import Component, ImageDecoder
from planner.models.readers.diffusers.unet import MOST_BLOCKS, resnet, widths
from planner.models.readers.fields import Fields
from planner.models.readers.parts import LAYER, Tensors, linear, norm_tensors
from planner.models.readers.towers import conv

_PIXELS: Final = 3
_SAMPLE: Final = 32


def read_autoencoder(fields: Fields, name: str) -> Component:
    """Return the autoencoder that a configuration of `AutoencoderKL` describes."""
    decoder = ImageDecoder(
        channels=widths(fields, (64,)),
        layers=fields.integer("layers_per_block", default=1, high=MOST_BLOCKS),
        latent_channels=fields.integer("latent_channels", default=4),
        sample_size=fields.integer("sample_size", default=_SAMPLE),
        upcast=fields.flag("force_upcast", default=True),
    )
    return Component(name=name, part="image-decoder", network=decoder, tensors=tuple(_tensors(decoder, fields)))


def _tensors(decoder: ImageDecoder, fields: Fields) -> Iterator[Tensor]:
    latent = decoder.latent_channels
    attends = fields.flag("mid_block_add_attention", default=True)
    yield from _encoder(decoder, attends)
    yield from _decoder(decoder, attends)
    if fields.flag("use_quant_conv", default=True):
        yield from conv("quant_conv", 2 * latent, 2 * latent, 1, 1)
    if fields.flag("use_post_quant_conv", default=True):
        yield from conv("post_quant_conv", latent, latent, 1, 1)


def _encoder(decoder: ImageDecoder, attends: bool) -> Iterator[Tensor]:
    width, last = decoder.channels[0], len(decoder.channels) - 1
    yield from conv("encoder.conv_in", width, _PIXELS, 3, 3)
    for level, out in enumerate(decoder.channels):
        for at in range(decoder.layers):
            yield from resnet(f"encoder.down_blocks.{level}.resnets.{at}", width, out)
            width = out
        if level < last:
            yield from conv(f"encoder.down_blocks.{level}.downsamplers.0.conv", width, width, 3, 3)
    yield from _middle("encoder", width, attends)
    yield from norm_tensors("encoder.conv_norm_out", width, LAYER)
    yield from conv("encoder.conv_out", 2 * decoder.latent_channels, width, 3, 3)


def _decoder(decoder: ImageDecoder, attends: bool) -> Iterator[Tensor]:
    width, last = decoder.channels[-1], len(decoder.channels) - 1
    yield from conv("decoder.conv_in", width, decoder.latent_channels, 3, 3)
    yield from _middle("decoder", width, attends)
    for level, out in enumerate(reversed(decoder.channels)):
        for at in range(decoder.layers + 1):
            yield from resnet(f"decoder.up_blocks.{level}.resnets.{at}", width, out)
            width = out
        if level < last:
            yield from conv(f"decoder.up_blocks.{level}.upsamplers.0.conv", width, width, 3, 3)
    yield from norm_tensors("decoder.conv_norm_out", width, LAYER)
    yield from conv("decoder.conv_out", _PIXELS, width, 3, 3)


def _middle(side: str, width: int, attends: bool) -> Tensors:
    name = f"{side}.mid_block"
    attention = (
        *norm_tensors(f"{name}.attentions.0.group_norm", width, LAYER),
        *(
            part
            for at in ("to_q", "to_k", "to_v", "to_out.0")
            for part in linear(f"{name}.attentions.0.{at}", width, width, bias=True)
        ),
    )
    return (
        *resnet(f"{name}.resnets.0", width, width),
        *(attention if attends else ()),
        *resnet(f"{name}.resnets.1", width, width),
    )
