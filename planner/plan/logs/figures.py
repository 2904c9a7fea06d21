"""Comparison of a time estimate with the speeds in a log, each under the conditions of its measurement."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.logs.reading import FigureName, LoggedFigure, LogReading
from planner.performance.result import Basis, TimeResult
from planner.performance.setting import MeasuredSpeed
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.workload.workload import Inference, Workload

FigureUnit = Literal["tokens/s", "s", "tokens"]
FIGURE_UNITS: Final[dict[FigureName, FigureUnit]] = {
    "prompt": "tokens/s",
    "generation": "tokens/s",
    "throughput": "tokens/s",
    "first-token": "s",
    "output-token": "s",
    "step": "s",
    "request": "s",
    "cache-tokens": "tokens",
}
"""Unit of each figure."""
_BASES: Final[dict[Basis, str]] = {
    "measured": "your own measurement",
    "same card": "measurements on this GPU",
    "family": "measurements on GPUs of the same family",
    "unmeasured": "measurements on GPUs of other families",
}
_CACHES: Final = {"f32": "fp32", "f16": "fp16", "bf16": "bf16"}
_SHORT_ANSWER: Final = 128
_SIXTEEN_BITS: Final = ("fp16", "bf16")


class FigureComparison(Spec):
    """A speed or a token count as estimated, with its range, and as measured.

    The estimate is under the conditions of the measurement; `is_of_plan` is whether these are the plan's own. Without
    an estimate `explanation` says why.
    """

    measured: LoggedFigure
    unit: FigureUnit
    predicted: float | None = None
    predicted_low: float | None = None
    predicted_high: float | None = None
    is_of_plan: bool = False
    explanation: str = ""

    @property
    def difference(self) -> float | None:
        """Return measured minus estimated; None without an estimate."""
        return None if self.predicted is None else self.measured.value - self.predicted

    @property
    def is_in_range(self) -> bool | None:
        """Return whether the measurement, with its own error, is within the estimated range; None without one."""
        if self.predicted_low is None or self.predicted_high is None:
            return None
        return self.predicted_low <= self.measured.high and self.measured.low <= self.predicted_high


class _Conditions(NamedTuple):
    """Tokens of the prompt and of the context with the answer, and the requests that run at the same time."""

    prompt: int
    context: int
    requests: int


class FigureEstimate(NamedTuple):
    """An estimated figure with its range, in which four of five cases lie."""

    value: float
    low: float | None
    high: float | None


def compare_figures(evaluation: Evaluation, reading: LogReading, catalog: Catalog) -> Iterator[FigureComparison]:
    """Yield each speed of `reading` beside the estimate under its conditions."""
    known: dict[_Conditions | None, Evaluation | str] = {None: evaluation}
    for figure in reading.figures:
        conditions = _conditions(figure, evaluation)
        if conditions is not None and conditions not in known:
            known[conditions] = _evaluation_under(conditions, evaluation, catalog)
        yield _compared(figure, known[conditions], evaluation)


def estimated_figure(name: FigureName, evaluation: Evaluation) -> FigureEstimate | None:
    """Return the estimate of a figure under the plan's own conditions, None if the plan has none.

    **Formula**: prompt = requests · prompt tokens / t_first; throughput = requests · answer tokens / t_request.
    """
    if name == "cache-tokens":
        pool, bounds = evaluation.memory.cache_pool, evaluation.memory.cache_pool_bounds
        if pool is None or bounds is None or not pool.bytes:
            return None
        low, high = (bound / pool.bytes * pool.tokens for bound in bounds)
        return FigureEstimate(pool.tokens, low, high)
    time = evaluation.time
    if time is None or time.seconds is None:
        return None
    return _timed_figure(name, time, evaluation.workload)


def condition_notes(figures: tuple[FigureComparison, ...]) -> Iterator[str]:
    """Yield a note if speeds were measured under other conditions than the plan's."""
    if any(figure.predicted is not None and not figure.is_of_plan for figure in figures):
        yield "Speeds measured with other prompts, answers or requests than the plan's are estimated for those."


