"""What is true of a plan and easily overlooked: each a sentence with the plan's own numbers, and its source."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from planner.base import Spec
from planner.hardware.gpu import computes_bf16
from planner.hardware.software import SoftwareFact, software_of
from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
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
"""The share of everything below which a fact about bytes is no surprise."""
SAME_PLAN: Final = "the estimate of the same plan with that one change"


class PlanWarning(Spec):
    """A fact about a plan that surprises people; `name` tells the kinds apart."""

    name: WarningName
    sentence: str
    source: str


def bytes_saved_by(evaluation: Evaluation, architecture: Architecture, **changes: object) -> int:
    """Return by how much the peak falls with `changes` of the workload."""
    return evaluation.memory.total_bytes - estimated_with(evaluation, architecture, **changes).total_bytes


def estimated_with(evaluation: Evaluation, architecture: Architecture, **changes: object) -> MemoryResult:
    """Return the estimate of the same plan with `changes` of the workload."""
    plan = evaluation.plan
    return estimate_memory(
        architecture,
        plan.workload.evolve(**changes),
        evaluation.gpu,
        count=plan.count,
        corrections=plan.corrections,
    )


def _gib(size: int) -> str:
    """Return `size` bytes as `12.3 GiB`."""
    return f"{size / GIB:,.1f} GiB"


_HEADS: Final = "vLLM QKVParallelLinear, Megatron-LM: a head of keys is not divided, and a latent has none"
_NCCL: Final = "torch.cuda.max_memory_allocated counts what PyTorch's allocator hands out; NCCL asks the driver itself"
_STAGES: Final = "the table of cards: the fullest stage decides"


def sharing_warnings(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    """Yield what surprises people of several cards: buffers of ZeRO-3, repeated caches, NCCL, and uneven stages."""
    yield from _zero_3_buffers(evaluation, architecture)
    yield from _repeated_cache(evaluation, architecture)
    yield from _communicators(evaluation, architecture)
    yield from _uneven_stages(evaluation)


def _zero_3_buffers(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    workload = evaluation.plan.workload
    if not isinstance(workload, Training) or workload.gpus:
        return
    parallel = workload.parallel
    if parallel.zero != 3 or parallel.offload in ("parameters", "nvme"):
        return
    more = bytes_saved_by(evaluation, architecture, parallel=parallel.evolve(zero=2))
    if more > 0:
        sentence = (
            f"ZeRO-2 needs {_gib(more)} less: the buffers in which ZeRO-3 gathers parameters are larger than the "
            "parameters that it shares."
        )
        yield PlanWarning(name="zero-3-buffers", sentence=sentence, source=SAME_PLAN)


def _repeated_cache(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
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
    why = "its latent is on every card" if latent else f"{cards:,} cards share {heads:,} heads of keys and values"
    share = "whole" if latent else f"{100 / heads:.0f} %"
    sentence = f"Sharing matrices does not divide the cache by {cards:,}: {why}, and each card holds {share} of it."
    yield PlanWarning(name="repeated-cache", sentence=sentence, source=_HEADS)


def _communicators(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    memory = evaluation.memory
    program = memory_of(architecture, evaluation.workload)
    parts = program.communicators(evaluation.workload) if memory.term("communication") else ()
    held = sum(part.bytes for part in parts)
    if held >= NOTABLE_SHARE * memory.total_bytes:
        groups = "1 group of cards" if len(parts) == 1 else f"{len(parts)} groups of cards"
        sentence = (
            f"NCCL holds about {_gib(held)} on each card for {groups}: nvidia-smi shows it, PyTorch's counters do not."
        )
        yield PlanWarning(name="communicators", sentence=sentence, source=_NCCL)


def _uneven_stages(evaluation: Evaluation) -> Iterator[PlanWarning]:
    rows = [row for row in evaluation.memory.per_gpu if row.stage is not None]
    if len(rows) < 2 or len({row.gpu for row in rows}) > 1:
        return
    fullest, emptiest = (pick(rows, key=lambda row: row.total_bytes) for pick in (max, min))
    if fullest.total_bytes < (1 + 2 * NOTABLE_SHARE) * emptiest.total_bytes:
        return
    sentence = (
        f"Stage {(fullest.stage or 0) + 1} needs {_gib(fullest.total_bytes - emptiest.total_bytes)} more than stage "
        f"{(emptiest.stage or 0) + 1}: pipeline_layers moves layers from one to the other."
    )
    yield PlanWarning(name="uneven-stages", sentence=sentence, source=_STAGES)


def software_warnings(evaluation: Evaluation, facts: Iterable[SoftwareFact]) -> Iterator[PlanWarning]:
    """Yield that newer PyTorch has no builds for the plan's card, where the program needs it."""
    gpu, workload = evaluation.gpu, evaluation.workload
    if gpu is None or "pytorch" not in SOFTWARE[workload.profile or DEFAULT].needs:
        return
    pytorch = next(each for each in software_of(gpu, facts) if each.feature == "pytorch")
    if pytorch.newest is not None:
        sentence = f"PyTorch {pytorch.newest} is the newest that is known to run on a {gpu.name}: {pytorch.reason}."
        yield PlanWarning(name="software-ends", sentence=sentence, source=pytorch.source)


_LOSS: Final = "the terms of the peak; transformers' loss keeps fp32 copies of the logits for its derivative"
_BF16: Final = "CUDA C++ Programming Guide: arithmetic in bf16 from compute capability 8.0 on"
_EXPERTS: Final = "a router may choose any expert for any token"
_ADAPTERS: Final = "PEFT: each adapter keeps its own input, beside what the frozen layers keep; the same plan estimated"
_FP16: Final = "PyTorch automatic mixed precision: GradScaler refuses to unscale gradients in fp16"


