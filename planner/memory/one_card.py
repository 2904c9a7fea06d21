"""The snapshots of a run on one card that holds and does everything."""

from collections.abc import Callable
from functools import cache, partial

from planner.memory.phases import PhaseSnapshots
from planner.memory.software.vllm.setup import CardClass
from planner.models.architecture import Architecture
from planner.workload.training import Training
from planner.workload.workload import Inference

Run = Callable[[Architecture, Training | Inference], PhaseSnapshots]
"""From a network and a workload to their snapshots on one card."""


def one_card_timeline(architecture: Architecture, workload: Training | Inference, of_card: CardClass) -> PhaseSnapshots:
    """Return what is alive in each phase of `workload`, whose defaults are filled in, on a card of this class."""
    # Each is imported where it is used: a plan needs one of them, and all take a tenth of a command's time to import.
    if isinstance(workload, Training):
        from planner.memory.training.timeline import training_timeline

        return training_timeline(architecture, workload)
    if architecture.kind == "diffusion":
        from planner.memory.diffusion.timeline import diffusion_timeline

        return diffusion_timeline(architecture, workload)
    if workload.profile == "llama.cpp":
        from planner.memory.software.llama_cpp.timeline import llama_cpp_timeline

        return llama_cpp_timeline(architecture, workload)
    if workload.profile == "vllm":
        from planner.memory.software.vllm.timeline import vllm_timeline

        return vllm_timeline(architecture, workload, of_card)
    from planner.memory.inference.timeline import inference_timeline

    return inference_timeline(architecture, workload)


@cache
def one_card(of_card: CardClass) -> Run:
    """Return `one_card_timeline` for cards of this class: always the same function, so that caches may key on it."""
    return partial(one_card_timeline, of_card=of_card)
