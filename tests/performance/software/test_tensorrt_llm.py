"""Inference speed of TensorRT-LLM, which no plan can choose."""

from known_engines import ENGINES
from small_models import bundled

from planner.performance.inference.work import work_of


def test_cards_cache_different_sequences_without_copies() -> None:
    work = work_of(bundled().models.model("meta-llama/Llama-3.1-8B"), "bf16")
    assert work.key_heads == 8
    assert ENGINES["tensorrt-llm"].cache_cards(work, 16) == 16
    assert ENGINES["vllm"].cache_cards(work, 16) == 8


def test_cards_share_the_scheduling_only_where_each_has_sequences_of_its_own() -> None:
    dense = work_of(bundled().models.model("meta-llama/Llama-3.1-8B"), "bf16")
    routed = work_of(bundled().models.model("Qwen/Qwen3-30B-A3B"), "bf16")
    engine = ENGINES["tensorrt-llm"]
    assert [engine.schedulers(work, 8) for work in (dense, routed)] == [1, 8]
    assert ENGINES["vllm"].schedulers(routed, 8) == 1
