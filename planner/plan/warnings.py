"""Warnings about easily overlooked memory and speed effects of a plan, with its numbers and a source."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from planner.base import Spec
from planner.hardware.gpu import computes_bf16
from planner.hardware.software_support import SoftwareFact, software_of
from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult, PhaseName
from planner.memory.software import memory_of
from planner.models.architecture import Architecture, Attention, LatentAttention, Moe
from planner.plan.evaluate import Evaluation
from planner.units import GIB
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.workload import Inference, Training

WarningName = Literal[
    "loss-peak",
    "emulated-bf16",
    "resident-experts",
    "eager-scores",
    "fp32",
    "unscaled-fp16",
    "adapter-activations",
    "zero-3-buffers",
    "repeated-cache",
    "communicators",
    "uneven-stages",
    "software-ends",
]

NOTABLE_SHARE: Final = 0.1
"""Fraction of the plan's total memory below which an amount needs no warning."""
SAME_PLAN: Final = "the estimate for the same plan with this one change"


class PlanWarning(Spec):
    """A memory or speed effect of a plan that is easily overlooked; `name` is the kind of warning."""

    name: WarningName
    sentence: str
    source: str


def bytes_saved_by(evaluation: Evaluation, architecture: Architecture, **changes: object) -> int:
    """Return by how many bytes `changes` of workload fields reduce the peak memory."""
    return evaluation.memory.total_bytes - memory_with_changes(evaluation, architecture, **changes).total_bytes


def memory_with_changes(evaluation: Evaluation, architecture: Architecture, **changes: object) -> MemoryResult:
    """Return the memory estimate of the same plan with `changes` of the workload's fields."""
    plan = evaluation.plan
    return estimate_memory(
        architecture,
        evaluation.resolved_workload.evolve(**changes),
        evaluation.gpu,
        count=plan.count,
        corrections=plan.corrections,
    )


def _gib_text(size: int) -> str:
    """Return a size in bytes with three significant digits: `6.85 GiB`, `12.3 GiB`, `124 GiB`."""
    gib = size / GIB
    return f"{gib:,.{2 if gib < 10 else 1 if gib < 100 else 0}f} GiB"


_HEADS: Final = "vLLM QKVParallelLinear, Megatron-LM: a key-value head is never split, and a latent cache has no heads"
_NCCL: Final = "torch.cuda.max_memory_allocated counts PyTorch's allocator only; NCCL allocates from the driver"
_MOMENTS: Final[dict[PhaseName, str]] = {
    "forward": "in the forward pass",
    "loss": "at the loss",
    "backward": "in the backward pass",
    "step": "in the optimizer step",
}
_STAGES: Final = "the estimated memory of each pipeline stage, as listed by GPU"


