"""From a published measurement of a diffusion pipeline to the same run in the estimator."""

from typing import Final, NamedTuple

from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
from planner.plan.catalog import Catalog
from planner.workload.workload import Inference

_IDS: Final = {"runwayml/stable-diffusion-v1-5": "stable-diffusion-v1-5/stable-diffusion-v1-5"}
_FAMILIES: Final = ("dtao", "fluxq", "qsd", "quanto", "sd3", "sdxl")
_NOT_COVERED: Final = {
    "compile=True": "a compiled denoiser",
    "fuse_qkv=True": "fused projections, kept beside the separate ones",
    "precomputed": "what is on the card beside the embeddings is not said",
    "SDPA + model CPU offload": "an offload of 2023 that leaves the denoiser on the card while decoding",
}
_PLAIN: Final = ("fp32", "bf16", "fp16")
_ENCODER_3: Final = "text_encoder_3"


class PipelineRun(NamedTuple):
    """The estimate for a row with a description, or the reason why there is none."""

    result: MemoryResult | None
    words: str


def pipeline_run(
    row_id: str, model: str, precision: str, technique: str, batch: str, catalog: Catalog
) -> PipelineRun | None:
    """Return the run of a row's diffusion pipeline, or None for other networks."""
    name = _IDS.get(model, model)
    if not row_id.startswith(_FAMILIES) or name not in {record.id for record in catalog.models.records}:
        return None
    reason = next((why for what, why in _NOT_COVERED.items() if what in technique), None)
    if reason is None and precision not in _PLAIN:
        reason = f"weights of some components in {precision!r}"
    if reason is not None:
        return PipelineRun(None, reason)
    architecture = catalog.models.model(name)
    if "T5 dropped" in technique:
        kept = tuple(one for one in architecture.components if one.name != _ENCODER_3)
        architecture = architecture.evolve(components=kept)
    offload = "model" if "offload" in technique else "none"
    images = int(batch) if batch.isdigit() else 1
    workload = Inference(compute=precision, batch=images, diffusion={"offload": offload})
    words = f"{images} image{'' if images == 1 else 's'}, {precision}, offload: {offload}"
    return PipelineRun(estimate_memory(architecture, workload), words)
