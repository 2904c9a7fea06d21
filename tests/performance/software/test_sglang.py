"""SGLang launches the kernels of vLLM, and its time of a layer is that which was measured with it."""

from dataclasses import replace

import pytest
from small_models import bundled

from planner.performance.inference.work import work_of
from planner.performance.software import sglang, tensorrt_llm, vllm


def test_it_has_the_constants_that_vllm_shares():
    assert sglang.ENGINE.layer_seconds == vllm.ENGINE.layer_seconds
    assert (sglang.ENGINE.name, sglang.ENGINE.batches_continuously) == ("sglang", True)
    assert "SGLang 0.4.6" in sglang.ENGINE.source


def test_prompts_of_sglang_run_in_graphs_and_those_of_tensorrt_llm_do_not():
    work = work_of(bundled().models.model("deepseek-ai/DeepSeek-V3"), "fp8-block128")
    assert sglang.ENGINE.eager_seconds(work, 32_768) == 0
    before = replace(sglang.ENGINE, graph_rows=0)
    assert before.eager_seconds(work, 1) == pytest.approx(82.6e-3, rel=1e-3)
    assert tensorrt_llm.ENGINE.eager_seconds(work, 1) == before.eager_seconds(work, 1)
    deltas = work_of(bundled().models.model("Qwen/Qwen3-Next-80B-A3B-Instruct"), "bf16")
    assert before.eager_seconds(deltas, 1_024) == pytest.approx(48 * (0.26e-3 + 1.15e-3) + 36 * 0.9e-3)
    assert 99e-3 < before.eager_seconds(deltas, 1_024) < 102e-3
