"""A complete trace, from a request to its recording, with bounds where the run depends on unknown values."""

import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch
from torch import nn

import planner
from planner.errors import PlannerError, TraceError
from planner.memory.result import PhaseName
from planner.trace.analysis.live_memory import live_memory
from planner.trace.recording import Category, Environment, ModuleInfo, TraceDifference, TraceRecording
from planner.trace.request import AssumedValue, TraceRequest
from planner.trace.run import TraceLimits, trace
from planner.trace.worker.build import BuiltRun, build_run
from planner.trace.worker.call_sites import CallSites
from planner.trace.worker.compilers import Compilation
from planner.trace.worker.cpu.operators import CpuOperators
from planner.trace.worker.cuda.card_memory import CardMemory
from planner.trace.worker.cuda.device import tensors_on_cards
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.cuda.driver import CardDriver
from planner.trace.worker.cuda.operators import ASSUMED_CAPABILITY, CudaOperators
from planner.trace.worker.distribution import DistributeModule, fake_ranks
from planner.trace.worker.fake_tensors.assumptions import MOST_ROUNDS, Assumptions
from planner.trace.worker.fake_tensors.eager_behavior import eager_behavior
from planner.trace.worker.fake_tensors.values import KnownValues
from planner.trace.worker.ledger import AllocationLedger, FlopCounter, custom_operators
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.refusals import SAVING, UntraceableError
from planner.trace.worker.running import run
from planner.trace.worker.script.host import keep_fullest_card, one_or_more_cards
from planner.trace.worker.script.run import run_script

_PARALLEL_TRACES: Final = 2
_MAX_CONDITIONS: Final = 8
"""Most conditions that are turned around one at a time."""
_MAX_TOLD: Final = 4
_NO_BOUNDS: Final = "No trace with other values succeeded, so how far the peak may be off is not known."
_SHORTEST_SECONDS: Final = 30.0
_TIMES_AS_LONG: Final = 10
"""How many times as long as the first trace one with other values may take; a loop may not end with them."""


def with_bounds(recording: TraceRecording, assumed: tuple[str, ...], conditions: Mapping[str, bool]) -> TraceRecording:
    """Return `recording`, in which `assumed` was assumed, with the bounds of its peak unless no other value matters.

    Values that end in an error do not occur in a run that works, so they bound nothing; a note says if all do. Where
    `conditions` depend on numbers, as in an adaptive solver, a trace with drawn values is returned instead, unless the
    user gave some or it fails: a small network decides there as it does in a real run.
    """
    request = recording.request
    limits = TraceLimits(seconds=max(_SHORTEST_SECONDS, _TIMES_AS_LONG * recording.seconds))
    typical = live_memory(recording.allocations).totals
    with ThreadPoolExecutor(_PARALLEL_TRACES) as pool:
        is_drawn = conditions and not request.assume
        drawn = pool.submit(_traced, request.evolve(unknown_values="drawn"), limits) if is_drawn else None
        traces = pool.map(lambda other: _traced(other, limits), _other_requests(request, conditions))
        levels = [live_memory(found.allocations).totals for found in traces if found is not None]
    if drawn is not None and (found := drawn.result()) is not None:
        recording = found.evolve(request=request)
        levels.append(live_memory(recording.allocations).totals)
    text = " ".join(assumed[:_MAX_TOLD]) + (f" And {len(assumed) - _MAX_TOLD} more." if assumed[_MAX_TOLD:] else "")
    if not levels:
        return recording.evolve(notes=(*recording.notes, f"{text} {_NO_BOUNDS}"))
    low, high = _peak_bounds([typical, *levels])
    if low == high:
        return recording
    difference = TraceDifference(
        name="values that depend on the data",
        explanation=f"{text} The bounds are the peaks with other values; set values with --assume",
        source=f"{len(levels)} more traces: most and fewest selected, numbers that fall slowly, each condition turned "
        f"around, drawn numbers, loops of up to {MOST_ROUNDS} rounds",
        bytes=max(live_memory(recording.allocations).totals) - low,
        low_bytes=0,
        high_bytes=high - low,
    )
    return recording.evolve(differences=(*recording.differences, difference))


