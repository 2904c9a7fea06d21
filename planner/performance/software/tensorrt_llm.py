"""Inference speed of TensorRT-LLM; its memory is not modeled, so plans cannot choose it."""

from typing import Final

from planner.performance.inference.work import PassWork
from planner.performance.software.engine import Engine


class _TensorRtLlm(Engine):
    def cache_cards(self, work: PassWork, cards: int) -> int:
        """Return `cards`: the cards in a tensor-parallel group cache different sequences, without copies.

        **Source**: TensorRT-LLM `enable_attention_dp`.
        """
        return cards


ENGINE: Final = _TensorRtLlm(
    name="tensorrt-llm",
    layer_seconds=80e-6,
    source="InferenceX and NVIDIA/TensorRT-LLM@00f3768 perf-overview: 0.07 to 0.10 ms a layer",
    sequence_seconds=10e-6,
    chunk=8_192,
    compute_share=1.0,
    pointwise_share=0.6,
    multiplies_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
)
