"""The time of traced plans."""

import pytest
from recordings import training, two_steps

from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.trace.analysis.memory import facts_of
from planner.trace.request import Input, Target, TensorInput
from planner.units import GIB

IMAGES = Input(name="x", value=TensorInput(shape=(32, 3, 224, 224)))


FACTS = facts_of(
    two_steps(
        GIB, training(target=Target(kind="file", place="/home/me/nets/resnet.py", name="ResNet50"), inputs=(IMAGES,))
    )
)


COUNTED = FACTS.evolve(flops=10**13, product_elements=10**10, convolution_flops=10**13, operator_calls=300)


TIMED = Plan(model=ModelChoice.of_trace(COUNTED), gpu="rtx-4090")


def test_the_time_of_a_trace_follows_from_its_operation_counts(catalog: Catalog):
    time = evaluate(TIMED, catalog).time
    assert time.seconds > 0
    assert time.samples_per_second == pytest.approx(32 / time.seconds)
    assert evaluate(TIMED.evolve(gpu="h100-sxm5-80gb"), catalog).time.seconds < time.seconds
    assert evaluate(TIMED.evolve(gpu=None), catalog).time is None


def test_a_trace_without_operation_counts_has_a_reason_instead_of_a_time(catalog: Catalog):
    bare = Plan(model=ModelChoice.of_trace(FACTS.evolve(product_elements=None)), gpu="rtx-4090")
    assert "trace the module again" in evaluate(bare, catalog).time.unsupported


def test_a_measured_step_replaces_the_estimate(catalog: Catalog):
    measured = {"measured": {"value": 0.5, "unit": "seconds/step"}}
    assert evaluate(TIMED.evolve(timing=measured), catalog).time.seconds == pytest.approx(0.5)
    elsewhere = {"measured": {"value": 0.5, "unit": "seconds/step", "gpu": "rtx-4090", "count": 1}}
    other = evaluate(TIMED.evolve(gpu="h100-sxm5-80gb", timing=elsewhere), catalog).time
    assert other.basis == "measured"
    assert other.seconds < 0.5
    unknown = TIMED.evolve(gpu="geforce-930m", timing=measured)
    assert evaluate(unknown, catalog).time is not None