def _peak_bounds(levels: list[tuple[int, ...]]) -> tuple[int, int]:
    """Return the least and the largest possible peak by the live bytes of several traces, typical values first.

    Where the traces have the same events, the live bytes at each event are linear in what is selected: they lie between
    the least and the most of all traces, and the peak is at least the largest of the least.
    """
    alike = [found for found in levels if len(found) == len(levels[0])]
    peaks = [max(found) for found in levels]
    return min(max(map(min, zip(*alike, strict=True))), *peaks), max(peaks)


def _other_requests(request: TraceRequest, conditions: Mapping[str, bool]) -> Iterator[TraceRequest]:
    """Yield the request with other unknown values, then with one condition after the other turned around."""
    yield request.evolve(unknown_values="fewest")
    yield request.evolve(unknown_values="most")
    if conditions:
        yield request.evolve(unknown_values="slowest")
    for line, first in list(conditions.items())[:_MAX_CONDITIONS]:
        turned = AssumedValue(name=line, value=0 if first else MOST_ROUNDS)
        yield request.evolve(unknown_values="slowest", assume=(*request.assume, turned))


def _traced(request: TraceRequest, limits: TraceLimits) -> TraceRecording | None:
    """Return `request` traced in a process of its own, as modules keep what they made; None if the trace fails."""
    try:
        return trace(request, limits)
    except PlannerError:
        return None


ReportProgress = Callable[[str, int, int, int], None]
_TESTED_VERSIONS: Final = ((2, 6), (2, 14))
"""Tested versions of PyTorch: from the first version up to, but excluding, the second."""


def record_trace(request: TraceRequest, progress: ReportProgress) -> TraceRecording:
    """Trace the run in `request` on fake tensors, and return its recording.

    Where values were assumed with which the run fails, as a frequency of 0 does that a length is divided by, it is
    traced again with drawn ones.

    Raises:
        TraceError: If the target cannot be built or run; the error names the stage.
    """
    started = time.perf_counter()
    assumed: dict[str, None] = {}
    try:
        return _recorded(request, progress, assumed)
    except Exception as error:
        if request.unknown_values != "bounded" or not assumed or isinstance(error, PlannerError):
            raise
        seconds = time.perf_counter() - started
        limits = TraceLimits(seconds=max(_SHORTEST_SECONDS, _TIMES_AS_LONG * seconds))
        found = _traced(request.evolve(unknown_values="drawn"), limits)
        if found is None:
            raise
    note = "With assumed values the run fails: it was traced with weights and inputs drawn at random, for which there"
    return found.evolve(request=request, notes=(*found.notes, f"{note} are no bounds. {' '.join(assumed)}"))


