"""The plan on the accelerators of every system: as on so many cards, and nothing but a reason where that cannot be."""

import pytest

from planner.memory.result import Verdict
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate, fits_among, on_equal_cards
from planner.plan.placement import fits_by_system
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import CardCount, Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

LLAMA = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))
SHARED = LLAMA.evolve(workload=Training(parallel=Parallel(zero=3)), gpu="h100-sxm5-80gb", count=8)


@pytest.mark.parametrize(
    "plan", [LLAMA, SHARED, LLAMA.evolve(workload=Inference(profile="vllm"))], ids=["", "zero", "vllm"]
)
def test_the_verdict_is_that_of_the_plan_moved_there(plan: Plan, catalog: Catalog) -> None:
    found = fits_by_system(plan, catalog)
    assert set(found) == {system.id for system in catalog.hardware.systems}
    for name in ("dgx-1-p100", "dgx-a100-640gb", "gb200-nvl72", "dgx-spark", "tpu-v4-pod"):
        system = catalog.hardware.system(name)
        memory = evaluate(on_equal_cards(plan, str(system.gpu_id), system.gpu_count or 1), catalog).memory
        fit = found[name].fit
        assert fit is not None
        assert (fit.verdict, fit.free_bytes) == (memory.verdict, memory.free_bytes)


def test_a_system_without_known_accelerators_has_a_reason(catalog: Catalog) -> None:
    assert fits_by_system(LLAMA, catalog)["dgx-station-v100"].fit is None
    assert "does not name" in fits_by_system(LLAMA, catalog)["dgx-station-v100"].reason


def test_replicas_for_other_numbers_of_cards_are_a_reason(catalog: Catalog) -> None:
    plan = LLAMA.evolve(workload=Training(parallel=Parallel(data=8)), gpu="h100-sxm5-80gb", count=8)
    found = fits_by_system(plan, catalog)
    assert found["dgx-h100"].fit is not None
    assert found["gb200-nvl72"].reason == "parallel.data: data parallelism of 8 needs as many GPUs, not 72"


def test_unequal_cards_of_the_plan_give_way(catalog: Catalog) -> None:
    unequal = (CardCount(id="rtx-4090", count=1), CardCount(id="rtx-3090", count=1))
    plan = LLAMA.evolve(workload=Inference(gpus=unequal, parallel=Parallel(pipeline=2)), count=2)
    fit = fits_by_system(plan, catalog)["dgx-h100"].fit
    verdict: Verdict = "fits"
    assert fit is not None
    assert (fit.gpu_id, fit.verdict) == ("h100-sxm5-80gb", verdict)
    assert on_equal_cards(plan, "h100-sxm5-80gb", 8).workload.gpus == ()


def test_some_cards_are_judged_as_among_all(catalog: Catalog) -> None:
    some = fits_among(LLAMA, catalog, ("rtx-4090", "l4"), 1)
    every = fits_among(LLAMA, catalog, None, 1)
    assert some == {name: every[name] for name in ("rtx-4090", "l4")}
