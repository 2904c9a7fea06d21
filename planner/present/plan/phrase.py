"""Plans, workloads and trace requests as phrases, and models that share cards as sentences."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from planner.dtypes import SCHEMES
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.plan.parallel import cards_phrase, parallelism_phrase
from planner.workload.alignment import RolloutEngine
from planner.workload.choices import Method
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.software.registry import DEFAULT, SOFTWARE, serving_support
from planner.workload.workload import Inference, Training, Workload

if TYPE_CHECKING:
    from planner.plan.shared_gpus import Neighbour
    from planner.trace.request import Input, TraceRequest


def request_phrase(request: "TraceRequest") -> str:
    """Return a trace request as a phrase: `training, AdamW, batch 8, bf16 autocast, checkpointing`."""
    return ", ".join(
        (request.task, *_training_parts(request), *_size_parts(request), *_format_parts(request), *_rank_parts(request))
    )


def _training_parts(request: "TraceRequest") -> list[str]:
    """Return the optimizer, adapters, accumulation and checkpointing of a trace request as phrases."""
    parts = [f"custom step {request.step.rpartition(':')[2]}"] if request.step else []
    if request.task == "training" and not request.step and not request.target.is_script:
        parts.append(request.optimizer)
    if request.lora is not None:
        parts.append(f"LoRA of rank {request.lora.rank}")
    if request.gradient_accumulation > 1:
        parts.append(f"{fmt.integer(request.gradient_accumulation)} accumulation steps")
    if request.checkpointing != "none":
        parts.append("checkpointing" if request.checkpointing == "full" else "selective checkpointing")
    return parts


def _size_parts(request: "TraceRequest") -> list[str]:
    """Return the batch size and the token counts of a trace request as phrases."""
    parts = _shape_part(request.inputs) if request.batch is None else [f"batch {fmt.integer(request.batch)}"]
    if request.sequence_length is not None:
        parts.append(f"{fmt.integer(request.sequence_length)} tokens")
    if request.decode_tokens:
        parts.append(fmt.plural(request.decode_tokens, "output token"))
    return parts


def _shape_part(inputs: "tuple[Input, ...]") -> list[str]:
    """Return the shape of the first tensor input as text, if there is one: `8 × 3 × 224 × 224`."""
    shapes = (given.value.shape for given in inputs if given.value.kind == "tensor" and given.value.shape)
    return [" × ".join(map(fmt.integer, shape)) for shape in islice(shapes, 1)]


def _format_parts(request: "TraceRequest") -> list[str]:
    """Return the parameters' dtype and autocast of a trace request as phrases."""
    return [
        *([request.dtype] if request.dtype else []),
        *([f"{request.autocast} autocast"] if request.autocast else []),
    ]


def _rank_parts(request: "TraceRequest") -> list[str]:
    """Return the data-parallel strategy and ranks of a trace request as a phrase, if there are several ranks."""
    parallel = request.parallel
    return [f"{parallel.strategy.upper()} on {fmt.plural(parallel.ranks, 'rank')}"] if parallel.ranks > 1 else []