def _recorded(request: TraceRequest, progress: ReportProgress, assumed: dict[str, None]) -> TraceRecording:
    """Return the recording of `request`, with bounds if it asks for them; what was assumed is added to `assumed`."""
    started = time.perf_counter()
    notes: dict[str, None] = {}
    assumption_differences: list[TraceDifference] = []
    compilation = Compilation()
    call_sites, flops = CallSites(), FlopCounter()
    operators = _emulated_device(request, assumption_differences.append, notes.setdefault)
    torch.manual_seed(0)
    assumptions = Assumptions(
        assumed.setdefault, call_sites.user_and_library_line, request.unknown_values, request.assume
    )
    values = KnownValues(assumptions)
    ledger = AllocationLedger(values, call_sites, flops, operators.hidden_bytes)
    ledger.counts_arrays = request.device == "cuda"
    watcher = Bookkeeper(ledger, call_sites, flops, progress, request, notes)
    with ExitStack() as stack:
        distribute = None
        if request.parallel.strategy != "none":
            distribute = stack.enter_context(fake_ranks(request.parallel, ledger))
        for context in (
            *(ledger, call_sites, operators, eager_behavior(), compilation.as_written(), custom_operators(ledger)),
            *(assumptions.read_as_numbers(), values.read_as_arrays()),
        ):
            stack.enter_context(context)
        driver = None
        if request.device == "cuda":
            driver = stack.enter_context(_pretended_card(request, ledger, watcher))
        ledger.observe_use_counts()
        if request.target.is_script:
            modules = run_script(request, watcher, ledger)
        else:
            modules = _run_target(request, watcher, ledger, distribute)
        keep_fullest_card(ledger, watcher)
        watcher.report_end()
        allocations = ledger.allocations()
    parameters = {id(parameter): parameter for module in modules.values() for parameter in module.parameters()}
    recording = TraceRecording(
        request=request,
        environment=_trace_environment(),
        modules=tuple(_module_infos(modules)),
        parameters=sum(parameter.numel() for parameter in parameters.values()),
        trainable_parameters=sum(parameter.numel() for parameter in parameters.values() if parameter.requires_grad),
        allocations=allocations,
        operators=ledger.operators.names(),
        module_paths=call_sites.modules.names(),
        lines=call_sites.lines.names(),
        shapes=ledger.shapes.names(),
        spans=ledger.spans(),
        differences=tuple(
            difference
            for difference in (
                *assumption_differences,
                *compilation.differences(allocations),
                *([] if driver is None else driver.differences(allocations)),
            )
            if difference.low_bytes < difference.high_bytes
        ),
        notes=tuple(notes),
        flops=flops.total,
        convolution_flops=flops.convolutions,
        product_elements=flops.elements,
        operator_calls=flops.calls,
        seconds=time.perf_counter() - started,
    )
    if request.unknown_values != "bounded" or not assumed:
        return recording
    # Running a trace needs packages that a trace without unknown values need not load.

    return with_bounds(recording, tuple(assumed), assumptions.conditions)


def _run_target(
    request: TraceRequest, watcher: RunObserver, ledger: AllocationLedger, distribute: DistributeModule | None
) -> dict[str, nn.Module]:
    """Build and run the modules of `request`, distributed over its ranks, and return them."""
    built = build_run(request, watcher)
    if distribute is not None:
        _distribute_modules(built, distribute, watcher)
    if request.parallel.strategy == "fsdp":
        ledger.forget_freed()
        watcher.add_note(
            "Parameters are created off the GPU and loaded as shards: the load phase holds only the shards."
        )
    with patched_attributes(torch, save=_refuse_saving):
        run(built, request, watcher)
    return built.modules


def _refuse_saving(*_: object, **__: object) -> None:
    """Refuse to overwrite a person's files with tensors that have no data."""
    raise UntraceableError(*SAVING)


def _distribute_modules(built: BuiltRun, distribute: DistributeModule, watcher: RunObserver) -> None:
    """Replicate or shard the built modules over the ranks, and register them again."""
    if built.step is not None:
        raise TraceError("build", "a custom step cannot be distributed over ranks", "Omit --ranks, or the step.")
    built.modules = {name: distribute(module) for name, module in built.modules.items()}
    watcher.register_modules(built.modules)
    for module in built.modules.values():
        watcher.label(module.parameters(), "parameters")


def _emulated_device(
    request: TraceRequest, note: Callable[[TraceDifference], None], tell: Callable[[str], Any]
) -> CpuOperators | CudaOperators:
    """Return the context that emulates the assumed device's operators."""
    if request.device == "cpu":
        return CpuOperators(note, tell)
    return CudaOperators(_capability(request), note, tell)


