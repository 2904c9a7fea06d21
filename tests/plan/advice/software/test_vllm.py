"""Changes of vLLM."""

from planner.plan.advice.advise import advise
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


def test_advice_for_vllm_omits_cuda_graphs_and_shrinks_the_cache(catalog):
    workload = Inference(profile="vllm", batch=16, context_length=16_384)
    best = advise(Plan(model=LLAMA, workload=workload, gpu="rtx-4090"), catalog)[0]
    assert {step.name for step in best.steps} == {"FP8 KV cache", "4-bit weights (AWQ)", "no CUDA graphs"}
    assert best.plan.workload.engine.enforce_eager is True
    assert best.verdict == "fits"
