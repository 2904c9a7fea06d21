"""Each advice, taken, comes to exactly what it promised, for networks, workloads and cards of every kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import architectures, bundled, workloads

from planner.plan.advice.advise import CHANGES, advise
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.units import GIB
from planner.workload.workload import Inference, Training

some = settings(max_examples=25)
CARDS = st.sampled_from(("gtx-1080", "rtx-4090", "tesla-k80", "h100-sxm5-80gb", "tpu-v5e", "apple-m3-ultra"))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw plans that often do not fit: large batches of small networks, beside others."""
    workload = draw(workloads())
    times = draw(st.sampled_from((1, 100, 1000)))
    field = "micro_batch" if workload.task == "training" else "batch"
    workload = workload.evolve(
        **{field: getattr(workload, field) * times}, other_processes_bytes=draw(st.sampled_from((0, GIB, 7 * GIB)))
    )
    choice = ModelChoice(id="own", architecture=draw(architectures()))
    return Plan(model=choice, workload=workload, gpu=draw(st.none() | CARDS), count=draw(st.integers(1, 4)))


def check(plan, catalog):
    before = evaluate(plan, catalog).memory
    for advice in advise(plan, catalog):
        after = evaluate(advice.plan, catalog).memory
        assert (advice.verdict, advice.total_bytes, advice.free_bytes) == (
            after.verdict,
            after.total_bytes,
            after.free_bytes,
        )
        held = after.total_bytes + after.other_processes_bytes
        assert advice.saved_bytes == before.total_bytes + before.other_processes_bytes - held
        if advice.plan.gpu == plan.gpu:
            is_faster = advice.slower_by_about is not None and advice.slower_by_about < 1
            assert advice.saved_bytes > 0 or before.unsupported or is_faster
        assert advice.settings
        assert rebuilt(plan, advice) == advice.plan


def rebuilt(plan, advice):
    """The plan with the settings put in one by one, as a script would."""
    fields = plan.model_dump()
    for setting in advice.settings:
        *path, last = setting.field.split(".")
        place = fields
        for name in path:
            place = place[name]
        place[last] = setting.value
    return Plan.model_validate(fields)


@some
@given(plans())
def test_applied_advice_has_the_promised_effect(plan):
    check(plan, bundled())


@pytest.mark.sweep
@pytest.mark.parametrize("gpu", ["rtx-4090", "h100-sxm5-80gb", "tesla-t4"])
@pytest.mark.parametrize(
    "workload",
    [
        Training(micro_batch=12),
        Training(compute="fp32", attention="eager"),
        Training(optimizer="sgd-momentum", micro_batch=64),
        Inference(batch=48, kv_cache="fp32"),
        Inference(weights="fp32", attention="eager", prompt_logits="all", batch=6),
        Inference(profile="vllm", batch=32, context_length=16_384),
        Inference(profile="llama.cpp", batch=8, context_length=16_384),
    ],
    ids=["autocast", "eager fp32", "momentum", "many at once", "everything", "vllm", "llama.cpp"],
)
def test_advice_for_well_known_models_has_the_promised_effect(catalog, gpu, workload):
    for model in ("meta-llama/Llama-3.2-1B", "mistralai/Mixtral-8x7B-v0.1"):
        check(Plan(model=ModelChoice(id=model), workload=workload, gpu=gpu), catalog)


@some
@given(plans())
def test_every_part_of_an_advice_is_needed(plan):
    """Where a combination makes it fit, none of its changes of the table does so alone."""
    table = {change.name: change for change in CHANGES}
    for advice in advise(plan, bundled()):
        if advice.verdict != "fits" or len(advice.steps) == 1:
            continue
        for step in advice.steps:
            change = table.get(step.name)
            if change is not None:
                alone = plan.evolve(workload=plan.workload.evolve(**change.settings))
                assert evaluate(alone, bundled()).memory.verdict != "fits"