@contextmanager
def _pretended_card(request: TraceRequest, ledger: AllocationLedger, watcher: RunObserver) -> Iterator[CardDriver]:
    """Let `torch.cuda` answer as on the assumed card, and tensors say that they are there."""
    capability = _capability(request) or ASSUMED_CAPABILITY
    driver = CardDriver(capability, request.card, CardMemory(ledger), watcher)
    # The fake ranks of a sharded module have CPU tensors, by which they choose how they communicate.
    is_sharded = request.parallel.strategy != "none"
    with ExitStack() as stack:
        stack.enter_context(driver.pretended())
        if not is_sharded:
            stack.enter_context(tensors_on_cards(ledger))
            if not request.target.is_script:
                stack.enter_context(one_or_more_cards(ledger, watcher))
        yield driver


def _capability(request: TraceRequest) -> tuple[int, int] | None:
    """Return the compute capability of the requested card."""
    major, _, minor = (request.compute_capability or "").partition(".")
    return (int(major), int(minor)) if major else None


def _trace_environment() -> Environment:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    transformers = sys.modules.get("transformers")
    return Environment(
        planner=planner.__version__,
        python=platform.python_version(),
        torch=torch.__version__,
        transformers=getattr(transformers, "__version__", None),
        tested=_TESTED_VERSIONS[0] <= version < _TESTED_VERSIONS[1],
    )


def _module_infos(modules: Mapping[str, nn.Module]) -> Iterator[ModuleInfo]:
    """Yield each module's path, class and parameters; a shared parameter is counted with the first module."""
    counted: set[int] = set()
    for name, root in modules.items():
        for path, module in root.named_modules(prefix=name):
            own_parameters = [
                parameter for parameter in module.parameters(recurse=False) if id(parameter) not in counted
            ]
            counted.update(map(id, own_parameters))
            yield ModuleInfo(
                path=path,
                class_name=type(module).__name__,
                parameters=sum(parameter.numel() for parameter in own_parameters),
                trainable=sum(parameter.numel() for parameter in own_parameters if parameter.requires_grad),
            )


class Bookkeeper(RunObserver):
    """Observer that forwards a run's events to the ledger, and reports progress."""

    def __init__(
        self,
        ledger: AllocationLedger,
        call_sites: CallSites,
        flops: FlopCounter,
        progress: ReportProgress,
        request: TraceRequest,
        notes: dict[str, None],
    ) -> None:
        self._ledger, self._call_sites, self._flops = ledger, call_sites, flops
        self._progress = progress
        self._steps = request.steps if request.task == "training" else 1
        self._step = -1
        self._notes = notes
        self._has_card = request.device == "cuda"
        self._is_script = request.target.is_script

    def begin_phase(self, name: PhaseName, step: int) -> None:
        """Begin a phase; operations are counted per step."""
        if name in ("forward", "prefill") and step != self._step:
            self._step = step
            self._flops.reset_counts()
        self._ledger.begin_phase(name, step)
        stage = "build" if name == "load" and not self._is_script else name
        self._progress(stage, step, self._steps, self._ledger.events)

    def label(self, tensors: Iterable[torch.Tensor], category: Category, parameter: torch.Tensor | None = None) -> None:
        """Set the category of the allocations of `tensors`, and the module that owns `parameter` as their owner."""
        self._ledger.label(tensors, category, self._call_sites.owner_number(parameter))

    def mark_on_host(self, tensors: Iterable[torch.Tensor]) -> None:
        """Exclude tensors that would be in host memory if a card is assumed."""
        if self._has_card:
            self._ledger.forget_allocations(tensors)

    def register_modules(self, named: Mapping[str, nn.Module]) -> None:
        """Register the paths of modules, and make them the owners of their parameters."""
        self._call_sites.register(named)
        for root in named.values():
            for parameter in root.parameters():
                owner = self._call_sites.owner_number(parameter)
                if owner is not None:
                    self._ledger.set_owner(parameter, owner)

    def add_note(self, text: str) -> None:
        """Add a note to the recording, once."""
        self._notes.setdefault(text)

    def report_end(self) -> None:
        """Report that the run is over."""
        self._progress("finish", self._steps, self._steps, self._ledger.events)
