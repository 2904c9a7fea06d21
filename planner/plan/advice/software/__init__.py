"""Memory-saving changes of programs: one module for each, and all together."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from planner.models.architecture import Architecture
from planner.plan.advice.change import ChangeSequence, PlanChange
from planner.plan.advice.software import llama_cpp, transformers, vllm
from planner.workload.software.llama_cpp import LLAMA_CPP
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Inference

PROGRAM_CHANGES: Final[tuple[PlanChange, ...]] = (*transformers.CHANGES, *llama_cpp.CHANGES, *vllm.CHANGES)
_SEQUENCES: Final[Mapping[str, Callable[[Inference, Architecture], Iterator[ChangeSequence]]]] = {
    LLAMA_CPP.name: llama_cpp.change_sequences,
    VLLM.name: vllm.change_sequences,
}


def engine_sequences(workload: Inference, architecture: Architecture) -> Iterator[ChangeSequence]:
    """Yield the changes to settings of the program that runs `workload`, with the workload's defaults filled in."""
    program_sequences = _SEQUENCES.get(workload.profile or "")
    if program_sequences is not None:
        yield from program_sequences(workload, architecture)
