"""Scheduling of llama-server: slots, each with its part of the context."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.serving.scheduling import Scheduler, Scheduling
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.workload import Inference

_BATCH_TOKENS: Final = 2_048
_SLOTS: Final = 4


class _LlamaServer(Scheduler):
    def scheduling(self, workload: Inference, architecture: Architecture, gpu: Gpu) -> Scheduling:
        """Return llama-server's scheduling: the tokens of all answers, then prompts up to `n_batch` tokens.

        **Source**: llama.cpp tools/server/server-context.cpp `update_slots`; `n_parallel` 4 by default.
        """
        settings = workload.settings_as(LlamaCppSettings)
        return Scheduling(
            source="llama.cpp tools/server/server-context.cpp update_slots",
            step_tokens=settings.n_batch or _BATCH_TOKENS,
            sequences=settings.slots or max(_SLOTS, workload.batch),
            slot_tokens=workload.context_length,
        )


SCHEDULER: Final = _LlamaServer()
