"""Workloads as phrases."""

from typing import Final

from planner.present import format as fmt
from planner.workload.choices import Method
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.software.registry import DEFAULT, SOFTWARE, serving_support
from planner.workload.workload import Inference, Training, Workload

OPTIMIZER_TITLES: Final = {name: kind.title for name, kind in OPTIMIZERS.items()}
_DECODING: Final = (("decoded image by image", "vae_slicing"), ("decoded in tiles", "vae_tiling"))
METHOD_TITLES: Final[dict[Method, str]] = {"full": "full fine-tuning", "lora": "LoRA", "qlora": "QLoRA"}


def compute_phrase(compute: str) -> str:
    """Return a compute precision as a phrase: `bf16 autocast` for `amp-bf16`, other names unchanged."""
    return f"{compute.removeprefix('amp-')} autocast" if compute.startswith("amp-") else compute


def workload_phrase(workload: Workload) -> str:
    """Return a workload as a phrase, such as `full fine-tuning, AdamW, 4 × 2,048 tokens, bf16 autocast`."""
    if isinstance(workload, Training):
        return ", ".join(_training_parts(workload))
    return ", ".join(_inference_parts(workload))


def _training_parts(workload: Training) -> list[str]:
    """Return the parts of the phrase for a training workload."""
    tokens = _tokens_text(workload.micro_batch, workload.sequence_length)
    parts = [METHOD_TITLES[workload.method], OPTIMIZER_TITLES[workload.optimizer], tokens]
    if workload.gradient_accumulation > 1:
        parts.append(f"{fmt.integer(workload.gradient_accumulation)} accumulation steps")
    parts.append(compute_phrase(workload.compute))
    if workload.activation_checkpointing != "none":
        full = workload.activation_checkpointing == "full"
        parts.append("checkpointing" if full else "selective checkpointing")
    return parts


def _inference_parts(workload: Inference) -> list[str]:
    """Return the parts of the phrase for an inference workload."""
    if workload.diffusion.guidance is not None:
        return _image_parts(workload)
    parts = [
        _software_phrase(workload),
        _tokens_text(workload.batch, workload.context_length),
        workload.weights or "weights as stored",
    ]
    if workload.images:
        parts.append(f"{fmt.plural(workload.images, 'image')} per prompt")
    if not _has_default_cache(workload):
        parts.append(f"KV cache in {workload.kv_cache}")
    return parts


def _image_parts(workload: Inference) -> list[str]:
    """Return the parts of the phrase for a diffusion pipeline's workload."""
    width, height = workload.image_size or (0, 0)
    settings = workload.diffusion
    parts = [
        "images",
        f"{fmt.count_of(workload.batch, fmt.integer(width))} × {fmt.integer(height)} pixels",
        workload.weights or workload.compute,
    ]
    parts += ["text encoders in " + settings.text_weights] if settings.text_weights not in (None, parts[-1]) else []
    parts += [] if settings.guidance else ["one pass per step"]
    parts += [f"{settings.offload} offload"] if settings.offload != "none" else []
    return parts + [what for what, on in _DECODING if getattr(settings, on)]


def _tokens_text(sequences: int, length: int | None) -> str:
    """Return the number and length of sequences: `4 × 2,048 tokens`."""
    return (
        fmt.plural(sequences, "sequence")
        if length is None
        else f"{fmt.count_of(sequences, fmt.integer(length))} tokens"
    )


def _software_phrase(workload: Inference) -> str:
    """Return `inference`, followed by the software if it is not Hugging Face transformers: `inference in vLLM`."""
    if workload.profile in (None, DEFAULT):
        return "inference"
    return f"inference in {SOFTWARE[workload.profile].title}"


def _has_default_cache(workload: Inference) -> bool:
    """Return whether the KV cache has the 16-bit format that the software uses by default."""
    return workload.kv_cache == serving_support(workload.profile).cache_names.get("bf16", "bf16")
