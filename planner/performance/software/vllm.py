"""Inference speed of vLLM."""

from typing import Final

from planner.performance.software.engine import Engine

_LAYER_SECONDS: Final = 60e-6
_LAYER_CLOCK_HZ: Final = 1.98e9
"""Clock of the H20, on which the time of a layer was measured: that of the H100, of which it is a cut-down version."""
ENGINE: Final = Engine(
    name="vllm",
    layer_seconds=_LAYER_SECONDS,
    layer_clock_hz=_LAYER_CLOCK_HZ,
    source="QwenLM/Qwen3@7a2f61f (SGLang 0.4.6), 24 rows; pytorch/ao@36027d8 (vLLM 0.13), 3 rows at 128 sequences",
    sequence_seconds=25e-6,
    schedules_ahead=True,
    chunk=8_192,
    multiplies_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
    sources=2,
    measured_decoding=("Hopper SXM", "A100"),
    measured_prompts=("Hopper SXM",),
)
VERSION_0: Final = Engine(
    name="vllm-v0",
    layer_seconds=_LAYER_SECONDS,
    layer_clock_hz=_LAYER_CLOCK_HZ,
    source=(
        "microsoft/vidur@0633efa data/profiling/a100/cpu_overheads.csv, Llama 2 7B on one card, medians of schedule, "
        "inputs, sampler, messages and outputs: 2.1 ms with 8 sequences, 8.0 ms with 64; a layer as in later versions"
    ),
    pass_seconds=1.3e-3,
    sequence_seconds=0.106e-3,
    chunk=8_192,
    multiplies_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
)
"""vLLM with its engine V0, whose memory is not modeled."""
