"""Time of an image from a diffusion pipeline: its text encoding, denoising steps and decoding."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.models.diffusion import (
    Component,
    Denoiser,
    DiffusionTransformer,
    ImageDecoder,
    UNet,
    UNetModule,
    find_networks,
)
from planner.performance.links import links_of
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.performance.traced import OperationCounts, Precision, TracedStep, step_time
from planner.workload.workload import Inference

DEFAULT_STEPS: Final = 30
"""Default number of denoising steps: between the 20 of MLPerf's rule and the 50 of diffusers' pipelines."""
_PROMPT_TOKENS: Final = 77
"""Prompt length of CLIP's text encoders in tokens (openai/clip-vit-large-patch14, max_position_embeddings)."""


def image_time(architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting) -> TimeResult:
    """Return the time of one batch of images on each GPU, for a `workload` with its defaults filled in.

    **Formula**: steps · (2 with guidance) · denoiser + text encoders + decoder, each F ÷ (a · C) + b · n · w ÷ B.

    **Assumes** 30 steps if the setting has no number.
    """
    steps = setting.diffusion_steps or DEFAULT_STEPS
    counts = pipeline_counts(architecture, workload, steps)
    batch = workload.batch
    whole = batch_counts(counts, batch)
    precision: Precision = "tf32" if workload.compute == "fp32" else "fp16"
    step = TracedStep("inference", whole, batch, precision, compiled=setting.compiled)
    found = step_time(step, gpu, links_of(gpu, setting), workload.parallel.data or 1)
    notes = (f"Assumes {steps:,} denoising steps per image.", *found.notes) if found.seconds else found.notes
    return found.evolve(samples="images", notes=notes)


