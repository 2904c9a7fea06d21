"""Components of an image pipeline: the bytes of their parameters, and the numbers alive at once in their blocks."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, ELEMENT_BYTES, SCHEMES
from planner.memory.inference.scratch import scratch_bytes
from planner.memory.kernels import AttentionKind
from planner.memory.precision import Precision
from planner.memory.result import Term, TermPart
from planner.memory.terms import format_symbol, model_symbol, term
from planner.models.architecture import Architecture
from planner.models.diffusion import (
    Component,
    Denoiser,
    DiffusionTransformer,
    ImageDecoder,
    UNet,
    UNetModule,
)
from planner.units import ceil_div
from planner.workload.diffusion import Offload
from planner.workload.formats import product_format
from planner.workload.training import Training
from planner.workload.workload import Inference

_QUANTIZED_ROLES: Final = ("linear",)
_KEPT_IN_FP32: Final = ".wo."
"""Part of the name of T5's matrices that transformers loads in fp32 where fp16 is asked for, in which they overflow."""
_SOURCE: Final = (
    "every tensor of each component, counted from its configuration; beside fp16, the last projections of T5's "
    "feed-forward blocks are in fp32 (transformers modeling_t5.py _keep_in_fp32_modules)"
)
_STORED: Final = "the headers of the component's safetensors files"
_OFFLOADED: Final = (
    "accelerate cpu_offload_with_hook: each component offloads the previous one at its start, the first none, so that "
    "the last text encoder is still there while the others read the negative prompt; cpu_offload loads the parameters "
    "of one module at a time"
)


class StoredComponent(NamedTuple):
    """A pipeline component (denoiser, text encoder, decoder) in one number format, with its size in bytes."""

    component: Component
    bytes: int
    largest: int
    format: str


def stored_components(architecture: Architecture, workload: Inference) -> tuple[StoredComponent, ...]:
    """Return the components of a pipeline in the number formats of `workload`, whose defaults are filled in."""
    text = workload.diffusion.text_weights or workload.compute
    return _components_in_formats(architecture, workload.compute, workload.weights or workload.compute, text)


@lru_cache(maxsize=256)
def _components_in_formats(
    architecture: Architecture, compute_format: str, denoiser_format: str, text_format: str
) -> tuple[StoredComponent, ...]:
    """Return the components of a pipeline, each stored in the number format of its kind."""
    formats = {"denoiser": denoiser_format, "text": text_format}
    return tuple(
        _stored_component(stored, formats.get(stored.part, compute_format), compute_format)
        for stored in architecture.components
    )


def _stored_component(component: Component, format_name: str, compute: str) -> StoredComponent:
    """Return `component` stored in the number format `format_name`, with its size in bytes."""
    if format_name == AS_STORED:
        stored = sum(part.bytes for part in component.stored)
        return StoredComponent(component, stored, _largest_module_bytes(component, compute), format_name)
    return StoredComponent(
        component,
        component_bytes(component, format_name, compute),
        _largest_module_bytes(component, format_name),
        format_name,
    )


def component_bytes(component: Component, format_name: str, compute: str) -> int:
    """Return the bytes of a component's parameters and buffers in a format; quantization applies to matrices only.

    **Formula**: P · w, and in fp16 2 more for the last projections of T5's feed-forward blocks.

    **Source**: transformers 5.23 modeling_t5.py (`_keep_in_fp32_modules = ["wo"]`). By huggingface/blog
    quanto-diffusers.md T5-XXL takes 6.184 GiB more in fp16 than in fp8; with all of its matrices in fp16 it were 4.31.
    """
    scheme, plain = SCHEMES[format_name], ELEMENT_BYTES[compute]
    if scheme.family == "plain":
        wider = ELEMENT_BYTES["fp32"] - ELEMENT_BYTES["fp16"] if format_name == "fp16" else 0
        upcast = sum(tensor.parameters for tensor in component.tensors if wider and _KEPT_IN_FP32 in tensor.name)
        return (component.parameters + component.buffers) * ELEMENT_BYTES[format_name] + upcast * wider
    inside = [tensor for tensor in component.tensors if tensor.role in _QUANTIZED_ROLES]
    kept = component.parameters + component.buffers - sum(tensor.parameters for tensor in inside)
    return kept * plain + sum(scheme.tensor_bytes(tensor.shape) * tensor.copies for tensor in inside)


def _largest_module_bytes(component: Component, format_name: str) -> int:
    """Return the bytes of the component's largest tensor, which sequential offloading moves to the card alone."""
    return component.largest_tensor * ELEMENT_BYTES.get(format_name, 2)


