"""What the networks of a diffusion pipeline compute and put out: denoisers, and the decoder of the autoencoder.

**Source**: shapes as in diffusers 0.40 `models/unets`, `models/transformers` and `models/autoencoders/vae.py`; a
multiplication with addition is two operations.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.models.pipeline import Denoiser, DiffusionTransformer, ImageDecoder, Step, UNet
from planner.performance.vision import Counts

_KERNEL: Final = 9
"""Weights of a 3 × 3 convolution for each pair of channels."""
_RESNET_CALLS: Final = 12
"""Operators of a convolution block: two norms, activations and convolutions, the step's projection, and sums."""
_BLOCK_CALLS: Final = 45
"""Operators of a transformer block: three norms, ten products with their reshapes, two attentions, and sums."""
_GATED: Final = 12
"""Squares of the width in a gated feed-forward block: 8 on the way in and 4 on the way out."""


class Maps(NamedTuple):
    """Multiplications and outputs of one module, and the operators that PyTorch calls for it."""

    macs: float
    elements: float
    calls: int = 1


@lru_cache(maxsize=256)
def denoiser_counts(network: Denoiser, height: int, width: int, text: int) -> Counts:
    """Return one pass over a latent image of `height` × `width` with `text` tokens of the prompt."""
    if isinstance(network, UNet):
        return _counts(_unet(network, height * width, text))
    return _counts(_transformer(network, height, width, text))


@lru_cache(maxsize=256)
def decoder_counts(decoder: ImageDecoder, height: int, width: int) -> Counts:
    """Return the decoding of one latent image of `height` × `width`."""
    return _counts(_decoder(decoder, height * width))


def _counts(parts: Iterator[Maps]) -> Counts:
    found = list(parts)
    return Counts(
        flops=2 * sum(part.macs for part in found),
        elements=sum(part.elements for part in found),
        kind="diffusion",
        calls=sum(part.calls for part in found),
    )


def _unet(unet: UNet, pixels: int, text: int) -> Iterator[Maps]:
    ends = 2 * _KERNEL * unet.latent_channels * unet.channels[0]
    yield Maps(ends * pixels, (unet.channels[0] + unet.latent_channels) * pixels)
    for step in unet.steps():
        yield from _module(step, pixels / 4**step.level, unet.text_width, text)


def _module(step: Step, pixels: float, text_width: int, text: int) -> Iterator[Maps]:
    match step.kind:
        case "resnet":
            yield _resnet(step.into, step.out, pixels)
        case "transformer":
            yield _blocks(step.out, step.depth, pixels, text_width, text)
        case "mid":
            yield _resnet(step.into, step.out, pixels)
            yield _blocks(step.out, step.depth, pixels, text_width, text)
            yield _resnet(step.out, step.out, pixels)
        case "down":
            yield _resize(step.out, pixels / 4)
        case _:
            yield _resize(step.out, pixels * 4)


def _resnet(into: int, out: int, pixels: float) -> Maps:
    """Return two convolutions, and one on the shortcut where the width changes."""
    shortcut = into * out if into != out else 0
    return Maps(
        (_KERNEL * (into * out + out * out) + shortcut) * pixels, (3 if shortcut else 2) * out * pixels, _RESNET_CALLS
    )


def _resize(channels: int, pixels: float) -> Maps:
    return Maps(_KERNEL * channels * channels * pixels, channels * pixels)


def _blocks(width: int, depth: int, pixels: float, text_width: int, text: int) -> Maps:
    """Return transformer blocks between two projections: attention to itself and to the text, and a gated block."""
    squares = 2 + depth * (4 + 2 + _GATED)
    pairs = depth * 2 * width * (pixels + text)
    text_side = depth * 2 * width * text_width * text
    macs = pixels * (squares * width * width + pairs) + text_side
    return Maps(macs, pixels * width * (2 + depth * (5 + 3 + 9)), depth * _BLOCK_CALLS)


def _transformer(network: DiffusionTransformer, height: int, width: int, text: int) -> Iterator[Maps]:
    """Return blocks over patches: beside the tokens of the text in one attention, or reading them across (PixArt)."""
    image = (height // network.patch) * (width // network.patch)
    each = 4 * network.hidden**2 + 2 * network.hidden * network.intermediate
    outputs = 5 * network.hidden + network.intermediate
    if network.family == "pixart":
        across = 2 * network.hidden**2 * (image + text) + 2 * image * text * network.hidden
        yield _over(network.blocks, image, each, outputs, network.hidden)
        yield Maps(network.blocks * across, network.blocks * 3 * network.hidden * image)
        return
    yield _over(network.blocks + network.single_blocks, image + text, each, outputs, network.hidden)
    yield _over(network.dual_blocks, image, 4 * network.hidden**2, 5 * network.hidden, network.hidden)


def _over(blocks: int, tokens: int, each: int, outputs: int, hidden: int) -> Maps:
    macs = blocks * tokens * (each + 2 * tokens * hidden)
    return Maps(macs, blocks * tokens * outputs, blocks * _BLOCK_CALLS)


def _decoder(decoder: ImageDecoder, pixels: int) -> Iterator[Maps]:
    deepest = decoder.channels[-1]
    yield Maps(_KERNEL * decoder.latent_channels * deepest * pixels, deepest * pixels)
    yield _resnet(deepest, deepest, pixels)
    yield Maps(pixels * (4 * deepest**2 + 2 * pixels * deepest), 5 * deepest * pixels)
    yield _resnet(deepest, deepest, pixels)
    width, size = deepest, float(pixels)
    for level, channels in reversed(list(enumerate(decoder.channels))):
        for _ in range(decoder.layers + 1):
            yield _resnet(width, channels, size)
            width = channels
        if level:
            size *= 4
            yield _resize(channels, size)
    yield Maps(_KERNEL * 3 * width * size, 3 * size)
