"""Scheduling of SGLang: prompts first, in steps of their own."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.serving.scheduling import Scheduler, Scheduling, own_setting
from planner.units import GIB
from planner.workload.workload import Inference

_CHUNKS: Final = ((20 * GIB, 2_048), (35 * GIB, 2_048), (60 * GIB, 4_096), (90 * GIB, 8_192), (160 * GIB, 8_192))
_LARGEST_CHUNK: Final = 16_384
_MOST_REQUESTS: Final = 2_048
_ANSWER_SHARE: Final = 0.098
"""Share of the longest remaining answers for which the cache of running requests is kept free: SGLang begins with 0.7
of it, and comes down to 0.14 of that within 600 steps without a retraction."""
_FIRST_TOKEN_FACTOR: Final = 1.8
"""**Source**: benchmarks/serving_accuracy.py, "of sglang", "those of the other systems": 1.38 to 2.00."""


class _Sglang(Scheduler):
    def scheduling(self, workload: Inference, architecture: Architecture, gpu: Gpu) -> Scheduling:
        """Return SGLang's scheduling: waiting prompts in chunks, while answers wait, then a token of each answer.

        **Source**: SGLang managers/scheduler.py `get_next_batch_to_run`, managers/schedule_policy.py `PrefillAdder`,
        server_args.py `chunked_prefill_size` by memory, environ.py `SGLANG_INIT_NEW_TOKEN_RATIO` 0.7 and
        `SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR` 0.14, managers/scheduler_recv_skipper.py `scheduler_recv_interval`.
        """
        memory = gpu.usable_memory_bytes or gpu.memory_bytes or 0
        chunk = next((tokens for limit, tokens in _CHUNKS if memory < limit), _LARGEST_CHUNK)
        return Scheduling(
            source="SGLang managers/scheduler.py and managers/schedule_policy.py",
            step_tokens=own_setting(workload, "chunked_prefill_size") or chunk,
            sequences=own_setting(workload, "max_running_requests") or _MOST_REQUESTS,
            mixes_prefill=False,
            reservation="prompt",
            answer_share=_ANSWER_SHARE,
            block_tokens=own_setting(workload, "page_size") or 1,
            caches_prefixes=True,
            schedules_ahead=True,
            polls_every=own_setting(workload, "scheduler_recv_interval") or 1,
            first_token_factor=_FIRST_TOKEN_FACTOR,
        )


SCHEDULER: Final = _Sglang()