def warnings_about(evaluation: Evaluation, software: Iterable[SoftwareFact] = ()) -> tuple[PlanWarning, ...]:
    """Return what is easily overlooked about a plan; nothing about a traced one, which has no formula to look into.

    With the catalog's facts about `software`, also what its newer versions leave behind.
    """
    if evaluation.architecture is None:
        return ()
    return (*_warnings(evaluation, evaluation.architecture), *software_warnings(evaluation, software))


def _warnings(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    yield from _loss_peak(evaluation, architecture)
    yield from _emulated_bf16(evaluation)
    yield from _resident_experts(evaluation, architecture)
    yield from _eager_scores(evaluation, architecture)
    yield from _full_precision(evaluation, architecture)
    yield from _adapter_activations(evaluation, architecture)
    yield from sharing_warnings(evaluation, architecture)
    if evaluation.workload.task == "training" and evaluation.workload.compute == "fp16":
        sentence = (
            "Parameters and gradients in fp16 cannot be scaled: updates below 6e-8 are lost. "
            "fp16 autocast keeps the parameters in fp32."
        )
        yield PlanWarning(name="unscaled-fp16", sentence=sentence, source=_FP16)


def _loss_peak(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    memory = evaluation.memory
    logits = memory.term("logits")
    if memory.peak_phase != "loss" or logits is None or logits.bytes < NOTABLE_SHARE * memory.total_bytes:
        return
    vocabulary = architecture.vocabulary or 0
    sentence = (
        f"The loss is the peak: with a vocabulary of {vocabulary:,} its logits take {_gib(logits.bytes)}, "
        f"{100 * logits.bytes / memory.total_bytes:.0f} % of everything."
    )
    yield PlanWarning(name="loss-peak", sentence=sentence, source=_LOSS)


def _emulated_bf16(evaluation: Evaluation) -> Iterator[PlanWarning]:
    gpu, compute = evaluation.gpu, evaluation.workload.compute
    if gpu is None or computes_bf16(gpu) or compute not in ("bf16", "amp-bf16"):
        return
    other = compute.replace("bf16", "fp16")
    sentence = (
        f"{gpu.name} (compute capability {gpu.compute_capability}) does not compute bf16 itself, but emulates it "
        f"slowly; {other} runs on it as it is."
    )
    yield PlanWarning(name="emulated-bf16", sentence=sentence, source=_BF16)


def _resident_experts(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    blocks = (group.layer.feed_forward for stack in architecture.stacks for group in stack.groups)
    routed = [(block.experts, block.top_k) for block in blocks if isinstance(block, Moe)]
    total, active = evaluation.parameters, evaluation.active_parameters
    if not routed or total - active < NOTABLE_SHARE * total:
        return
    experts, visited = max(routed)
    sentence = (
        f"All {experts:,} experts of a layer are in memory, though a token visits {visited:,}: "
        f"{total / 1e9:.3g} B parameters decide the memory, {active / 1e9:.3g} B the speed."
    )
    yield PlanWarning(name="resident-experts", sentence=sentence, source=_EXPERTS)


def _eager_scores(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    if evaluation.workload.attention != "eager":
        return
    saved = bytes_saved_by(evaluation, architecture, attention="sdpa")
    if saved >= NOTABLE_SHARE * evaluation.memory.total_bytes:
        sentence = (
            "Eager attention holds the scores of every pair of tokens, which grow with the square of the length: "
            f"SDPA needs {_gib(saved)} less."
        )
        yield PlanWarning(name="eager-scores", sentence=sentence, source=SAME_PLAN)


def _full_precision(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    workload = evaluation.workload
    half = "bf16" if evaluation.gpu is None or computes_bf16(evaluation.gpu) else "fp16"
    if isinstance(workload, Training):
        if workload.compute not in ("fp32", "tf32"):
            return
        what, name, changes = "Everything is computed", f"{half} autocast", {"compute": f"amp-{half}"}
    elif workload.weights == "fp32":
        what, name, changes = "The weights are kept", half, {"weights": half, "compute": half}
    else:
        return
    saved = bytes_saved_by(evaluation, architecture, **changes)
    if saved >= NOTABLE_SHARE * evaluation.memory.total_bytes:
        sentence = f"{what} in fp32, which few models need: {name} needs {_gib(saved)} less."
        yield PlanWarning(name="fp32", sentence=sentence, source=SAME_PLAN)


def _adapter_activations(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    workload = evaluation.workload
    if not isinstance(workload, Training) or not workload.adapts:
        return
    plain = workload.weights if workload.weights in ("fp32", "fp16") else "bf16"
    # Activations are the same under any optimizer, and not every one takes 16-bit parameters.
    same: dict[str, object] = {"optimizer": "adamw", "optimizer_step": None}
    changes = {"method": "full", "lora": None, "weights": plain, "compute": plain}
    whole = estimated_with(evaluation, architecture, **changes, **same)
    kept, full = _kept_activations(evaluation.memory), _kept_activations(whole)
    if kept > full:
        sentence = (
            f"Adapters save states, not activations: {_gib(kept)} of them are kept for the backward pass, "
            f"{_gib(full)} if the whole model were trained in {plain}."
        )
        yield PlanWarning(name="adapter-activations", sentence=sentence, source=_ADAPTERS)


def _kept_activations(memory: MemoryResult) -> int:
    """Return the most bytes of activations in any phase."""
    return max(
        (part.bytes for phase in memory.phases for part in phase.shares if part.name == "activations"), default=0
    )
