"""The moments of a run on one card that holds and does everything."""

from collections.abc import Callable
from functools import cache, partial

from planner.memory.engines.llama_cpp import llama_cpp_moments
from planner.memory.engines.vllm import vllm_moments
from planner.memory.engines.vllm_setup import CardClass
from planner.memory.inference.moments import inference_moments
from planner.memory.phases import Moments
from planner.memory.training.moments import training_moments
from planner.models.architecture import Architecture
from planner.workload.training import Training
from planner.workload.workload import Inference

Run = Callable[[Architecture, Training | Inference], Moments]
"""From a network and a workload to their moments on one card."""


def one_card_moments(architecture: Architecture, workload: Training | Inference, of_card: CardClass) -> Moments:
    """Return what is alive in each phase of `workload`, whose defaults are filled in, on a card of this class."""
    if architecture.kind == "diffusion" and isinstance(workload, Inference):
        from planner.memory.diffusion.moments import diffusion_moments  # most plans are about text

        return diffusion_moments(architecture, workload)
    if isinstance(workload, Training):
        return training_moments(architecture, workload)
    if workload.profile == "llama.cpp":
        return llama_cpp_moments(architecture, workload)
    if workload.profile == "vllm":
        return vllm_moments(architecture, workload, of_card)
    return inference_moments(architecture, workload)


@cache
def one_card(of_card: CardClass) -> Run:
    """Return `one_card_moments` for cards of this class: always the same function, so that caches may key on it."""
    return partial(one_card_moments, of_card=of_card)
