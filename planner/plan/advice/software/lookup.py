"""Changes and ladders of all programs."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from planner.models.architecture import Architecture
from planner.plan.advice.change import Ladder, PlanChange
from planner.plan.advice.software import llama_cpp, transformers, vllm
from planner.workload.software.llama_cpp import LLAMA_CPP
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Inference

PROGRAM_CHANGES: Final[tuple[PlanChange, ...]] = (*transformers.CHANGES, *llama_cpp.CHANGES, *vllm.CHANGES)
_LADDERS: Final[Mapping[str, Callable[[Inference, Architecture], Iterator[Ladder]]]] = {
    LLAMA_CPP.name: llama_cpp.ladders,
    VLLM.name: vllm.ladders,
}


def engine_ladders(workload: Inference, architecture: Architecture) -> Iterator[Ladder]:
    """Yield the ladders of the program that runs `workload`, whose defaults are filled in."""
    found = _LADDERS.get(workload.profile or "")
    if found is not None:
        yield from found(workload, architecture)
