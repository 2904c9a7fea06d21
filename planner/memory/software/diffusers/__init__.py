"""Memory behavior of the diffusers library, which runs image pipelines.

Each phase (text encoding, denoising, decoding) has memory and components of its own.
"""

from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.precision import inference_precision
from planner.memory.result import Symbol, Term
from planner.memory.software.diffusers.components import (
    StoredComponent,
    decoder_elements,
    pipeline_weights_term,
    prompt_length,
    rotation_bytes,
    stored_components,
    text_encoding_bytes,
    text_tokens,
    transformer_elements,
    unet_elements,
    upcast_bytes,
)
from planner.memory.software.transformers import Transformers
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture
from planner.models.diffusion import (
    Component,
    Denoiser,
    DiffusionTransformer,
    ImageDecoder,
    Network,
    UNet,
    find_networks,
)
from planner.units import ceil_div
from planner.workload.workload import Inference

_TEXT_SOURCE: Final = "transformers 5.23 modules: the tensors alive at once inside one layer of the encoder"
_BLOCK_SOURCE: Final = "diffusers 0.40 modules: the tensors that the code still refers to, block by block"
_LAYOUT_SOURCE: Final = (
    "cuDNN's tensor-core kernels read channels-last tensors, and PyTorch passes channels-first ones: cuDNN's workspace "
    "holds a copy of the input; lower bound: no copy; upper bound: also a copy of the output"
)
_CHANNELS: Final = 3
_TOLERANCE: Final = 0.05
"""Tolerance for other library versions, equal to that of formulas checked against traces."""


class DiffusionRun(NamedTuple):
    """Networks and sizes of a pipeline run: images per step, passes per image, latent size, text tokens."""

    denoiser: Denoiser
    decoder: ImageDecoder
    images: int
    passes: int
    height: int
    width: int
    text: int
    size: int
    eager: bool

    @property
    def pixels(self) -> int:
        """Return the number of latent pixels of one image."""
        return self.height * self.width


class ByteRange(NamedTuple):
    """A size in bytes with its lower and upper bound in bytes."""

    bytes: int
    low: int
    high: int


def diffusion_timeline(architecture: Architecture, workload: Inference) -> PhaseSnapshots:
    """Return the memory in each phase of the image pipeline in `workload` (defaults filled in).

    **Formula**: max over phases of the parameters on the card + the phase's activations + embeddings and latents.
    """
    components = stored_components(architecture, workload)
    run = _diffusion_run(architecture, workload)
    snapshots = [
        Snapshot(
            "load",
            [pipeline_weights_term(components, None, workload.diffusion.offload)],
            _load_phase_explanation(workload),
        ),
        *(
            _component_snapshot(stored, components, run, workload)
            for stored in components
            if stored.component.part != "other"
        ),
    ]
    dynamic = max(term.bytes for snapshot in snapshots for term in snapshot.written() if term.name == "activations")
    host = None if workload.diffusion.offload == "none" else sum(stored.bytes for stored in components)
    return PhaseSnapshots(
        tuple(snapshots), dynamic=dynamic, host_bytes=host, notes=tuple(_pipeline_notes(run, workload))
    )


def _component_snapshot(
    stored: StoredComponent, components: tuple[StoredComponent, ...], run: DiffusionRun, workload: Inference
) -> Snapshot:
    """Return the memory snapshot while one component of the pipeline runs."""
    more = upcast_bytes(stored, workload)
    guided = run.passes > run.images
    weights = pipeline_weights_term(components, stored, workload.diffusion.offload, more, guided)
    network = stored.component.network
    if network is None:
        terms = [weights, _text_encoding_term(stored.component, run, workload)]
        return Snapshot("encode-text", terms, f"{stored.component.name} reads the prompt")
    kept = _buffers_term(run, network, workload)
    if isinstance(network, ImageDecoder):
        size = ELEMENT_BYTES["fp32"] if more else run.size
        terms = [weights, _decoding_term(network, run, size, workload), kept]
        return Snapshot("decode-image", terms, "the image decoder's last feature maps have the full image resolution")
    return Snapshot(
        "denoise",
        [weights, _denoising_term(network, run), kept],
        "one block of the denoiser processes the latent image",
    )