def text_tokens(architecture: Architecture, denoiser: Denoiser, prompt_tokens: int | None = None) -> int:
    """Return the number of text tokens that the denoiser reads, padded as its pipeline does.

    FLUX reads only CLIP's pooled vector; SD 3 concatenates both encodings, CLIP's two along the width. A number of
    `prompt_tokens` replaces the pipeline's length where the encoder does not fix it.
    """
    padded = {stored.name: stored.tokens or 0 for stored in architecture.components if stored.part == "text"}
    fixed = {stored.name for stored in architecture.components if stored.stacks and stored.stacks[-1].positions}
    free = max((prompt_tokens or count for name, count in padded.items() if name not in fixed), default=0)
    pooled = max((count for name, count in padded.items() if name in fixed), default=0)
    joined = denoiser.kind == "transformer" and denoiser.family == "sd3"
    return free + pooled if joined else free or pooled


def prompt_length(component: Component, prompt_tokens: int | None = None) -> int:
    """Return the tokens of a prompt in a text encoder: its fixed length, else `prompt_tokens` or its pipeline's."""
    return component.stacks[-1].positions or prompt_tokens or component.tokens or 0


def text_encoding_bytes(
    component: Component, prompts: int, tokens: int, precision: Precision, attention: AttentionKind
) -> int:
    """Return the bytes of activations alive at once while a text encoder reads `prompts` of `tokens` each."""
    stack = component.stacks[-1]
    encoder = Architecture(model_type=component.name, kind="encoder", hidden=stack.hidden, stacks=component.stacks)
    return scratch_bytes(encoder, prompts, tokens, precision, attention)


def upcast_bytes(stored: StoredComponent, workload: Inference) -> int:
    """Return the extra bytes of an SDXL image decoder's parameters that run in fp32, because fp16 overflows."""
    network = stored.component.network
    if network is None or network.kind != "image-decoder" or not network.upcast or workload.compute != "fp16":
        return 0
    return stored.component.parameters * (ELEMENT_BYTES["fp32"] - ELEMENT_BYTES["fp16"])


def training_components(architecture: Architecture, workload: Training) -> tuple[StoredComponent, ...]:
    """Return the components on the GPU while the denoiser is trained by `workload`, whose defaults are filled in.

    Frozen ones are in the format of products, SDXL's autoencoder in fp32; those whose results were computed beforehand
    are not on the GPU, nor are those that no step of training runs.

    **Source**: diffusers examples: text_to_image/train_text_to_image{,_lora}{,_sdxl}.py, dreambooth/
    train_dreambooth_lora_{sd3,flux}.py (`weight_dtype`, `del text_encoder_one`, `cache_latents`).
    """
    compute = "fp32" if workload.compute == "tf32" else product_format(workload.compute)
    on_gpu = {"none": ("denoiser", "text", "image-decoder"), "prompts": ("denoiser", "image-decoder")}
    kept = on_gpu.get(workload.precomputed or "none", ("denoiser",))
    return tuple(
        _stored_component(one, _training_format(one, workload, compute), compute)
        for one in architecture.components
        if one.part in kept
    )


def _training_format(component: Component, workload: Training, compute: str) -> str:
    if component.part == "denoiser":
        return workload.weights or compute
    return "fp32" if isinstance(component.network, ImageDecoder) and component.network.upcast else compute


def _resident_components(
    components: tuple[StoredComponent, ...], running: StoredComponent | None, offload: Offload, guided: bool
) -> list[tuple[StoredComponent, int]]:
    """Return the components on the card, with their bytes there, while `running` runs (None: no component).

    Components that no phase runs, such as a safety checker, are not offloaded. With guidance the text encoders run a
    second time, for the negative prompt: the last one then waits until its turn comes.
    """
    if offload == "none":
        return [(stored, stored.bytes) for stored in components]
    stays = [(stored, stored.bytes) for stored in components if stored.component.part == "other"]
    if running is None:
        return stays
    if offload == "sequential":
        return [*stays, (running, running.largest)]
    texts = [stored for stored in components if stored.component.part == "text"]
    waiting = [(texts[-1], texts[-1].bytes)] if guided and running in texts[:-1] else []
    return [*stays, *waiting, (running, running.bytes)]


