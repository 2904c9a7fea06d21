"""Scheduling of vLLM's engine V1."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.software.vllm import SERVING
from planner.models.architecture import Architecture
from planner.serving.scheduling import Scheduler, Scheduling, same_rows
from planner.units import ceil_div
from planner.workload.workload import Inference

_GRAPH_ROWS: Final = (1, 2, 4, 8)
_FINE_STEP, _FINE_END = 8, 256
_COARSE_STEP, _MOST_ROWS = 16, 512
_WAITS_FOR_STEP: Final = ("0.11",)
"""Versions before asynchronous scheduling became the default (0.14)."""
_BLOCK_COPY_SECONDS: Final = 3.3e-6
"""Time of a copy from RAM beside its bytes: the offloading connector makes one for each block, of all layers.

**Source**: blog.vllm.ai/2026/01/08/kv-offloading-connector, figure 4, 1,000 copies to an H100: 7.5 GB/s with 32 KiB,
22.8 with 128 KiB, 39.5 with 512 KiB and 47.7 with 2 MiB, of 51.2 with 16 MiB: 3.1 to 3.7 µs.
"""


def graph_rows(sequences: int) -> int:
    """Return the rows of the CUDA graph that runs a step of `sequences` decoding sequences: the next captured size.

    **Formula**: 1, 2, 4, then multiples of 8 up to 256 and of 16 up to 512; beyond that no graph is used.

    **Source**: vLLM config/vllm.py `_set_cudagraph_sizes`, `max_cudagraph_capture_size` 512.
    """
    if sequences <= _GRAPH_ROWS[-1]:
        return next(rows for rows in _GRAPH_ROWS if rows >= sequences)
    if sequences > _MOST_ROWS:
        return sequences
    step = _FINE_STEP if sequences <= _FINE_END else _COARSE_STEP
    return step * ceil_div(sequences, step)


class _Vllm(Scheduler):
    def scheduling(self, workload: Inference, architecture: Architecture, gpu: Gpu) -> Scheduling:
        """Return vLLM's scheduling: decoding first, then prompts in chunks up to the tokens of a step.

        **Source**: vLLM v1/core/sched/scheduler.py `schedule`: running requests in order of their admission, then
        waiting ones while tokens, sequences and blocks last; the request admitted last is preempted and recomputed.
        """
        settings = SERVING.settings_in_use(architecture, workload, gpu)
        assert settings.max_num_batched_tokens is not None
        assert settings.max_num_seqs is not None
        return Scheduling(
            source="vLLM v1/core/sched/scheduler.py",
            step_tokens=max(settings.max_num_batched_tokens, settings.max_num_seqs),
            sequences=settings.max_num_seqs,
            block_tokens=settings.block_size or 16,
            caches_prefixes=True,
            block_copy_seconds=_BLOCK_COPY_SECONDS,
            schedules_ahead=settings.version not in _WAITS_FOR_STEP,
            padded_rows=same_rows if settings.enforce_eager else graph_rows,
        )


SCHEDULER: Final = _Vllm()
