"""The moments of a run on one card that holds and does everything."""

from collections.abc import Callable
from functools import cache, partial

from planner.memory.engines.vllm_setup import CardClass
from planner.memory.phases import Moments
from planner.models.architecture import Architecture
from planner.workload.training import Training
from planner.workload.workload import Inference

Run = Callable[[Architecture, Training | Inference], Moments]
"""From a network and a workload to their moments on one card."""


def one_card_moments(architecture: Architecture, workload: Training | Inference, of_card: CardClass) -> Moments:
    """Return what is alive in each phase of `workload`, whose defaults are filled in, on a card of this class."""
    # Each is imported where it is used: a plan needs one of them, and all take a tenth of a command's time to import.
    if isinstance(workload, Training):
        from planner.memory.training.moments import training_moments

        return training_moments(architecture, workload)
    if architecture.kind == "diffusion":
        from planner.memory.diffusion.moments import diffusion_moments

        return diffusion_moments(architecture, workload)
    if workload.profile == "llama.cpp":
        from planner.memory.engines.llama_cpp import llama_cpp_moments

        return llama_cpp_moments(architecture, workload)
    if workload.profile == "vllm":
        from planner.memory.engines.vllm import vllm_moments

        return vllm_moments(architecture, workload, of_card)
    from planner.memory.inference.moments import inference_moments

    return inference_moments(architecture, workload)


@cache
def one_card(of_card: CardClass) -> Run:
    """Return `one_card_moments` for cards of this class: always the same function, so that caches may key on it."""
    return partial(one_card_moments, of_card=of_card)