def _diffusion_run(architecture: Architecture, workload: Inference) -> DiffusionRun:
    """Return the networks and sizes with which `workload` runs the pipeline."""
    denoiser, decoder = find_networks(architecture.components)
    width, height = workload.image_size or (0, 0)
    return DiffusionRun(
        denoiser=denoiser,
        decoder=decoder,
        images=workload.batch,
        passes=workload.batch * (2 if workload.diffusion.guidance else 1),
        height=height // decoder.scale,
        width=width // decoder.scale,
        text=text_tokens(architecture, denoiser, workload.diffusion.prompt_tokens),
        size=ELEMENT_BYTES[workload.compute],
        eager=workload.attention == "eager",
    )


def _text_encoding_term(component: Component, run: DiffusionRun, workload: Inference) -> Term:
    tokens = prompt_length(component, workload.diffusion.prompt_tokens)
    needed = text_encoding_bytes(component, run.images, tokens, inference_precision(workload), workload.attention)
    symbols = (
        workload_symbol("B", run.images, "prompts"),
        workload_symbol("T", tokens, "tokens per prompt, padding included"),
        model_symbol(
            "a", round(needed / (run.images * tokens)), "bytes per token inside the text encoder's widest layer"
        ),
    )
    return _activations_term(ByteRange(needed, needed, needed), "B × T × a", symbols, _TEXT_SOURCE)


def _denoising_term(network: Denoiser, run: DiffusionRun) -> Term:
    passes = workload_symbol("B", run.passes, "images per pass, doubled with guidance (with and without prompt)")
    return (
        _unet_term(network, run, passes)
        if isinstance(network, UNet)
        else _diffusion_transformer_term(network, run, passes)
    )


def _unet_term(network: UNet, run: DiffusionRun, passes: Symbol) -> Term:
    low, likely, high = (
        run.passes * unet_elements(network, run.height, run.width, copies, eager=run.eager) * run.size
        for copies in range(3)
    )
    symbols = (
        passes,
        workload_symbol("n", run.pixels, "latent pixels"),
        model_symbol("c", round(likely / (run.passes * run.pixels * run.size)), "channels per latent pixel"),
        library_symbol("w", run.size, "bytes per element"),
    )
    return _activations_term(
        ByteRange(likely, low, high), "B × n × c × w", symbols, f"{_BLOCK_SOURCE}; {_LAYOUT_SOURCE}"
    )


def _diffusion_transformer_term(network: DiffusionTransformer, run: DiffusionRun, passes: Symbol) -> Term:
    image = ceil_div(run.height, network.patch) * ceil_div(run.width, network.patch)
    needed = transformer_elements(network, run.passes * image, run.passes * run.text, run.size) * run.size
    angles = rotation_bytes(network, image + run.text)
    symbols = [
        passes,
        workload_symbol("I", image, f"image tokens of {network.patch} × {network.patch} latent pixels"),
        workload_symbol("T", run.text, "text tokens"),
        model_symbol("a", round(needed / (run.passes * (image + run.text))), "bytes per token inside the widest block"),
    ]
    formula = "B × (I + T) × a"
    if angles:
        formula += " + R"
        symbols.append(model_symbol("R", angles, "bytes of the sine and cosine table shared by all images"))
    whole = needed + angles
    return _activations_term(ByteRange(whole, whole, whole), formula, tuple(symbols), _BLOCK_SOURCE)


def _decoding_term(decoder: ImageDecoder, run: DiffusionRun, element_bytes: int, workload: Inference) -> Term:
    height, width = _tile_sides(decoder, run, workload)
    images = 1 if workload.diffusion.vae_slicing else run.images
    low, likely, high = (
        images * decoder_elements(decoder, height, width, copies, element_bytes if run.eager else 0) * element_bytes
        for copies in range(3)
    )
    symbols = (
        workload_symbol("B", images, "number of images decoded at once"),
        workload_symbol("n", height * width * decoder.scale**2, "pixels of an image, or of a tile with tiled decoding"),
        model_symbol(
            "c", round(likely / (images * height * width * decoder.scale**2 * element_bytes)), "channels per pixel"
        ),
        library_symbol("w", element_bytes, "bytes per element"),
    )
    return _activations_term(
        ByteRange(likely, low, high), "B × n × c × w", symbols, f"{_BLOCK_SOURCE}; {_LAYOUT_SOURCE}"
    )


