"""Parameters of a diffusion pipeline's components, on the card or offloaded to host memory."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, ELEMENT_BYTES, SCHEMES
from planner.memory.result import Term, TermPart
from planner.memory.terms import format_symbol, model_symbol, term
from planner.models.architecture import Architecture
from planner.models.diffusion import Component
from planner.workload.diffusion import Offload
from planner.workload.workload import Inference

_MATRICES: Final = ("linear",)
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
    inside = [tensor for tensor in component.tensors if tensor.role in _MATRICES]
    kept = component.parameters + component.buffers - sum(tensor.parameters for tensor in inside)
    return kept * plain + sum(scheme.tensor_bytes(tensor.shape) * tensor.copies for tensor in inside)


def _largest_module_bytes(component: Component, format_name: str) -> int:
    """Return the bytes of the component's largest tensor, which sequential offloading moves to the card alone."""
    return component.largest_tensor * ELEMENT_BYTES.get(format_name, 2)


def upcast_bytes(stored: StoredComponent, workload: Inference) -> int:
    """Return the extra bytes of an SDXL image decoder's parameters that run in fp32, because fp16 overflows."""
    network = stored.component.network
    if network is None or network.kind != "image-decoder" or not network.upcast or workload.compute != "fp16":
        return 0
    return stored.component.parameters * (ELEMENT_BYTES["fp32"] - ELEMENT_BYTES["fp16"])


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
            model_symbol("P", parameters, "parameters of the components on the card"),
            format_symbol(
                "w", round(total / max(parameters, 1), 4), "average number of bytes per parameter on the card"
            ),
        ),
        _SOURCE if offload == "none" else f"{_SOURCE}; {_OFFLOADED}",
        parts=tuple(parts),
    )


def _format_title(format_name: str) -> str:
    """Return the number format's title for users."""
    return "their files" if format_name == AS_STORED else SCHEMES[format_name].title
