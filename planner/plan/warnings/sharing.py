"""What is easily overlooked where several cards share a network."""

from collections.abc import Iterator
from typing import Final

from planner.memory.software import memory_of
from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.plan.evaluate import Evaluation
from planner.plan.warnings.warning import SAME_PLAN, WORTH_SAYING, PlanWarning, gib, saved_by
from planner.workload.workload import Inference, Training

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
    more = saved_by(evaluation, architecture, parallel=parallel.evolve(zero=2))
    if more > 0:
        sentence = (
            f"ZeRO-2 needs {gib(more)} less: the buffers in which ZeRO-3 gathers parameters are larger than the "
            "parameters that it shares."
        )
        yield PlanWarning(name="zero-3-buffers", sentence=sentence, source=SAME_PLAN)


def _repeated_cache(evaluation: Evaluation, architecture: Architecture) -> Iterator[PlanWarning]:
    workload = evaluation.workload
    cards, cache = workload.parallel.tensor, evaluation.memory.term("kv_cache")
    if not isinstance(workload, Inference) or cache is None or cards == 1:
        return
    if cache.bytes < WORTH_SAYING * evaluation.memory.total_bytes:
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
    if held >= WORTH_SAYING * memory.total_bytes:
        groups = "1 group of cards" if len(parts) == 1 else f"{len(parts)} groups of cards"
        sentence = (
            f"NCCL holds about {gib(held)} on each card for {groups}: nvidia-smi shows it, PyTorch's counters do not."
        )
        yield PlanWarning(name="communicators", sentence=sentence, source=_NCCL)


def _uneven_stages(evaluation: Evaluation) -> Iterator[PlanWarning]:
    rows = [row for row in evaluation.memory.per_gpu if row.stage is not None]
    if len(rows) < 2 or len({row.gpu for row in rows}) > 1:
        return
    fullest, emptiest = (pick(rows, key=lambda row: row.total_bytes) for pick in (max, min))
    if fullest.total_bytes < (1 + 2 * WORTH_SAYING) * emptiest.total_bytes:
        return
    sentence = (
        f"Stage {(fullest.stage or 0) + 1} needs {gib(fullest.total_bytes - emptiest.total_bytes)} more than stage "
        f"{(emptiest.stage or 0) + 1}: pipeline_layers moves layers from one to the other."
    )
    yield PlanWarning(name="uneven-stages", sentence=sentence, source=_STAGES)
