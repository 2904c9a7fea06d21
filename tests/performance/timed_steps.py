"""Training steps on a card that reaches its figures without other costs, and estimates of whole steps."""

from collections.abc import Callable
from typing import Any

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.efficiency import MEASURED_EFFICIENCY, TrainingEfficiency
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.performance.training.step import TrainingStep, training_step_on
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

PLAIN = TimeSetting()
Timed = Callable[..., TimeResult]

PERFECT = MEASURED_EFFICIENCY._replace(
    matrix_shares={("Hopper SXM", "16"): 1.0, ("Hopper SXM", "8"): 1.0},
    attention_shares={"Hopper SXM": 1.0},
    memory_shares={"Hopper SXM": 1.0},
    experts_fraction=1.0,
    size_dependence_engine=None,
    memory_passes=0.0,
    fused_memory_passes=0.0,
    recomputed_fraction=1.0,
    layer_launch_seconds=0.0,
    fused_layer_launch_seconds=0.0,
    expert_launch_seconds=0.0,
    exposed_fraction=0.0,
)
"""A card that reaches all of its figures, and costs that are nothing."""


def step(
    architecture: Architecture,
    gpu: Gpu,
    count: int = 1,
    setting: TimeSetting = PLAIN,
    efficiency: TrainingEfficiency = PERFECT,
    **fields: Any,
) -> TrainingStep:
    workload = with_defaults(Training(**{"compute": "bf16", "sequence_length": 2048} | fields), architecture, count)
    assert isinstance(workload, Training)
    found = training_step_on(architecture, workload, gpu, setting, efficiency)
    assert isinstance(found, TrainingStep)
    return found


def spread(found: TimeResult) -> float:
    assert found.seconds is not None
    assert found.high_seconds is not None
    return found.high_seconds / found.seconds
