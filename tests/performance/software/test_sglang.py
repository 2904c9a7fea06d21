"""SGLang launches the kernels of vLLM, and its time of a layer is that which was measured with it."""

from planner.performance.software import sglang, vllm


def test_it_has_the_constants_that_vllm_shares():
    assert sglang.ENGINE.layer_seconds == vllm.ENGINE.layer_seconds
    assert (sglang.ENGINE.name, sglang.ENGINE.batches_continuously) == ("sglang", True)
    assert "SGLang 0.4.6" in sglang.ENGINE.source