def plan_phrase(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return a plan in one line: `model · workload · 2 × RTX 4090, FSDP`, with every default filled in."""
    parts = (evaluation.plan.model.id, work_phrase(evaluation), hardware_phrase(evaluation, catalog))
    return " · ".join(part for part in parts if part)


def hardware_phrase(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return the plan's cards and parallelism, `8 × H100 SXM, FSDP`; empty without any."""
    plan = evaluation.plan
    name = evaluation.gpu.name if evaluation.gpu else None
    cards = cards_phrase(plan.workload, plan.count, name, catalog.hardware)
    sharing = "" if evaluation.traced else parallelism_phrase(evaluation.workload)
    if sharing and not cards:
        cards = fmt.plural(plan.count, "GPU")
    return ", ".join(part for part in (cards, sharing) if part)


def work_phrase(evaluation: Evaluation) -> str:
    """Return the plan's workload: `inference, 1 × 4,096 tokens, bf16` or `traced training, AdamW, batch 8`."""
    if evaluation.traced is not None:
        return f"traced {request_phrase(evaluation.traced.request)}"
    corrected = ", corrected by a log" if evaluation.applied_corrections else ""
    return f"{workload_phrase(evaluation.workload)}{corrected}"


OPTIMIZER_TITLES: Final = {name: kind.title for name, kind in OPTIMIZERS.items()}
_ENGINES: Final[dict[RolloutEngine, str]] = {
    "same-cards": "vLLM beside it",
    "same-cards-asleep": "vLLM asleep beside it",
    "other-cards": "vLLM on other GPUs",
}
_DECODING: Final = (("decoded image by image", "vae_slicing"), ("decoded in tiles", "vae_tiling"))
METHOD_TITLES: Final[dict[Method, str]] = {"full": "full fine-tuning", "lora": "LoRA", "qlora": "QLoRA"}


def compute_phrase(compute: str) -> str:
    """Return a compute precision as a phrase: `bf16 autocast` for `amp-bf16`, other names unchanged."""
    return f"{compute.removeprefix('amp-')} autocast" if compute.startswith("amp-") else compute


def workload_phrase(workload: Workload) -> str:
    """Return a workload as a phrase, such as `full fine-tuning, AdamW, 4 × 2,048 tokens, bf16 autocast`."""
    if isinstance(workload, Training):
        return ", ".join(_training_workload_parts(workload))
    return ", ".join(_inference_parts(workload))


def _training_workload_parts(workload: Training) -> list[str]:
    """Return the parts of the phrase for a training workload."""
    tokens = _tokens_text(workload.micro_batch, workload.sequence_length)
    if workload.precomputed is not None:
        tokens = _pixels_text(workload.micro_batch, workload.image_size or (0, 0))
    aligned = workload.alignment.method
    method = METHOD_TITLES[workload.method]
    if aligned != "none":
        method = f"{aligned.upper()} with {method}"
        tokens = f"{tokens} in pairs" if aligned == "dpo" else tokens
    parts = [method, OPTIMIZER_TITLES[workload.optimizer], tokens]
    if aligned == "grpo":
        parts.append(f"groups of {fmt.integer(workload.alignment.group)}")
    if workload.alignment.generates and workload.alignment.engine != "none":
        parts.append(_ENGINES[workload.alignment.engine])
    if workload.images:
        parts.append(f"{fmt.plural(workload.images, 'image')} per sequence")
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
        _weights_phrase(workload.weights),
    ]
    if workload.images:
        parts.append(f"{fmt.plural(workload.images, 'image')} per prompt")
    if not _has_default_cache(workload):
        parts.append(f"KV cache in {workload.kv_cache}")
    return parts


def _weights_phrase(weights: str | None) -> str:
    """Return the weight format by its name, or in words where the name is only ours: `FP8 (blocks of 128)`."""
    if weights is None:
        return "weights as stored"
    scheme = SCHEMES.get(weights)
    return weights if scheme is None or scheme.family != "float8" else scheme.title


def _image_parts(workload: Inference) -> list[str]:
    """Return the parts of the phrase for a diffusion pipeline's workload."""
    settings = workload.diffusion
    parts = [
        "images",
        _pixels_text(workload.batch, workload.image_size or (0, 0)),
        workload.weights or workload.compute,
    ]
    parts += ["text encoders in " + settings.text_weights] if settings.text_weights not in (None, parts[-1]) else []
    parts += [] if settings.guidance else ["one pass per step"]
    parts += [f"{settings.offload} offload"] if settings.offload != "none" else []
    return parts + [what for what, on in _DECODING if getattr(settings, on)]


def _pixels_text(images: int, size: tuple[int, int]) -> str:
    """Return the number and size of images: `4 × 1,024 × 1,024 pixels`."""
    return f"{fmt.count_of(images, fmt.integer(size[0]))} × {fmt.integer(size[1])} pixels"


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


NOT_ISOLATED = (
    "GPUs that are shared by time slicing isolate neither memory nor time: nothing keeps a program within its part, "
    "and kernels take turns, so that each model is slower than the speeds here, which are of a GPU alone. MIG slices "
    "isolate both."
)


def beside_sentences(neighbours: "Sequence[Neighbour]") -> Iterator[str]:
    """Yield what each neighbour holds of a card, and what sharing a card does not guarantee."""
    for each in neighbours:
        title = SOFTWARE[each.program].title if each.program in SOFTWARE else each.program
        verdict = ", which does not fit in what is left" if each.verdict == "does-not-fit" else ""
        yield (
            f"Beside it on each GPU: {each.model} in {title}, {fmt.size(each.held_bytes)} "
            f"({fmt.percent(each.fraction)} of it){verdict}."
        )
    yield "Start them one after the other, each once the one before answers: engines measure what is free."
    yield NOT_ISOLATED
