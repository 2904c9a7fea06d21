"""What NCCL holds on a card for each group of cards that it belongs to."""

from functools import lru_cache
from typing import Final

from planner.memory.result import Part
from planner.units import GIB, MIB
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

_NCCL_SOURCE: Final = "NVIDIA/nccl#964: 544 MB for 2 cards, 688 MB for more, on A100 with NVLink"
_VLLM_SOURCE: Final = "llm-d-planner logs of vLLM on H100: 0.25 GiB beside PyTorch on 1 card, 2.07 on 2, 2.13 on 4"
_PAIR: Final = 544 * 10**6
_MORE: Final = 688 * 10**6
_FURTHER_CHANNELS: Final = 512 * MIB
_VLLM_OF_TWO: Final = int((2.07 - 0.25) * GIB)
_VLLM_OF_MORE: Final = int((2.13 - 0.25) * GIB)


def communicators(workload: Training | Inference) -> tuple[Part, ...]:
    """Return what the communicators of `workload` hold on each card, outside the framework's allocator.

    **Formula**: 544 MB for each group of two cards, 688 MB for each larger one; for vLLM what it was seen to hold
    beside PyTorch.

    **Assumes** links and channels as on an A100 server: other cards hold from nothing to 512 MiB more for each group.
    llama.cpp copies from card to card, replicas that answer know nothing of each other.
    """
    return _communicators(workload.parallel, workload.task, workload.profile)


@lru_cache(maxsize=256)
def _communicators(parallel: Parallel, task: str, profile: str | None) -> tuple[Part, ...]:
    groups = _training_groups(parallel) if task == "training" else _inference_groups(parallel, profile)
    of_two, of_more, source = _PAIR, _MORE, _NCCL_SOURCE
    if profile == "vllm":
        of_two, of_more, source = _VLLM_OF_TWO, _VLLM_OF_MORE, _VLLM_SOURCE
    return tuple(_part(name, size, of_two, of_more, source) for name, size in groups.items() if size > 1)


def most_bytes(parts: tuple[Part, ...]) -> int:
    """Return the most that `parts` may come to."""
    return sum([part.bytes + _FURTHER_CHANNELS for part in parts])


def _inference_groups(parallel: Parallel, profile: str | None) -> dict[str, int]:
    """Return the groups that a card which answers belongs to, with their cards."""
    if profile == "llama.cpp":
        return {}
    return {"tensor": parallel.tensor, "expert": parallel.expert, "context": parallel.context}


def _training_groups(parallel: Parallel) -> dict[str, int]:
    return {
        "data": parallel.state_shards,
        "tensor": parallel.tensor,
        "pipeline": parallel.pipeline,
        "context": parallel.context,
        "expert": parallel.expert,
    }


def _part(name: str, size: int, of_two: int, of_more: int, source: str) -> Part:
    held = of_two if size == 2 else of_more
    return Part(name=f"NCCL communicator, {size:,} cards ({name})", bytes=held, formula=f"{held:,}", source=source)
