"""What a trace hands on to the estimate of time."""

import pytest
from recordings import training, two_steps

from planner.plan.timing import samples_per_step, traced_step
from planner.trace.analysis.memory import facts_of


def facts(request=None, **changes):
    counted = {"convolution_flops": 900_000, "product_elements": 5_000, "operator_calls": 40}
    return facts_of(two_steps(request=request)).evolve(**{**counted, **changes})


def test_the_operations_of_convolutions_are_counted():
    step = traced_step(facts())
    assert (step.counts.flops, step.counts.elements, step.counts.calls) == (1_000_000, 7_500, 40)
    assert (step.task, step.counts.kind, step.precision) == ("training", "convolutions", "tf32")
    assert step.gradient_bytes == 4 * facts().trainable_parameters


def test_matrix_products_run_in_fp32_unless_cast():
    assert traced_step(facts(convolution_flops=1)).precision == "fp32"
    assert traced_step(facts(convolution_flops=None)).counts.kind == "attention"
    assert traced_step(facts(training(autocast="bf16"))).precision == "fp16"
    assert traced_step(facts(training(dtype="bf16")), compiled=True).compiled


def test_older_traces_have_no_operation_counts():
    assert traced_step(facts(flops=None)) is None
    assert traced_step(facts(product_elements=None)) is None


def test_inference_counts_no_gradients():
    assert traced_step(facts(training(task="inference"))).gradient_bytes == 0


TENSOR = {"kind": "tensor", "shape": [8, 3, 224, 224], "dtype": "float32"}


@pytest.mark.parametrize(
    ("changes", "samples"),
    [
        ({"batch": 4}, 4),
        ({"batch": 4, "gradient_accumulation": 3}, 12),
        ({"batch": 4, "task": "inference", "gradient_accumulation": 3}, 4),
        ({"inputs": [{"name": "x", "value": TENSOR}]}, 8),
        ({"inputs": [{"value": {"kind": "plain", "value": 1}}, {"value": {"kind": "tuple", "items": [TENSOR]}}]}, 8),
        ({"inputs": [{"value": {**TENSOR, "shape": []}}]}, 1),
        ({}, 1),
    ],
)
def test_the_samples_per_step_follow_from_the_request(changes, samples):
    assert samples_per_step(training(**changes)) == samples