def parallelism_warnings(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Yield warnings about parallelism: ZeRO-3 buffers, repeated caches, NCCL buffers, and uneven stages."""
    yield from _warn_zero_3_buffers(evaluation, architecture)
    yield from _warn_repeated_cache(evaluation, architecture)
    yield from _warn_nccl_buffers(evaluation, architecture)
    yield from _warn_uneven_stages(evaluation)


def _warn_zero_3_buffers(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Warn if ZeRO-3's gathering buffers are larger than the parameters that it shards."""
    workload = evaluation.resolved_workload
    if not isinstance(workload, Training) or workload.gpus:
        return
    parallel = workload.parallel
    if parallel.zero != 3 or parallel.offload in ("parameters", "nvme"):
        return
    more = bytes_saved_by(evaluation, architecture, parallel=parallel.evolve(zero=2))
    if more > 0:
        sentence = (
            f"ZeRO-2 needs {_gib_text(more)} less: the buffers in which ZeRO-3 gathers parameters are larger than the "
            "parameters that it shards."
        )
        yield PlanWarning(name="zero-3-buffers", sentence=sentence, source=SAME_PLAN)


def _warn_repeated_cache(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Warn if tensor parallelism repeats a part of the KV cache on each GPU."""
    workload = evaluation.workload
    cards, cache = workload.parallel.tensor, evaluation.memory.term("kv_cache")
    if not isinstance(workload, Inference) or cache is None or cards == 1:
        return
    if cache.bytes < NOTABLE_SHARE * evaluation.memory.total_bytes:
        return
    mixers = [group.layer.mixer for group in architecture.main.groups]
    heads = max([mixer.kv_heads for mixer in mixers if isinstance(mixer, Attention)], default=cards)
    latent = any(isinstance(mixer, LatentAttention) for mixer in mixers)
    if not latent and heads >= cards:
        return
    why = "the latent cache is on every GPU" if latent else f"{cards:,} GPUs share {heads:,} key-value heads"
    share = "all" if latent else f"{100 / heads:.0f} %"
    sentence = f"Tensor parallelism does not divide the KV cache by {cards:,}: {why}, and each GPU holds {share} of it."
    yield PlanWarning(name="repeated-cache", sentence=sentence, source=_HEADS)


def _warn_nccl_buffers(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    memory = evaluation.memory
    program = memory_of(architecture, evaluation.workload)
    parts = program.communicators(evaluation.workload) if memory.term("communication") else ()
    nccl_bytes = sum(part.bytes for part in parts)
    if nccl_bytes >= NOTABLE_SHARE * memory.total_bytes:
        groups = "1 communicator" if len(parts) == 1 else f"{len(parts)} communicators"
        sentence = (
            f"NCCL uses about {_gib_text(nccl_bytes)} per GPU for {groups}: nvidia-smi includes it, "
            "PyTorch's counters do not."
        )
        yield PlanWarning(name="communicators", sentence=sentence, source=_NCCL)


def _warn_uneven_stages(evaluation: Evaluation) -> Iterator[PlanWarning]:
    rows = [row for row in evaluation.memory.per_gpu if row.stage is not None]
    if len(rows) < 2 or len({row.gpu for row in rows}) > 1:
        return
    fullest, emptiest = (pick(rows, key=lambda row: row.total_bytes) for pick in (max, min))
    if fullest.total_bytes < (1 + 2 * NOTABLE_SHARE) * emptiest.total_bytes:
        return
    sentence = (
        f"Stage {(fullest.stage or 0) + 1} needs {_gib_text(fullest.total_bytes - emptiest.total_bytes)} more than "
        f"stage {(emptiest.stage or 0) + 1}: set the layers per stage (pipeline_layers) to balance them."
    )
    yield PlanWarning(name="uneven-stages", sentence=sentence, source=_STAGES)


def software_warnings(evaluation: Evaluation, facts: Iterable[SoftwareFact]) -> Iterator[PlanWarning]:
    """Yield a warning if newer PyTorch versions no longer support the plan's GPU and the program needs PyTorch."""
    gpu, workload = evaluation.gpu, evaluation.workload
    if gpu is None or "pytorch" not in SOFTWARE[workload.profile or DEFAULT].needs:
        return
    pytorch = next(each for each in software_of(gpu, facts) if each.feature == "pytorch")
    if pytorch.newest is not None:
        sentence = f"PyTorch {pytorch.newest} is the newest version known to run on a {gpu.name}: {pytorch.reason}."
        yield PlanWarning(name="software-ends", sentence=sentence, source=pytorch.source)


_LOSS: Final = "the memory terms at the peak; transformers' loss saves fp32 copies of the logits for its backward pass"
_BF16: Final = "CUDA C++ Programming Guide: native bf16 arithmetic from compute capability 8.0"
_EXPERTS: Final = "the router of a mixture of experts may choose any expert for any token"
_ADAPTERS: Final = (
    "PEFT: each adapter saves its own input in addition to what frozen layers save; the same plan estimated"
)
_FP16: Final = "PyTorch automatic mixed precision: GradScaler refuses to unscale gradients in fp16"


def warnings_about(evaluation: Evaluation, software: Iterable[SoftwareFact] = ()) -> tuple[PlanWarning, ...]:
    """Return the warnings about an evaluated plan; none for a traced module.

    The catalog's `software` facts add a warning about versions that have dropped the GPU.
    """
    if evaluation.architecture is None:
        return ()
    return (*_model_warnings(evaluation, evaluation.architecture), *software_warnings(evaluation, software))


def _model_warnings(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Yield warnings about the model, its precision, attention, loss and adapters."""
    yield from _warn_loss_peak(evaluation, architecture)
    yield from _warn_emulated_bf16(evaluation)
    yield from _warn_resident_experts(evaluation, architecture)
    yield from _warn_eager_scores(evaluation, architecture)
    yield from _warn_full_precision(evaluation, architecture)
    yield from _warn_adapter_activations(evaluation, architecture)
    yield from parallelism_warnings(evaluation, architecture)
    if evaluation.workload.task == "training" and evaluation.workload.compute == "fp16":
        sentence = (
            "Pure fp16 training cannot use loss scaling: updates below 6e-8 are lost. "
            "fp16 autocast keeps the parameters in fp32."
        )
        yield PlanWarning(name="unscaled-fp16", sentence=sentence, source=_FP16)


def _warn_loss_peak(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Warn if logits of a large vocabulary set the peak."""
    memory = evaluation.memory
    logits = memory.term("logits")
    if memory.peak_phase != "loss" or logits is None or logits.bytes < NOTABLE_SHARE * memory.total_bytes:
        return
    vocabulary = architecture.vocabulary or 0
    sentence = (
        f"The loss sets the peak: with a vocabulary of {vocabulary:,} its logits take {_gib_text(logits.bytes)}, "
        f"{100 * logits.bytes / memory.total_bytes:.0f} % of the total."
    )
    yield PlanWarning(name="loss-peak", sentence=sentence, source=_LOSS)


def _warn_emulated_bf16(evaluation: Evaluation) -> Iterator[PlanWarning]:
    gpu, compute = evaluation.gpu, evaluation.workload.compute
    if gpu is None or computes_bf16(gpu) or compute not in ("bf16", "amp-bf16"):
        return
    other = compute.replace("bf16", "fp16")
    sentence = (
        f"{gpu.name} (compute capability {gpu.compute_capability}) has no native bf16 and emulates it "
        f"slowly; {other} runs natively."
    )
    yield PlanWarning(name="emulated-bf16", sentence=sentence, source=_BF16)


def _warn_resident_experts(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Warn that all experts are in memory, although each token uses only a few."""
    blocks = (group.layer.feed_forward for stack in architecture.stacks for group in stack.groups)
    routed = next((block for block in blocks if isinstance(block, Moe)), None)  # all layers have as many experts
    total, active = evaluation.parameters, evaluation.active_parameters
    if routed is None or total - active < NOTABLE_SHARE * total:
        return
    sentence = (
        f"All {routed.experts:,} experts of a layer are in memory, although each token uses only {routed.top_k:,}: "
        f"{total / 1e9:.3g} B parameters determine the memory, {active / 1e9:.3g} B the speed."
    )
    yield PlanWarning(name="resident-experts", sentence=sentence, source=_EXPERTS)


def _warn_eager_scores(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    if evaluation.workload.attention != "eager":
        return
    saved = bytes_saved_by(evaluation, architecture, attention="sdpa")
    if saved >= NOTABLE_SHARE * evaluation.memory.total_bytes:
        sentence = (
            "Eager attention stores the full score matrix, which grows with the square of the length: "
            f"SDPA needs {_gib_text(saved)} less."
        )
        yield PlanWarning(name="eager-scores", sentence=sentence, source=SAME_PLAN)


def _warn_full_precision(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Warn if weights or computation are in fp32, which few models need."""
    workload = evaluation.workload
    half = "bf16" if evaluation.gpu is None or computes_bf16(evaluation.gpu) else "fp16"
    if isinstance(workload, Training):
        if workload.compute not in ("fp32", "tf32"):
            return
        subject, name, changes = "All computation is", f"{half} autocast", {"compute": f"amp-{half}"}
    elif workload.weights == "fp32":
        subject, name, changes = "The weights are", half, {"weights": half, "compute": half}
    else:
        return
    saved = bytes_saved_by(evaluation, architecture, **changes)
    if saved >= NOTABLE_SHARE * evaluation.memory.total_bytes:
        sentence = f"{subject} in fp32, which few models need: {name} needs {_gib_text(saved)} less."
        yield PlanWarning(name="fp32", sentence=sentence, source=SAME_PLAN)


def _warn_adapter_activations(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Warn if training adapters saves more activations for the backward pass than full fine-tuning."""
    workload = evaluation.workload
    if not isinstance(workload, Training) or not workload.adapts:
        return
    plain = workload.weights if workload.weights in ("fp32", "fp16") else "bf16"
    # Activations do not depend on the optimizer, and not every optimizer supports 16-bit parameters.
    same: dict[str, object] = {
        "optimizer": "adamw",
        "optimizer_step": None,
        "alignment": workload.alignment.evolve(reference=None),
    }
    changes = {"method": "full", "lora": None, "weights": plain, "compute": plain}
    whole = memory_with_changes(evaluation, architecture, **changes, **same)
    (saved_bytes, phase), (full_bytes, _) = _most_activations(evaluation.memory), _most_activations(whole)
    if saved_bytes > full_bytes:
        sentence = (
            f"Adapters shrink the optimizer states, not the activations, which reach {_gib_text(saved_bytes)} "
            f"{_MOMENTS[phase]} ({_gib_text(full_bytes)} in full fine-tuning in {plain})."
        )
        yield PlanWarning(name="adapter-activations", sentence=sentence, source=_ADAPTERS)


def _most_activations(memory: MemoryResult) -> tuple[int, PhaseName]:
    """Return the largest activation memory of any phase of a training step in bytes, and the phase."""
    phases = [phase for phase in memory.phases if phase.name in _MOMENTS]
    return max(
        ((part.bytes, phase.name) for phase in phases for part in phase.shares if part.name == "activations"),
        default=(0, memory.peak_phase),
    )
