"""Bytes per element of parameters and activations under each precision setting."""

import pytest
from small_models import llama

from planner.memory.precision import Precision, inference_precision, training_precision
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference


@pytest.mark.parametrize(
    ("compute", "sizes"),
    [("bf16", (2, 2, 2, False)), ("fp32", (4, 4, 4, False)), ("tf32", (4, 4, 4, False)), ("amp-bf16", (4, 2, 4, True))],
)
def test_autocast_keeps_parameters_and_residual_stream_in_fp32(compute, sizes):
    workload = with_defaults(Training(compute=compute), llama(), 1)
    assert training_precision(workload) == Precision(*sizes)


def test_inference_computes_in_the_format_of_the_activations_whatever_the_weights_are():
    workload = with_defaults(Inference(compute="bf16", weights="nf4"), llama(), 1)
    precision = inference_precision(workload)
    assert (precision.compute_bytes, precision.residual_bytes, precision.autocast) == (2, 2, False)


def test_only_fp16_is_half():
    halves = {name: inference_precision(Inference(compute=name)).half for name in ("fp16", "bf16", "fp32")}
    assert halves == {"fp16": True, "bf16": False, "fp32": False}
