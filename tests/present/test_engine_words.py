"""What is said of the engine that runs a model."""

from planner.memory.estimate import estimate_memory
from planner.plan.catalog import Catalog
from planner.present.memory.view import memory_view
from planner.workload.workload import Inference, Parallel, Training

LLAMA = "meta-llama/Llama-3.1-8B"


def test_what_stays_in_ram_is_said(catalog: Catalog):
    model = catalog.models.model(LLAMA)
    plain, offloaded = (
        " ".join(memory_view(estimate_memory(model, workload)).notes)
        for workload in (Inference(), Inference(weights="Q4_K_M", gpu_layers=10))
    )
    assert "Host memory" not in plain
    assert "Host memory: 3.53" in offloaded
    on_disk = Training(profile="deepspeed", parallel=Parallel(zero=3, offload="nvme"))
    assert "on NVMe" in " ".join(memory_view(estimate_memory(model, on_disk, count=8)).notes)


def test_the_pool_of_vllm_is_said_for_a_card(catalog: Catalog):
    card = catalog.hardware.gpu("rtx-4090")
    result = estimate_memory(
        catalog.models.model(LLAMA), Inference(profile="vllm"), card, catalog.hardware.usable_memory(card)
    )
    assert result.cache_pool is not None
    assert f"{result.cache_pool.tokens:,} tokens" in " ".join(memory_view(result, "RTX 4090").notes)
