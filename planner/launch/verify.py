"""Commands that measure on the real GPUs what a plan estimates, each with the figures that its output should show.

What they print is read by `planner.memory.logs.read`, and compared by `planner.plan.logs.comparison.compare_plan`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from planner.base import Spec
from planner.launch.launch import launch_facts
from planner.launch.settings import Launcher, Measurement
from planner.launch.software import LAUNCHERS
from planner.memory.logs.reading import FigureName
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.logs.comparison import estimated_bytes, without_measurements
from planner.plan.logs.figures import FIGURE_UNITS, FigureUnit, estimated_figure, request_tokens
from planner.plan.logs.log_amounts import RowName
from planner.plan.plan import Plan
from planner.workload.training import Training
from planner.workload.workload import Inference

_GENERATING: Final = ("decoder", "vision-language")
_WORD: Final = re.compile(r"\b(?:STEPS|WARM_UP|TIMED|CALL|KEY|REQUESTS|PROMPT|ANSWER)\b|PEAKS")
_STEPS: Final = 8
_WARM_UP: Final = 3
_TORCH_MEMORY: Final[tuple[tuple[RowName, str], ...]] = (
    ("allocated", "allocated_bytes.all.peak"),
    ("reserved", "reserved_bytes.all.peak"),
)
_PEAKS: Final = """\
keys = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")
peaks = {key: torch.cuda.memory_stats()[key] for key in keys}
"""
_REPEATED: Final = """\
import json, time, torch

for number in range(STEPS):  # the first WARM_UP warm up
    if number == WARM_UP:
        torch.cuda.synchronize()
        start = time.perf_counter()
    CALL
torch.cuda.synchronize()
seconds = (time.perf_counter() - start) / TIMED
PEAKSprint(json.dumps({"KEY": seconds, **peaks}))
"""
_GENERATION: Final = """\
import json, time, torch

def timed(tokens):
    torch.cuda.synchronize()
    start = time.perf_counter()
    model.generate(prompts, min_new_tokens=tokens, max_new_tokens=tokens, do_sample=False)
    torch.cuda.synchronize()
    return time.perf_counter() - start

