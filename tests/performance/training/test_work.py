"""Work of a micro-batch, with the arithmetic."""

from typing import Any

import pytest
from small_models import llama, small_llama

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


def test_some_parameters_need_some_gradients(h100: Gpu) -> None:
    some = step(llama(), h100, trainable=("*layers.31.*",))
    assert 0 < some.batch.weight_gradient_share < 0.05


def test_scores_of_eager_attention_are_moved_through_memory(h100: Gpu) -> None:
    eager = step(llama(), h100, attention="eager", classes=MEASURED)
    fused = step(llama(), h100, attention="flash", classes=MEASURED)
    assert eager.passes.elements_forward > 2 * fused.passes.elements_forward
    assert eager.passes.attention_backward == 2 * eager.passes.attention_forward


def test_autocast_casts_every_matrix(h100: Gpu) -> None:
    assert step(small_llama(), h100, compute="amp-bf16").batch.cast_bytes > 0
    assert step(small_llama(), h100, compute="bf16").batch.cast_bytes == 0