def _tile_sides(decoder: ImageDecoder, run: DiffusionRun, workload: Inference) -> tuple[int, int]:
    """Return height and width in latent pixels of what is decoded at once: an image, or a tile with tiled decoding."""
    side = decoder.sample_size // decoder.scale if workload.diffusion.vae_tiling else max(run.height, run.width)
    return min(run.height, side), min(run.width, side)


def _decoded_elements(decoder: ImageDecoder, run: DiffusionRun, workload: Inference) -> int:
    """Return the elements of the decoded images, or of the tiles that wait while the last whole one is decoded if more.

    **Formula** of an image: 3 · H · W pixels; of tiles, whose starts are ¾ of a side apart, the sum of their sizes.

    **Source**: diffusers 0.42 `AutoencoderKL.tiled_decode` (`tile_overlap_factor`): tiles live until they are joined.
    """
    high, wide = _tile_sides(decoder, run, workload)
    rows = _tile_lengths(run.height, high)
    columns = _tile_lengths(run.width, wide)
    last_row, last = rows.count(high) - 1, columns.count(wide) - 1
    tiles = sum(rows[:last_row]) * sum(columns) + high * sum(columns[:last])
    whole = run.height * run.width
    images = 1 if workload.diffusion.vae_slicing else run.images
    return _CHANNELS * decoder.scale**2 * ((run.images - images) * whole + images * max(tiles, whole))


def _tile_lengths(length: int, side: int) -> list[int]:
    """Return the lengths of the tiles along a side of the latent image, in order."""
    return [min(side, length - start) for start in range(0, length, max(side * 3 // 4, 1))]


def _activations_term(needed: ByteRange, formula: str, symbols: tuple[Symbol, ...], source: str) -> Term:
    """Return the memory of activations with the bounds of `needed` bytes, widened for other library versions."""
    return term(
        "activations",
        needed.bytes,
        formula,
        symbols,
        source,
        certainty="measured",
        low_bytes=needed.low,
        high_bytes=int(max(needed.high, needed.bytes) * (1 + _TOLERANCE)),
    )


def _buffers_term(run: DiffusionRun, network: Network, workload: Inference) -> Term:
    """Return the memory of tensors held between components: prompt embeddings, latents and decoded images."""
    text = run.passes * run.text * run.denoiser.text_width
    latents = run.passes * run.decoder.latent_channels * run.pixels
    images = _decoded_elements(network, run, workload) if isinstance(network, ImageDecoder) else 0
    elements = text + latents + images
    return term(
        "buffers",
        elements * run.size,
        "(E + L + p) × w",
        (
            model_symbol("E", text, "elements of the prompt embeddings"),
            model_symbol("L", latents, "elements of the latent images"),
            model_symbol("p", images, "elements of the decoded images or tiles"),
            library_symbol("w", run.size, "bytes per element"),
        ),
        "diffusers 0.40 pipelines: the tensors that their __call__ refers to between the components",
    )


def _load_phase_explanation(workload: Inference) -> str:
    return (
        "all components are loaded on the GPU"
        if workload.diffusion.offload == "none"
        else "offloaded components are loaded to host memory"
    )


def _pipeline_notes(run: DiffusionRun, workload: Inference) -> Iterator[str]:
    offload = workload.diffusion.offload
    if offload == "model":
        yield "Offloading with enable_model_cpu_offload: each component is on the GPU only while it runs."
    if offload == "sequential":
        yield (
            "Offloading with enable_sequential_cpu_offload: only the running module is on the GPU, which is many "
            "times slower."
        )
    if run.passes == run.images and run.denoiser.kind == "unet":
        yield "Guidance is off: each denoising step runs one pass per image."


class Diffusers(Transformers):
    """Image pipelines of the diffusers library, with text encoders from transformers."""

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of an image pipeline: text encoding, denoising, decoding."""
        return diffusion_timeline(architecture, workload)


SERVING: Final = Diffusers()