@lru_cache(maxsize=256)
def pipeline_weights_term(
    components: tuple[StoredComponent, ...],
    running: StoredComponent | None,
    offload: Offload,
    extra_bytes: int = 0,
    guided: bool = False,
) -> Term:
    """Return the memory of parameters on the card while `running` runs; `extra_bytes` are of an fp32 image decoder."""
    on_card = _resident_components(components, running, offload, guided)
    parts = [
        TermPart(
            name=f"{stored.component.name} in {_format_title(stored.format)}"
            if count == stored.bytes
            else f"of {stored.component.name}",
            bytes=count,
            formula="Σ P × w",
            source=_STORED if stored.format == AS_STORED else _SOURCE,
        )
        for stored, count in on_card
    ]
    if extra_bytes:
        parts.append(
            TermPart(
                "image decoder in FP32", extra_bytes, "P × (4 − 2)", "diffusers StableDiffusionXLPipeline.upcast_vae"
            )
        )
    total = sum(count for _, count in on_card) + extra_bytes
    parameters = sum(stored.component.parameters for stored, _ in on_card)
    return term(
        "weights",
        total,
        "Σ P × w",
        (
            model_symbol("P", parameters, "parameters of the components on the GPU"),
            format_symbol(
                "w", round(total / max(parameters, 1), 4), "average number of bytes per parameter on the GPU"
            ),
        ),
        _SOURCE if offload == "none" else f"{_SOURCE}; {_OFFLOADED}",
        parts=tuple(parts),
    )


def _format_title(format_name: str) -> str:
    """Return the number format's title for users."""
    return "their files" if format_name == AS_STORED else SCHEMES[format_name].title


_GATED_BLOCK_WIDTHS: Final = 20
"""Live elements per token of a gated feed-forward block, in units of the layer width: input, sum, attention output and
norm (1 each), and 8 + 4 + 4 inside the block."""
_ATTENTION_WIDTHS: Final = 8
"""Live elements per token of attention, in units of the layer width: norm, queries, keys, values, result, projection,
scaled projection."""


_EAGER_WIDTHS: Final = 6
"""Live elements per token while the scores of eager attention exist, in units of the layer width: the transformer's
input, its projection, the norm, queries, keys and values."""
_FP32: Final = 4
_MATRICES: Final = 2
"""Matrices of all pairs of pixels alive at once in eager attention: the scores and their softmax."""


def resnet_elements(input_channels: int, output_channels: int, copies: int) -> int:
    """Return the peak live elements per pixel in a residual convolution block, without the block's input.

    **Formula**: the largest of 2i (norm and activation), i + o (first convolution), 2o (second), and the sum that is
    divided by one: 3o, or 4o with a convolution on the shortcut. Convolutions copy `copies` of their input and output
    to another layout.
    """
    first = input_channels + output_channels + _layout_copy_elements(input_channels, output_channels, copies)
    second = 2 * output_channels + _layout_copy_elements(output_channels, output_channels, copies)
    shortcut = (
        2 * output_channels + _layout_copy_elements(input_channels, output_channels, copies)
        if input_channels != output_channels
        else 0
    )
    return max(
        2 * input_channels, first, second, shortcut, (3 if input_channels == output_channels else 4) * output_channels
    )


def _layout_copy_elements(input_channels: int, output_channels: int, copies: int) -> int:
    """Return the elements per pixel that a convolution copies to channels-last layout: none, input, or output too."""
    return (0, input_channels, input_channels + output_channels)[copies]


@lru_cache(maxsize=256)
def unet_elements(unet: UNet, height: int, width: int, copies: int, *, eager: bool = False) -> int:
    """Return the peak number of live elements per latent image in one pass through the U-Net.

    **Formula**: the skip connections, plus the input of the current block of levels, the concatenated
    input of the running module, and its workspace. With `eager` attention the scores of all pairs of pixels and their
    softmax, 2 · heads · n for each of n pixels, beside the queries, keys and values.

    **Source**: diffusers 0.40 models/attention_processor.py, `AttnProcessor`, `Attention.get_attention_scores`.
    """
    kept = [unet.channels[0] * _level_pixels(height, width, 0)]
    held = most = 0
    rising = False
    for step in unet.steps():
        pixels = _level_pixels(height, width, step.level)
        alive = sum(kept) + held
        if eager and step.depth:
            scores = _MATRICES * unet.heads[step.level] * pixels
            most = max(most, alive + pixels * (step.out * _EAGER_WIDTHS + scores))
        if step.kind == "mid":
            most = max(most, alive + pixels * _middle_module_elements(step, copies))
            held, rising = step.out * pixels, True
            continue
        most = max(most, alive + pixels * _module_elements(step, copies))
        if rising and step.kind == "up":
            held = step.out * _level_pixels(height, width, step.level - 1)
            del kept[-(unet.layers + 1) :]
        elif not rising and _is_stored_for_skip(unet, step):
            kept.append(step.out * _level_pixels(height, width, step.level + (step.kind == "down")))
    return most


def _is_stored_for_skip(unet: UNet, step: UNetModule) -> bool:
    """Return whether the U-Net stores the output of `step` for a skip connection."""
    return step.kind in ("transformer", "down") or (step.kind == "resnet" and not unet.depths[step.level])


def _level_pixels(height: int, width: int, level: int) -> int:
    """Return the pixels of a feature map after `level` halvings of height and width."""
    return ceil_div(height, 2**level) * ceil_div(width, 2**level)