def request_tokens(workload: Inference) -> tuple[int, int]:
    """Return tokens of prompt and answer of a request that measures `workload`, whose defaults are filled in.

    A plan that counts no answer is measured with a short one within its context.
    """
    context, prompt = workload.context_length or 1, workload.prompt_length or 1
    answer = context - prompt if context > prompt else min(_SHORT_ANSWER, max(context // 2, 1))
    return max(context - answer, 1), answer


def measured_speed(figures: tuple[FigureComparison, ...], evaluation: Evaluation, note: str) -> MeasuredSpeed | None:
    """Return the speed to keep in the plan, None if none was measured under the plan's own conditions.

    The last figure counts: of steps, else of the answers' tokens per second on all GPUs together.
    """
    own = {figure.measured.name: figure.measured for figure in figures if figure.is_of_plan}
    if (step := own.get("step") or own.get("request")) is not None:
        return MeasuredSpeed(value=step.value, unit="seconds/step", note=note)
    workload = evaluation.workload
    if not isinstance(workload, Inference):
        return None
    replicas = workload.parallel.data or 1
    if (each := own.get("output-token")) is not None:
        return MeasuredSpeed(value=replicas * workload.batch / each.value, unit="tokens/s", note=note)
    generated = own.get("generation")
    return None if generated is None else MeasuredSpeed(value=generated.value * replicas, unit="tokens/s", note=note)


def _timed_figure(name: FigureName, time: TimeResult, workload: Workload) -> FigureEstimate | None:
    """Return a time, or what is counted in a time per second."""
    first = (time.first_token_seconds, time.low_first_token_seconds, time.high_first_token_seconds)
    each = (time.output_token_seconds, time.low_output_token_seconds, time.high_output_token_seconds)
    whole, unknown = (time.seconds, time.low_seconds, time.high_seconds), (None, None, None)
    read = generated = answered = 0
    if isinstance(workload, Inference):
        read, generated = workload.batch * (workload.prompt_length or 1), workload.batch
        answer = (workload.context_length or 0) - (workload.prompt_length or 0)
        answered = (workload.parallel.data or 1) * workload.batch * answer if each[0] is not None else 0
    amounts = {
        "prompt": (read, first),
        "generation": (generated, each),
        "throughput": (answered, whole),
        "first-token": (None, first),
        "output-token": (None, each),
        "step": (None, whole if time.kind == "step" else unknown),
        "request": (None, whole if time.kind == "service" else unknown),
    }
    amount, (seconds, low, high) = amounts[name]
    if seconds is None or (amount is not None and amount <= 0):
        return None
    if amount is None:
        return FigureEstimate(seconds, low, high)
    # The shortest time is the highest rate.
    return FigureEstimate(amount / seconds, amount / high if high else None, amount / low if low else None)


def _conditions(figure: LoggedFigure, evaluation: Evaluation) -> _Conditions | None:
    """Return the conditions of a measurement, None if they are the plan's own or the log states none.

    A speed of prompts does not depend on answers.
    """
    workload = evaluation.workload
    if not isinstance(workload, Inference) or figure.requests is None:
        return None
    prompt = max((figure.prompt_tokens or 0) + figure.depth_tokens, 1)
    found = _Conditions(prompt, prompt + (figure.answer_tokens or 0), figure.requests)
    own = _Conditions(workload.prompt_length or 1, workload.context_length or 1, workload.batch)
    is_own = found == own or (figure.name == "prompt" and found.prompt == own.prompt and found.requests == own.requests)
    return None if is_own else found


def _evaluation_under(conditions: _Conditions, evaluation: Evaluation, catalog: Catalog) -> Evaluation | str:
    """Return the evaluation of the plan under other conditions, or the reason why there is none."""
    plan = evaluation.plan
    try:
        changed = plan.workload.evolve(
            prompt_length=conditions.prompt, context_length=conditions.context, batch=conditions.requests
        )
    except SpecError as error:
        return error.message
    return evaluate(plan.evolve(workload=changed), catalog)


def _compared(figure: LoggedFigure, under: Evaluation | str, evaluation: Evaluation) -> FigureComparison:
    unit = FIGURE_UNITS[figure.name]
    if isinstance(under, str):
        reason = f"There is no estimate under the conditions of this measurement: {under}."
        return FigureComparison(measured=figure, unit=unit, explanation=reason)
    estimate = None if _is_unlike(figure) else estimated_figure(figure.name, under)
    if estimate is None:
        return FigureComparison(measured=figure, unit=unit, explanation=_missing_reason(figure, under))
    compared = FigureComparison(
        measured=figure,
        unit=unit,
        predicted=estimate.value,
        predicted_low=estimate.low,
        predicted_high=estimate.high,
        is_of_plan=under is evaluation,
    )
    return compared.evolve(explanation=" ".join(_explanations(compared, under)))


def _is_unlike(figure: LoggedFigure) -> bool:
    """Return whether a figure is of what no estimate describes.

    These are prompts after others, and first tokens of a server that reads each prompt beside the others' answers.
    """
    return (figure.name == "prompt" and figure.depth_tokens > 0) or (
        figure.name == "first-token" and figure.is_served and (figure.requests or 1) > 1
    )


def _missing_reason(figure: LoggedFigure, under: Evaluation) -> str:
    if figure.name == "cache-tokens":
        return "The plan's program does not fill the GPU with its cache."
    if under.time is None:
        return "A time needs a GPU: the plan names none."
    if under.time.seconds is None:
        return f"There is no time estimate: {under.time.unsupported}."
    if _is_unlike(figure) and figure.name == "first-token":
        return "The estimate is for prompts that arrive together; this server reads each beside the others' answers."
    return "The estimate has no such figure."


def _explanations(compared: FigureComparison, under: Evaluation) -> Iterator[str]:
    """Yield what the estimate is for, and what may explain a difference outside its range."""
    figure, time = compared.measured, under.time
    yield from _other_settings(figure, under)
    if compared.is_in_range is not False:
        return
    if figure.name == "cache-tokens":
        share = "what weights, activations and other processes leave of the engine's share"
        yield f"The cache takes {share}: see these rows."
        return
    assert time is not None
    assert compared.predicted is not None
    is_slower = (figure.value > compared.predicted) is (compared.unit == "s")
    bounds = {
        "prompt": time.first_token_bound,
        "first-token": time.first_token_bound,
        "step": time.bound,
        "request": time.bound,
    }
    bound = bounds.get(figure.name, time.token_bound)
    pace = "Slower" if is_slower else "Faster"
    yield f"{pace} than the range: the estimate is limited by {bound} and rests on {_BASES[time.basis]}."
    if is_slower:
        yield "Watch clocks, power limit and other load during the run: `gpu-planner monitor`."


def _other_settings(figure: LoggedFigure, under: Evaluation) -> Iterator[str]:
    """Yield the settings in which the measured run differs from the plan."""
    workload, architecture = under.workload, under.architecture
    if not isinstance(workload, Inference) or architecture is None:
        return
    most = architecture.depth + 1
    planned = most if workload.gpu_layers is None else min(workload.gpu_layers, most)
    if figure.gpu_layers is not None and min(figure.gpu_layers, most) != planned:
        yield f"The run had {figure.gpu_layers:,} layers on the GPU, the plan has {planned:,} of {most:,}."
    cache = None if figure.kv_cache is None else _CACHES.get(figure.kv_cache, figure.kv_cache)
    if cache not in (None, workload.kv_cache) and not {cache, workload.kv_cache} <= {*_SIXTEEN_BITS}:
        yield f"The run's KV cache is in {cache}, the plan's in {workload.kv_cache}."
