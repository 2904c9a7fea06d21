"""From a published measurement of a diffusion pipeline to the same run in the estimator."""

import re
from typing import Final, NamedTuple

from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.workload.workload import Inference

_IDS: Final = {"runwayml/stable-diffusion-v1-5": "stable-diffusion-v1-5/stable-diffusion-v1-5"}
_FAMILIES: Final = ("dtao", "fluxq", "qsd", "quanto", "sd3", "sdxl")
_NOT_COVERED: Final = {
    "tiny autoencoder": "a decoder of another pipeline",
    "precomputed": "what is on the card beside the embeddings is not said",
    "SDPA + model CPU offload": "an offload of 2023 that leaves the denoiser on the card while decoding",
}
_PLAIN: Final = ("fp32", "bf16", "fp16")
_QUANTISED: Final = {"int8wo": "int8", "int8": "int8", "fp8wo": "fp8", "fp8dq": "fp8", "fp8dqrow": "fp8"}
_HALF: Final = 2
_ENCODER_3: Final = "text_encoder_3"


class PipelineRun(NamedTuple):
    """The estimate for a row with a description, or the reason why there is none."""

    result: MemoryResult | None
    words: str
    loaded_bytes: int = 0


def pipeline_run(
    row_id: str, model: str, precision: str, technique: str, batch: str, catalog: Catalog
) -> PipelineRun | None:
    """Return the run of a row's diffusion pipeline, or None for other networks."""
    name = _IDS.get(model, model)
    if not row_id.startswith(_FAMILIES) or name not in {record.id for record in catalog.models.records}:
        return None
    reason = next((why for what, why in _NOT_COVERED.items() if what in technique), None)
    formats = _component_formats(precision, technique)
    if reason is None and formats is None:
        reason = f"weights of some components in {precision!r}"
    if reason is not None or formats is None:
        return PipelineRun(None, reason or "")
    architecture = catalog.models.model(name)
    if "T5 dropped" in technique:
        kept = tuple(one for one in architecture.components if one.name != _ENCODER_3)
        architecture = architecture.evolve(components=kept)
    offload = next((name for name in ("sequential", "model") if f"{name} CPU offload" in technique), "none")
    images = int(batch) if batch.isdigit() else 1
    workload = Inference(
        compute=formats.compute,
        weights=formats.denoiser,
        batch=images,
        diffusion={"offload": offload, "vae_slicing": "VAE slicing" in technique, "text_weights": formats.text},
    )
    words = f"{images} image{'' if images == 1 else 's'}, {precision}, offload: {offload}"
    result = estimate_memory(architecture, workload)
    loaded = 0
    if "transformer only" in precision:
        loaded = _plain_bytes(architecture, fused="fuse_qkv=True" in technique)
    return PipelineRun(result, words, loaded)


class _Formats(NamedTuple):
    compute: str
    denoiser: str
    text: str


def _component_formats(precision: str, technique: str) -> _Formats | None:
    """Return the formats of denoiser and text encoders, None if one is not the estimator's."""
    if precision in _PLAIN:
        return _Formats(precision, precision, precision)
    scheme = _QUANTISED.get(precision.split(" (")[0])
    if scheme is None or not ("torchao" in precision or "bnb" in precision):
        return None
    return _Formats("bf16", scheme, "bf16" if "transformer only" in precision else scheme)


def _plain_bytes(architecture: Architecture, *, fused: bool) -> int:
    """Return the bytes before torchao quantises what is on the card, with projections that are fused beside them.

    **Source**: sayakpaul/diffusers-torchao inference/benchmark_image.py `load_pipeline` (`.to("cuda")`,
    `fuse_qkv_projections`, `quantize_`, in this order; no counter is reset).
    """
    plain = sum(tensor.parameters for component in architecture.components for tensor in component.tensors)
    separate = sum(
        tensor.parameters
        for component in architecture.components
        for tensor in component.tensors
        if component.name == "transformer" and re.search(r"\.(to|add)_[qkv](_proj)?\.", tensor.name)
    )
    return _HALF * (plain + (separate if fused else 0))