def _module_elements(step: UNetModule, copies: int) -> int:
    """Return the live elements per pixel in a U-Net module, including its input unless that is a skip connection."""
    if step.kind == "resnet":
        return (step.into if step.skip else 0) + resnet_elements(step.into, step.out, copies)
    if step.kind == "transformer":
        return step.out * (1 + _GATED_BLOCK_WIDTHS)
    if step.kind == "down":
        return ceil_div(step.out, 4) + _layout_copy_elements(step.into, ceil_div(step.out, 4), copies)
    return step.out * 9 + _layout_copy_elements(4 * step.into, 4 * step.out, copies)


def _middle_module_elements(step: UNetModule, copies: int) -> int:
    """Return the live elements per pixel in the U-Net's middle block, including its input."""
    around = resnet_elements(step.into, step.out, copies)
    return max(step.out * (1 + _GATED_BLOCK_WIDTHS), step.out + around)


@lru_cache(maxsize=256)
def decoder_elements(decoder: ImageDecoder, height: int, width: int, copies: int, eager_element_bytes: int = 0) -> int:
    """Return the peak number of live elements while the image decoder decodes one latent image.

    **Formula**: the largest of all blocks, typically at the full size: the block's input, the input of the module that
    runs, and its workspace. The attention in the middle has one head; if it is eager, with elements of
    `eager_element_bytes` bytes, the scores of all pairs and their softmax are in fp32.

    **Source**: diffusers 0.40 models/unets/unet_2d_blocks.py `UNetMidBlock2D` (`upcast_softmax`).
    """
    into = decoder.channels[-1]
    pixels = height * width
    scores = _MATRICES * pixels * _FP32 // eager_element_bytes if eager_element_bytes else 0
    most = pixels * (into * (1 + _ATTENTION_WIDTHS) + scores)
    for level, out in enumerate(reversed(decoder.channels)):
        first = resnet_elements(into, out, copies)
        further = out + resnet_elements(out, out, copies)
        most = max(most, pixels * (into + max(first, further)))
        if level < len(decoder.channels) - 1:
            most = max(most, pixels * (into + out * 9 + _layout_copy_elements(4 * out, 4 * out, copies)))
            pixels *= 4
        into = out
    return most


def transformer_elements(network: DiffusionTransformer, image_tokens: int, text_tokens: int, element_bytes: int) -> int:
    """Return the peak live elements in a pass over image and text tokens of `element_bytes` bytes per element.

    **Formula** in widths h, with I image tokens, T text tokens, N = I + T and r = i / h: FLUX (6 + r + c)N in blocks
    over one sequence, (5 + c)N + 3T or (5 + 2r)I + 3T in others, where c is the rotation in fp32; SD 3 (4 + 2r)I plus
    the texts, and the attention's whole result in the last block; PixArt (4 + 2r)I + T.
    """
    return network.hidden * _WIDTHS[network.family](network, image_tokens, text_tokens, element_bytes)


def rotation_bytes(network: DiffusionTransformer, tokens: int) -> int:
    """Return the bytes of the fp32 sine and cosine table of rotary embeddings, 0 for networks without the table."""
    return 2 * tokens * network.head_dim * _FP32 if network.family == "flux" else 0


def _flux_elements(network: DiffusionTransformer, image_tokens: int, text_tokens: int, element_bytes: int) -> int:
    """Return the peak live elements of a FLUX transformer, in units of the hidden width."""
    both = image_tokens + text_tokens
    inner = network.intermediate // network.hidden
    # Queries in fp32, times the cosine; the rotated ones, in fp32 and times the sine, and the sum.
    rotation = 4 if element_bytes == _FP32 else 7
    joint = max((5 + rotation) * both, (5 + 2 * inner) * image_tokens) + 3 * text_tokens if network.blocks else 0
    single = max(6 + inner + rotation, 7 + 2 * inner) * both if network.single_blocks else 0
    return max(joint, single)


def _sd3_elements(network: DiffusionTransformer, image_tokens: int, text_tokens: int, _: int) -> int:
    """Return the peak live elements of a Stable Diffusion 3 transformer, in units of the hidden width."""
    both = image_tokens + text_tokens
    inside = (4 + 2 * (network.intermediate // network.hidden)) * image_tokens
    second = 2 * image_tokens if network.dual_blocks else 0
    return max(7 * both + 3 * text_tokens, inside + max(second + 3 * text_tokens, both + 2 * text_tokens))


def _pixart_elements(network: DiffusionTransformer, image_tokens: int, text_tokens: int, _: int) -> int:
    """Return the peak live elements of a PixArt transformer, in units of the hidden width."""
    return (4 + 2 * (network.intermediate // network.hidden)) * image_tokens + text_tokens


_WIDTHS: Final = {"flux": _flux_elements, "sd3": _sd3_elements, "pixart": _pixart_elements}
