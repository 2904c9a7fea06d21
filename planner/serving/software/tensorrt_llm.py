"""Scheduling of TensorRT-LLM: in-flight batching."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.serving.scheduling import Scheduler, Scheduling, own_setting
from planner.workload.workload import Inference

_STEP_TOKENS: Final = 8_192
_SEQUENCES: Final = 2_048
_BLOCK_TOKENS: Final = 32
_FIRST_TOKEN_FACTOR: Final = 1.9
"""**Source**: benchmarks/serving_accuracy.py, "of tensorrt-llm", "those of the other systems": 1.72 to 2.42."""


class _TensorRtLlm(Scheduler):
    def scheduling(self, workload: Inference, architecture: Architecture, gpu: Gpu) -> Scheduling:
        """Return TensorRT-LLM's scheduling: prompts in the same step as answers, with all their cache reserved.

        **Source**: TensorRT-LLM llmapi/llm_args.py: `max_num_tokens` 8,192, `max_batch_size` 2,048, `tokens_per_block`
        32, `enable_chunked_prefill` off, `enable_block_reuse` on, capacity policy GUARANTEED_NO_EVICT.
        """
        return Scheduling(
            source="TensorRT-LLM llmapi/llm_args.py and _torch/pyexecutor/scheduler.py",
            step_tokens=own_setting(workload, "max_num_tokens") or _STEP_TOKENS,
            sequences=own_setting(workload, "max_batch_size") or _SEQUENCES,
            chunks_prompts=bool(own_setting(workload, "enable_chunked_prefill")),
            reservation="whole",
            block_tokens=own_setting(workload, "tokens_per_block") or _BLOCK_TOKENS,
            caches_prefixes=True,
            schedules_ahead=True,
            first_token_factor=_FIRST_TOKEN_FACTOR,
        )


SCHEDULER: Final = _TensorRtLlm()