def pipeline_counts(architecture: Architecture, workload: Inference, steps: int = DEFAULT_STEPS) -> OperationCounts:
    """Return the operation counts of one image in all components of the pipeline."""
    denoiser, decoder = find_networks(architecture.components)
    width, height = workload.image_size or (denoiser.sample_size * decoder.scale,) * 2
    size = (height // decoder.scale, width // decoder.scale)
    text = max([prompt_tokens(part) for part in architecture.components if part.part == "text"], default=_PROMPT_TOKENS)
    one, last = denoiser_counts(denoiser, *size, text), decoder_counts(decoder, *size)
    each = steps * (2 if workload.diffusion.guidance else 1)
    encoders = sum(2 * part.parameters * prompt_tokens(part) for part in architecture.components if part.part == "text")
    flops, elements = each * one.flops + last.flops + encoders, each * one.elements + last.elements
    return OperationCounts(flops, elements, "diffusion", steps * one.calls + last.calls)


def batch_counts(counts: OperationCounts, images: int) -> OperationCounts:
    """Return the operation counts of a batch of images, which takes as many launches as one image."""
    return counts._replace(flops=images * counts.flops, elements=images * counts.elements)


def prompt_tokens(part: Component) -> int:
    """Return the tokens of a prompt in a text encoder, padding included."""
    return part.tokens or _PROMPT_TOKENS


_KERNEL_WEIGHTS: Final = 9
"""Number of weights in a 3 × 3 convolution for each pair of input and output channel."""
_RESNET_CALLS: Final = 12
"""Operator launches of a convolution block: two norms, activations and convolutions, the step's projection, and
sums."""
_BLOCK_CALLS: Final = 45
"""Operator launches of a transformer block: three norms, ten products with reshapes, two attentions, and sums."""
_GATED_SQUARES: Final = 12
"""Parameters of a gated feed-forward block in units of width²: 8 in the input projections, 4 in the output
projection."""


class ModuleCounts(NamedTuple):
    """Multiply-accumulate operations, output elements and operator launches of one module."""

    macs: float
    elements: float
    calls: int = 1


def denoiser_counts(network: Denoiser, height: int, width: int, text_tokens: int) -> OperationCounts:
    """Return the operation counts of one denoiser pass over a latent image of `height` × `width`."""
    if isinstance(network, UNet):
        return _summed_counts(_unet_counts(network, height * width, text_tokens))
    return _summed_counts(_transformer_counts(network, height, width, text_tokens))


@lru_cache(maxsize=256)
def decoder_counts(decoder: ImageDecoder, height: int, width: int) -> OperationCounts:
    """Return the operation counts of decoding one latent image of `height` × `width`."""
    return _summed_counts(_decoder_module_counts(decoder, height * width))


@lru_cache(maxsize=256)
def encoder_counts(decoder: ImageDecoder, height: int, width: int) -> OperationCounts:
    """Return the operation counts of the encoder that mirrors `decoder`, for a latent image of `height` × `width`."""
    return _summed_counts(_encoder_module_counts(decoder, height * width))


def _summed_counts(parts: Iterator[ModuleCounts]) -> OperationCounts:
    found = list(parts)
    return OperationCounts(
        flops=2 * sum(part.macs for part in found),
        elements=sum(part.elements for part in found),
        kind="diffusion",
        calls=sum(part.calls for part in found),
    )


def _unet_counts(unet: UNet, pixels: int, text_tokens: int) -> Iterator[ModuleCounts]:
    ends = 2 * _KERNEL_WEIGHTS * unet.latent_channels * unet.channels[0]
    yield ModuleCounts(ends * pixels, (unet.channels[0] + unet.latent_channels) * pixels)
    for step in unet.steps():
        yield from _unet_module_counts(step, pixels / 4**step.level, unet.text_width, text_tokens)


def _unet_module_counts(step: UNetModule, pixels: float, text_width: int, text_tokens: int) -> Iterator[ModuleCounts]:
    match step.kind:
        case "resnet":
            yield _resnet_counts(step.into, step.out, pixels)
        case "transformer":
            yield _transformer_block_counts(step.out, step.depth, pixels, text_width, text_tokens)
        case "mid":
            yield _resnet_counts(step.into, step.out, pixels)
            yield _transformer_block_counts(step.out, step.depth, pixels, text_width, text_tokens)
            yield _resnet_counts(step.out, step.out, pixels)
        case "down":
            yield _resize_counts(step.out, pixels / 4)
        case _:
            yield _resize_counts(step.out, pixels * 4)


def _resnet_counts(in_channels: int, out_channels: int, pixels: float) -> ModuleCounts:
    """Return the counts of a convolution block: two convolutions, and a third on the shortcut if the width changes."""
    shortcut = in_channels * out_channels if in_channels != out_channels else 0
    return ModuleCounts(
        (_KERNEL_WEIGHTS * (in_channels * out_channels + out_channels * out_channels) + shortcut) * pixels,
        (3 if shortcut else 2) * out_channels * pixels,
        _RESNET_CALLS,
    )


def _resize_counts(channels: int, pixels: float) -> ModuleCounts:
    """Return the counts of a 3 × 3 convolution after up- or downsampling."""
    return ModuleCounts(_KERNEL_WEIGHTS * channels * channels * pixels, channels * pixels)


def _transformer_block_counts(width: int, depth: int, pixels: float, text_width: int, text_tokens: int) -> ModuleCounts:
    """Return the counts of transformer blocks: self-attention, cross-attention to the text, and a gated block."""
    squares = 2 + depth * (4 + 2 + _GATED_SQUARES)
    pairs = depth * 2 * width * (pixels + text_tokens)
    text_side = depth * 2 * width * text_width * text_tokens
    macs = pixels * (squares * width * width + pairs) + text_side
    return ModuleCounts(macs, pixels * width * (2 + depth * (5 + 3 + 9)), depth * _BLOCK_CALLS)


def _transformer_counts(
    network: DiffusionTransformer, height: int, width: int, text_tokens: int
) -> Iterator[ModuleCounts]:
    """Yield the counts of a diffusion transformer's blocks: joint attention to image and text, or cross-attention."""
    image = (height // network.patch) * (width // network.patch)
    each = 4 * network.hidden**2 + 2 * network.hidden * network.intermediate
    outputs = 5 * network.hidden + network.intermediate
    if network.family == "pixart":
        across = 2 * network.hidden**2 * (image + text_tokens) + 2 * image * text_tokens * network.hidden
        yield _block_counts(network.blocks, image, each, outputs, network.hidden)
        yield ModuleCounts(network.blocks * across, network.blocks * 3 * network.hidden * image)
        return
    yield _block_counts(network.blocks + network.single_blocks, image + text_tokens, each, outputs, network.hidden)
    yield _block_counts(network.dual_blocks, image, 4 * network.hidden**2, 5 * network.hidden, network.hidden)


def _block_counts(blocks: int, tokens: int, macs_per_token: int, outputs: int, hidden: int) -> ModuleCounts:
    """Return the counts of `blocks` transformer blocks with full attention over `tokens` tokens."""
    macs = blocks * tokens * (macs_per_token + 2 * tokens * hidden)
    return ModuleCounts(macs, blocks * tokens * outputs, blocks * _BLOCK_CALLS)


def _encoder_module_counts(decoder: ImageDecoder, pixels: int) -> Iterator[ModuleCounts]:
    width, size = decoder.channels[0], float(pixels * decoder.scale**2)
    yield ModuleCounts(_KERNEL_WEIGHTS * 3 * width * size, width * size)
    for level, channels in enumerate(decoder.channels):
        for _ in range(decoder.layers):
            yield _resnet_counts(width, channels, size)
            width = channels
        if level < len(decoder.channels) - 1:
            size /= 4
            yield _resize_counts(channels, size)
    yield from _middle_counts(width, pixels)
    yield ModuleCounts(_KERNEL_WEIGHTS * 2 * decoder.latent_channels * width * size, 2 * decoder.latent_channels * size)


def _middle_counts(width: int, pixels: int) -> Iterator[ModuleCounts]:
    """Yield the counts of an autoencoder's middle: attention with one head between two convolution blocks."""
    yield _resnet_counts(width, width, pixels)
    yield ModuleCounts(pixels * (4 * width**2 + 2 * pixels * width), 5 * width * pixels)
    yield _resnet_counts(width, width, pixels)


def _decoder_module_counts(decoder: ImageDecoder, pixels: int) -> Iterator[ModuleCounts]:
    deepest = decoder.channels[-1]
    yield ModuleCounts(_KERNEL_WEIGHTS * decoder.latent_channels * deepest * pixels, deepest * pixels)
    yield from _middle_counts(deepest, pixels)
    width, size = deepest, float(pixels)
    for level, channels in reversed(list(enumerate(decoder.channels))):
        for _ in range(decoder.layers + 1):
            yield _resnet_counts(width, channels, size)
            width = channels
        if level:
            size *= 4
            yield _resize_counts(channels, size)
    yield ModuleCounts(_KERNEL_WEIGHTS * 3 * width * size, 3 * size)
