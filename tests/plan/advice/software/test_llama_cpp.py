"""Changes of llama.cpp."""

from planner.plan.advice.advise import advise
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


def named(found, name):
    return next(advice for advice in found if advice.name == name)


def test_advice_for_llama_cpp_keeps_layers_in_ram(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=Inference(weights="Q4_K_M"), gpu="rtx-4090")
    best = next(advice for advice in advise(plan, catalog) if "layers on the GPU" in advice.name)
    layers = best.plan.workload.gpu_layers
    assert best.name == f"{layers} of 81 layers on the GPU"
    assert (best.verdict, best.cost, best.needs) == ("fits", "much-time", ("RAM for the other layers",))
    more = plan.evolve(workload=plan.workload.evolve(gpu_layers=layers + 1))
    assert evaluate(more, catalog).memory.verdict != "fits"


def test_advice_for_llama_cpp_uses_gguf_files_and_cache_types(catalog):
    workload = Inference(profile="llama.cpp", batch=8, context_length=16_384)
    found = advise(Plan(model=LLAMA, workload=workload, gpu="rtx-4090"), catalog)
    assert found[0].name == "Q4_K_M"
    assert named(found, "KV cache in q4_0").risk == "real"
    assert not any("fp8" in advice.name or "NF4" in advice.name for advice in found)


def test_advice_for_llama_cpp_keeps_experts_in_ram(catalog):
    workload = Inference(profile="llama.cpp", weights="MXFP4_MOE", context_length=8192)
    plan = Plan(model=ModelChoice(id="openai/gpt-oss-120b"), workload=workload, gpu="rtx-3090")
    best = advise(plan, catalog)[0]
    number = best.plan.workload.engine.n_cpu_moe
    assert best.name == f"experts of {number} of 36 layers in RAM"
    assert (best.verdict, best.cost, best.needs) == ("fits", "time", ("RAM for the experts",))
    fewer = plan.evolve(workload=workload.evolve(engine={"n_cpu_moe": number - 1}))
    assert evaluate(fewer, catalog).memory.verdict != "fits"


def test_experts_of_several_cards_are_spread_over_their_layers(catalog):
    workload = Inference(profile="llama.cpp", weights="MXFP4_MOE", context_length=8192)
    plan = Plan(model=ModelChoice(id="openai/gpt-oss-120b"), workload=workload, gpu="rtx-3090", count=2)
    best = next(advice for advice in advise(plan, catalog) if "experts" in advice.name)
    chosen, (first, _) = best.plan.workload, best.plan.workload.parallel.pipeline_layers
    layers = chosen.engine.cpu_moe_layers
    assert best.name == f"experts of {len(layers)} of 36 layers in RAM"
    own = [layer for layer in layers if layer < first]
    assert own == list(range(len(own)))
    assert list(layers[len(own) :]) == list(range(first, first + len(layers) - len(own)))
    assert abs(2 * len(own) - len(layers)) <= 1
