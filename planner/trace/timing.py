"""What a trace says about time: the counts of its last step, as a plain value."""

from planner.performance.traced import Step
from planner.performance.vision import Counts, Kind, Precision
from planner.trace.facts import TracedFacts
from planner.trace.request import InputValue, ListInput, TensorInput, TraceRequest

_GRADIENT_BYTES = {"bf16": 2, "fp16": 2}
_UNSEEN = 1.5
"""A training step moves three times what a forward pass does, and its products put out twice as much: themselves, and
the gradients of what they read."""


def step_of(facts: TracedFacts, *, compiled: bool = False, channels_last: bool = False) -> Step | None:
    """Return what a traced step computes on one card, or none for traces from before that was counted.

    Gradients are as wide as the parameters.

    **Assumes** that PyTorch multiplies fp32 with TF32 in convolutions only, which is its default.
    """
    if facts.flops is None or facts.product_elements is None:
        return None
    convolves = 2 * (facts.convolution_flops or 0) >= facts.flops
    kind: Kind = "convolutions" if convolves else "attention"
    request = facts.request
    trains = request.task == "training"
    elements = facts.product_elements * (_UNSEEN if trains else 1.0)
    counts = Counts(facts.flops, elements, kind, facts.operator_calls or 0, trains)
    width = _GRADIENT_BYTES.get(request.dtype or "fp32", 4)
    gradients = facts.trainable_parameters * width if trains else 0.0
    precision = _precision(request, convolves=convolves)
    return Step(request.task, counts, samples_of(request), precision, gradients, compiled, channels_last)


def samples_of(request: TraceRequest) -> int:
    """Return the samples of a step: the batch that was asked for, else the first extent of the first input."""
    if request.batch is not None:
        return request.batch * (request.gradient_accumulation if request.task == "training" else 1)
    return next((size for given in request.inputs if (size := _extent(given.value))), 1)


def _extent(value: InputValue) -> int | None:
    if isinstance(value, TensorInput):
        return value.shape[0] if value.shape else None
    if isinstance(value, ListInput):
        return next((size for item in value.items if (size := _extent(item))), None)
    return None


def _precision(request: TraceRequest, *, convolves: bool) -> Precision:
    if request.autocast is not None or request.dtype in _GRADIENT_BYTES:
        return "fp16"
    return "tf32" if convolves else "fp32"
