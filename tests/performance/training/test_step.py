"""A training step as a whole, against figures worked out by hand."""

from typing import Any

import pytest
from small_models import llama

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.efficiency import (
    MEASURED,
    EfficiencyClasses,
)
from planner.performance.flops import forward_work
from planner.performance.setting import TimeSetting
from planner.performance.training.step import TrainingStep, training_step_on
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.training import Training

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


def test_a_perfect_card_takes_six_operations_for_each_parameter_and_token(h100: Gpu) -> None:
    found = step(llama(), h100, micro_batch=4)
    work = forward_work(llama(), 4, 2048)
    assert found.passes.products_forward == pytest.approx(work.layer_flops / 989.5e12)
    assert found.passes.products_backward == pytest.approx(2 * work.layer_flops / 989.5e12)
    assert found.flops == pytest.approx(3 * work.flops)
    assert found.passes.attention_backward == 2.5 * found.passes.attention_forward
    assert found.tokens == 4 * 2048


def test_adapters_need_no_gradients_of_the_weights(h100: Gpu) -> None:
    """LoRA over full fine-tuning: 1.5 in theory, 1.44 to 1.61 in NVIDIA's tables."""
    full, lora = step(llama(), h100, micro_batch=4), step(llama(), h100, micro_batch=4, method="lora")
    assert lora.passes.products_backward == pytest.approx(full.passes.products_backward / 2)
    assert lora.flops == pytest.approx(full.flops * 2 / 3)
    assert 1.4 < full.passes.device_seconds / lora.passes.device_seconds < 1.61


def test_a_pipeline_waits_for_its_first_and_last_stage(h100: Gpu) -> None:
    """Narayanan et al.: (p − 1) ÷ v passes, whatever the number of micro-batches."""
    found = step(llama(), h100, 4, gradient_accumulation=8, parallel=Parallel(pipeline=4))
    assert found.bubble == pytest.approx(3 * found.passes.seconds)
    turns = step(llama(), h100, 4, gradient_accumulation=8, parallel=Parallel(pipeline=4, interleave=2))
    assert turns.bubble == pytest.approx(3 / 2 * turns.passes.seconds)
    sent = {one.sent.name: one.sent for one in found.transfers}["pipeline_transfers"]
    assert sent.bytes == 2 * 8 * 2048 * 4096 * 2


def test_loading_bounds_the_step(h100: Gpu) -> None:
    free = step(llama(), h100)
    loaded = step(llama(), h100, setting=TimeSetting(input_samples_per_second=1 / (2 * free.seconds)))
    assert loaded.seconds == pytest.approx(2 * free.seconds)