run = {"requests": REQUESTS, "prompt_tokens": PROMPT, "answer_tokens": ANSWER}
shape = (run["requests"], run["prompt_tokens"])
prompts = torch.randint(0, model.config.vocab_size, shape, device="cuda")  # `model` is yours, loaded
timed(2)  # warms up
first, whole = timed(1), timed(run["answer_tokens"])
each = (whole - first) / max(run["answer_tokens"] - 1, 1)
PEAKSprint(json.dumps({**run, "seconds_to_first_token": first, "seconds_per_output_token": each, **peaks}))
"""
_SMI: Final = (
    "nvidia-smi --query-gpu=index,name,memory.used,memory.total --format=csv\n"
    "echo\n"
    "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory --format=csv"
)


class ExpectedAmount(Spec):
    """An amount that the output of a command should show: its estimate with its range, and the words beside it."""

    name: RowName | FigureName
    """Row of the comparison, such as `weights` or `generation`."""
    unit: FigureUnit | Literal["bytes"]
    """Unit of the values."""
    value: float
    """The estimate."""
    low: float | None
    """Lower end of its range; None without one."""
    high: float | None
    """Upper end of its range; None without one."""
    prints: str
    """Words beside the amount in the output."""


class PlanCheck(Spec):
    """A command, or lines of Python, that measure what a plan estimates, and what they should show."""

    title: str
    """What is measured, and when."""
    command: str
    """The command, ready to copy."""
    language: Literal["shell", "python"]
    """Whether it is of a shell or of Python."""
    expected: tuple[ExpectedAmount, ...]
    """What the output should show."""


def plan_checks(plan: Plan, catalog: Catalog) -> tuple[PlanCheck, ...]:
    """Return the commands that measure the estimate of `plan` with its program and its GPUs.

    Corrections and a measured speed of the plan are left out: the estimate itself is checked.

    Raises:
        SpecError: If the plan cannot be evaluated, or cannot run as its server would be started.
    """
    own = without_measurements(plan)
    launcher = _launcher(own)
    if launcher is None:
        evaluation = evaluate(own, catalog)
        found: tuple[Measurement, ...] = (_torch_measurement(evaluation),)
    else:
        # The plan is measured as it is estimated, with what it leaves open at the program's own defaults.
        facts = launch_facts(own, catalog, launcher._replace(complete=lambda plan: plan))
        evaluation = facts.evaluation
        found = launcher.measure(facts, launcher.write(facts)) if launcher.measure else ()
    if evaluation.gpu is None or evaluation.gpu.vendor == "NVIDIA":
        smi = Measurement(
            "Whole GPU: during the run",
            _SMI,
            (("process", "used_gpu_memory"), ("card", "memory.used")),
        )
        found = (*found, smi)
    timed = _as_timed(evaluation, catalog)
    return tuple(_check(item, evaluation, timed) for item in found)


def _launcher(plan: Plan) -> Launcher | None:
    """Return the server that runs the plan, None for what runs in a script of its own."""
    if plan.model.trace is not None or isinstance(plan.workload, Training):
        return None
    profile = plan.workload.profile
    servers = [one for one in LAUNCHERS.values() if one.task == "inference" and profile in one.profiles]
    return next((one for one in servers if one.measure), next(iter(servers), None))


def _torch_measurement(evaluation: Evaluation) -> Measurement:
    workload, title = evaluation.workload, "Memory and speed: in your script"
    task = workload.task if evaluation.traced is None else evaluation.traced.request.task
    if task == "training":
        call = f"train_step()  # yours: {_step_text(evaluation)}"
        lines = _repeated_lines(call, "seconds_per_step")
        return Measurement(title, lines, _TORCH_MEMORY, (("step", "seconds_per_step"),))
    if evaluation.architecture is None or evaluation.architecture.kind not in _GENERATING:
        lines = _repeated_lines("request()  # yours: one pass of the whole batch", "seconds_per_request")
        return Measurement(title, lines, _TORCH_MEMORY, (("request", "seconds_per_request"),))
    assert isinstance(workload, Inference)
    prompt, answer = request_tokens(workload)
    words = {"REQUESTS": workload.batch, "PROMPT": prompt, "ANSWER": answer, "PEAKS": _PEAKS}
    figures: tuple[tuple[FigureName, str], ...] = (
        ("first-token", "seconds_to_first_token"),
        ("output-token", "seconds_per_output_token"),
    )
    return Measurement(title, _filled(_GENERATION, words), _TORCH_MEMORY, figures)


def _repeated_lines(call: str, key: str) -> str:
    words = {"STEPS": _STEPS, "WARM_UP": _WARM_UP, "TIMED": _STEPS - _WARM_UP}
    return _filled(_REPEATED, {**words, "CALL": call, "KEY": key, "PEAKS": _PEAKS})


def _filled(template: str, words: Mapping[str, object]) -> str:
    return _WORD.sub(lambda found: str(words[found[0]]), template)


def _step_text(evaluation: Evaluation) -> str:
    workload = evaluation.workload
    if not isinstance(workload, Training):
        return "one step as it was traced"
    times = f"{workload.gradient_accumulation} × " if workload.gradient_accumulation > 1 else ""
    length = f"{workload.sequence_length:,} tokens" if workload.sequence_length else "samples"
    return f"forward and backward of {times}{workload.micro_batch} × {length}, then optimizer.step()"


def _check(item: Measurement, evaluation: Evaluation, timed: Evaluation) -> PlanCheck:
    return PlanCheck(
        title=item.title,
        command=item.command,
        language="python" if item.command.startswith("import ") else "shell",
        expected=(*_expected_memory(item, evaluation), *_expected_figures(item, timed)),
    )


def _expected_memory(item: Measurement, evaluation: Evaluation) -> Iterator[ExpectedAmount]:
    for name, prints in item.memory:
        amount = estimated_bytes(evaluation, name)
        if amount is not None and amount.bytes:
            value, low, high = amount
            yield ExpectedAmount(name=name, unit="bytes", value=value, low=low, high=high, prints=prints)


def _expected_figures(item: Measurement, timed: Evaluation) -> Iterator[ExpectedAmount]:
    for name, prints in item.figures:
        figure = estimated_figure(name, timed)
        if figure is not None:
            value, low, high = figure
            yield ExpectedAmount(name=name, unit=FIGURE_UNITS[name], value=value, low=low, high=high, prints=prints)


def _as_timed(evaluation: Evaluation, catalog: Catalog) -> Evaluation:
    """Return the evaluation with the lengths by which it is measured: a plan without an answer gets a short one."""
    workload = evaluation.workload
    if not isinstance(workload, Inference) or evaluation.traced is not None or not workload.context_length:
        return evaluation
    prompt, _ = request_tokens(workload)
    if prompt == workload.prompt_length:
        return evaluation
    return evaluate(evaluation.plan.evolve(workload=evaluation.plan.workload.evolve(prompt_length=prompt)), catalog)
