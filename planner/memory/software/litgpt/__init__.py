"""Memory behavior of generating with LitGPT 0.3 to 0.4 (2024) on one card, sequentially and tensor-parallel."""

from collections.abc import Hashable, Iterator
from typing import Final

from planner.memory.parallel.pipeline import without_empty_stages
from planner.memory.phases import PhaseSnapshots
from planner.memory.software.base import ServingMemory
from planner.memory.software.litgpt.generation import generation_timeline
from planner.memory.software.transformers import ANY_VERSION
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.workload import Inference


class LitGptGeneration(ServingMemory):
    """Generating with LitGPT, one sequence at a time.

    **Source**: Lightning-AI/litgpt litgpt/generate/sequentially.py `partition` (only the blocks leave the first card)
    and tp.py `tensor_parallel` (attention and feed-forward blocks are divided, embedding and head are not).
    """

    split_note = "LitGPT gives each GPU the same number of blocks, and embedding and head to the first."
    spread = ANY_VERSION
    head_on_first_stage = True
    divides_vocabulary = False

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of generation: load, prefill, decoding."""
        return generation_timeline(architecture, workload)

    def notes(self, workload: Inference) -> Iterator[str]:
        """Yield a note if sequences wait."""
        if workload.batch > 1:
            yield f"LitGPT generates one sequence at a time: {workload.batch - 1:,} of {workload.batch:,} wait."

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of blocks on each card: the same on all, fewer on the last."""
        depth, cards = architecture.depth, workload.parallel.pipeline
        each = ceil_div(depth, cards)
        return without_empty_stages([max(min(each, depth - each * place), 0) for place in range(cards)])


SERVING: Final = LitGptGeneration()
