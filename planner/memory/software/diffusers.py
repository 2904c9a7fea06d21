"""Memory behavior of the diffusers library, which runs image pipelines."""

from collections.abc import Hashable
from typing import Final

from planner.memory.diffusion.timeline import diffusion_timeline
from planner.memory.phases import PhaseSnapshots
from planner.memory.software.transformers import Transformers
from planner.models.architecture import Architecture
from planner.workload.workload import Inference


class Diffusers(Transformers):
    """Image pipelines of the diffusers library, with text encoders from transformers."""

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of an image pipeline: text encoding, denoising, decoding."""
        return diffusion_timeline(architecture, workload)


SERVING: Final = Diffusers()
