"""Traffic of the optimizer step, with the arithmetic."""

from typing import Any

import pytest
from small_models import llama

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.efficiency import (
    MEASURED,
    EfficiencyClasses,
)
from planner.performance.setting import TimeSetting
from planner.performance.training.step import TrainingStep, training_step_on
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.training import Lora, Training

PLAIN = TimeSetting()


PERFECT = MEASURED._replace(
    matrix={("Hopper SXM", "16"): 1.0, ("Hopper SXM", "8"): 1.0},
    attention={"Hopper SXM": 1.0},
    memory={"Hopper SXM": 1.0},
    experts=1.0,
    rows=1e-9,
    passes=0.0,
    fused_passes=0.0,
    recomputed=1.0,
    host=0.0,
    fused_host=0.0,
    expert_host=0.0,
    exposed=0.0,
)


"""A card that reaches all of its figures, and costs that are nothing."""


@pytest.fixture(scope="session")
def cards(catalog: Catalog) -> dict[str, Gpu]:
    return {gpu.id: gpu for gpu in catalog.hardware.gpus}


@pytest.fixture(scope="session")
def h100(cards: dict[str, Gpu]) -> Gpu:
    return cards["h100-sxm5-80gb"]


def step(
    architecture: Architecture,
    gpu: Gpu,
    count: int = 1,
    setting: TimeSetting = PLAIN,
    classes: EfficiencyClasses = PERFECT,
    **fields: Any,
) -> TrainingStep:
    workload = with_defaults(Training(**{"compute": "bf16", "sequence_length": 2048} | fields), architecture, count)
    assert isinstance(workload, Training)
    found = training_step_on(architecture, workload, gpu, setting, classes)
    assert isinstance(found, TrainingStep)
    return found


def test_adam_reads_and_writes_its_states(h100: Gpu) -> None:
    found = step(llama(), h100, compute="fp32", classes=PERFECT._replace(matrix={("Hopper SXM", "32"): 1.0}))
    assert found.optimizer_traffic.moved_bytes == (4 + 2 * 4 + 2 * 8) * llama().parameters
    shared = step(llama(), h100, 8, compute="amp-bf16", parallel=Parallel(zero=1))
    assert shared.optimizer_traffic.moved_bytes == (2 + 2 * 4 + 2 * 8) * llama().parameters / 8
    adapters = step(llama(), h100, method="lora", lora=Lora(rank=16))
    assert adapters.optimizer_traffic.parameters < 0.01 * llama().parameters


def test_offloaded_states_go_over_the_link_to_the_host(h100: Gpu) -> None:
    parallel = Parallel(zero=3, offload="parameters")
    found = step(llama(), h100, 8, compute="bf16", gradient_accumulation=2, parallel=parallel)
    bytes_each = llama().parameters / 8
    assert found.optimizer == 0
    assert found.optimizer_traffic.copied_bytes == pytest.approx((2 + 2 + 2 * 2 * 2) * bytes_each)
    assert found.offload == pytest.approx(
        found.optimizer_traffic.copied_bytes / found.links.host_bytes_per_s
        + 8 * found.optimizer_traffic.offloaded_bytes / 100e9
    )
    disk = step(llama(), h100, 8, compute="amp-bf16", parallel=Parallel(zero=3, offload="nvme"))
    host = step(llama(), h100, 8, compute="amp-bf16", parallel=Parallel(zero=2, offload="optimizer"))
    assert disk.optimizer_traffic.offload_bytes_per_s == 5e9
    assert disk.offload > host.offload
