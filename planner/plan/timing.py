"""Step or request time of a plan: estimated, based on a trace, or scaled from a measurement.

Separate from `planner.plan.evaluate`, so that evaluating memory alone does not load the time model.
"""

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.certainty import scale_to_measured
from planner.performance.estimate import GpuCounts, estimate_time
from planner.performance.links import links_of
from planner.performance.result import TimeResult
from planner.performance.traced import Kind, OperationCounts, Precision, TracedStep, step_time
from planner.plan.plan import Plan
from planner.trace.recording import TracedFacts
from planner.trace.request import InputValue, ListInput, TensorInput, TraceRequest
from planner.workload.workload import Workload

_GRADIENT_BYTES = {"bf16": 2, "fp16": 2}
_TRAINING_FACTOR = 1.5
"""A training step moves three times the data of a forward pass, and its products have twice the outputs: their results
and the gradients of their inputs. So 3 / 2 of the counted output elements stand for the traffic of a whole step."""


def traced_step(facts: TracedFacts, *, compiled: bool = False, channels_last: bool = False) -> TracedStep | None:
    """Return the operations of a traced step on one GPU, or None for traces that did not count them.

    Gradients have the width of the parameters.

    **Assumes** that PyTorch multiplies fp32 with TF32 in convolutions only, which is its default.
    """
    if facts.flops is None or facts.product_elements is None:
        return None
    convolves = 2 * (facts.convolution_flops or 0) >= facts.flops
    kind: Kind = "convolutions" if convolves else "attention"
    request = facts.request
    trains = request.task == "training"
    elements = facts.product_elements * (_TRAINING_FACTOR if trains else 1.0)
    counts = OperationCounts(facts.flops, elements, kind, facts.operator_calls or 0, trains)
    width = _GRADIENT_BYTES.get(request.dtype or "fp32", 4)
    gradients = facts.trainable_parameters * width if trains else 0.0
    precision = _trace_precision(request, convolves=convolves)
    return TracedStep(request.task, counts, samples_per_step(request), precision, gradients, compiled, channels_last)


def samples_per_step(request: TraceRequest) -> int:
    """Return the samples per traced step: the requested batch size, else the first tensor input's first dimension."""
    if request.batch is not None:
        return request.batch * (request.gradient_accumulation if request.task == "training" else 1)
    return next((size for tensor_input in request.inputs if (size := _first_dimension(tensor_input.value))), 1)


def _first_dimension(value: InputValue) -> int | None:
    if isinstance(value, TensorInput):
        return value.shape[0] if value.shape else None
    if isinstance(value, ListInput):
        return next((size for item in value.items if (size := _first_dimension(item))), None)
    return None


def _trace_precision(request: TraceRequest, *, convolves: bool) -> Precision:
    """Return the precision of the traced matrix products, for the rate at which they run."""
    if request.autocast is not None or request.dtype in _GRADIENT_BYTES:
        return "fp16"
    return "tf32" if convolves else "fp32"


def estimate_plan_time(
    plan: Plan, workload: Workload, architecture: Architecture | None, cards: GpuCounts, measured_on: Gpu | None
) -> TimeResult | None:
    """Return the time of one step or one request of `plan` on `cards`, which must not be empty.

    `workload` is the plan's with its defaults; `measured_on` is the GPU of the plan's measured speed, if it differs. A
    traced module has no architecture.
    """
    if architecture is not None:
        return estimate_time(architecture, workload, cards, plan.timing, measured_on)
    return None if plan.model.trace is None else _traced_time(plan.model.trace, cards[0][0], plan, measured_on)


def _traced_time(facts: TracedFacts, gpu: Gpu, plan: Plan, measured_on: Gpu | None) -> TimeResult:
    """Return the time of a traced step on `gpu`, scaled to the plan's measured speed if it has one."""
    setting = plan.timing
    step, measured = (
        traced_step(facts, compiled=setting.compiled, channels_last=setting.channels_last),
        setting.measured,
    )
    if step is None:
        task = facts.request.task
        reason = "this trace does not include operation counts: trace the module again"
        return TimeResult(task=task, kind="step" if task == "training" else "service", unsupported=reason)

    def time_on(card: Gpu, count: int) -> TimeResult:
        links = links_of(card, plan.timing)
        return step_time(step, card, links, count, plan.timing.input_samples_per_second)

    estimated = time_on(gpu, plan.count)
    if measured is None or estimated.seconds is None:
        return estimated
    measured_gpu, measured_count = measured_on or gpu, measured.count or plan.count
    is_same = (measured_gpu.id, measured_count) == (gpu.id, plan.count)
    return scale_to_measured(estimated, time_on(measured_gpu, measured_count), measured, is_same=is_same)
