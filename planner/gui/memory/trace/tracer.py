"""Runs traces in the background and applies their results to the plan."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from planner.errors import PlannerError, TraceError
from planner.gui.tasks import TaskRunner
from planner.gui.workspace import Workspace
from planner.paths import traces_dir
from planner.plan.plan import Plan
from planner.trace.recording import TracedFacts, TraceRecording
from planner.trace.request import TraceRequest
from planner.trace.user_code import content_digest

# Imported here or on use, to keep the start of the window fast.
if TYPE_CHECKING:
    from planner.trace.messages import TraceProgress

IDLE_MS: Final = 400
_TASK: Final = "trace"


class RunningTrace(Protocol):
    """Protocol of a trace in progress, as returned by `start_trace`."""

    def cancel(self) -> None:
        """Cancel the trace."""

    def result(self) -> TraceRecording:
        """Wait for the end of the trace and return its recording."""


Start = Callable[[TraceRequest, Callable[["TraceProgress"], None]], RunningTrace]


def start_in_child(request: TraceRequest, on_progress: "Callable[[TraceProgress], None]") -> RunningTrace:
    """Start a trace in a child process, within the default limits on time and memory.

    Raises:
        TraceError: If PyTorch is not installed, or a named file does not exist.
    """
    # Imported here, on first use, to keep the start of the window fast.
    from planner.trace.run import TraceLimits, start_trace

    return start_trace(request, TraceLimits(), on_progress)


@dataclass(frozen=True, slots=True)
class TraceRun:
    """Pending or running trace with its progress and the undo step that its result makes.

    `plan` is the plan whose estimate the trace checks, None if the traced module becomes the plan's model.
    """

    request: TraceRequest
    label: str
    plan: Plan | None = None
    is_change: bool = False
    progress: "TraceProgress | None" = None


@dataclass(frozen=True, slots=True)
class FailedTrace:
    """Request whose trace failed, with the error."""

    request: TraceRequest
    error: PlannerError


@dataclass(frozen=True, slots=True)
class EstimateCheck:
    """Trace of a plan's own model with the plan's settings, for comparison with the estimate."""

    plan: Plan
    facts: TracedFacts


class Tracer(QObject):
    """Runs at most one trace at a time; a newer trace replaces an older trace.

    `changed` is emitted when a trace starts, progresses, ends or fails. `consent_requested` carries a request whose
    code the user has not yet agreed to run; `agree` continues with it.
    """

    changed = Signal()
    consent_requested = Signal(object)
    _progressed = Signal(object, object)

    def __init__(self, workspace: Workspace, tasks: TaskRunner, start: Start = start_in_child) -> None:
        super().__init__(workspace)
        self._workspace, self._tasks, self._start = workspace, tasks, start
        self._pending: TraceRun | None = None
        self.run: TraceRun | None = None
        self.failure: FailedTrace | None = None
        self.check: EstimateCheck | None = None
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._idle.timeout.connect(self._start_pending_run)
        self._progressed.connect(self._on_progress)
        workspace.changed.connect(self._on_plan_changed)
        self.changed.connect(self._note_busy)

    @property
    def requested(self) -> TraceRequest | None:
        """Return the pending, running or failed request of a trace that is to replace the plan's model, or None."""
        for work in (self._pending, self.run):
            if work is not None and work.plan is None:
                return work.request
        return None if self.failure is None else self.failure.request

    @property
    def busy(self) -> bool:
        """Return whether a trace is running or about to start."""
        return self.run is not None or self._idle.isActive()

    @property
    def is_change(self) -> bool:
        """Return whether the running or pending trace is of the plan's module with other settings."""
        work = self._pending or self.run
        return work is not None and work.is_change

    def trace(self, request: TraceRequest) -> None:
        """Trace a module, which becomes the plan's model."""
        self._start_with_consent(TraceRun(request, f"trace of {request.target.short_title}"))

    def change(self, request: TraceRequest, label: str) -> None:
        """Trace the plan's module with other settings after a delay; `label` names the undo step."""
        self._pending = TraceRun(request, label, is_change=True)
        self.failure = None
        self._idle.start()
        self.changed.emit()

    def check_estimate(self) -> None:
        """Trace the plan's model with the plan's settings, to compare the traced memory with the estimate.

        Raises:
            PlannerError: If PyTorch alone cannot run the plan.
        """
        from planner.plan.trace_request import request_of_plan

        plan = self._workspace.plan
        self._start_with_consent(
            TraceRun(request_of_plan(plan, self._workspace.catalog), "check of the estimate", plan)
        )

    @Slot()
    def trace_again(self) -> None:
        """Trace the plan's module again with the same settings, since its file may have changed."""
        facts = self._workspace.plan.model.trace
        if facts is not None:
            self._start_with_consent(TraceRun(facts.request, "trace again", is_change=True))

    @Slot()
    def trace_for_card(self) -> None:
        """Trace the plan's module again with the operators of the plan's card."""
        from planner.plan.trace_request import operator_fields

        facts, gpu = self._workspace.plan.model.trace, self._workspace.evaluation.gpu
        if facts is not None and gpu is not None:
            request = facts.request.evolve(**operator_fields(gpu))
            self._start_with_consent(TraceRun(request, f"trace for {gpu.name}", is_change=True))

    def agree(self, request: TraceRequest) -> None:
        """Store the consent to run the code in `request`, and start the trace."""
        if self._pending is None or self._pending.request != request:
            return
        digest = self._code_digest(request)
        if digest is not None:
            self._workspace.settings.trust(digest)
        self._start_pending_run()

    @Slot()
    def refuse(self) -> None:
        """Discard the request that the user refused to run."""
        self._pending = None
        self.changed.emit()

    @Slot()
    def cancel(self) -> None:
        """Cancel the running and the pending trace; the plan stays unchanged."""
        self._idle.stop()
        self._pending = self.run = None
        self._tasks.cancel(_TASK)
        self.changed.emit()

    @Slot()
    def dismiss(self) -> None:
        """Remove the failed trace, so that its message is no longer shown."""
        self.failure = None
        self.changed.emit()

    def _start_with_consent(self, run: TraceRun) -> None:
        """Start a trace run, after asking for consent if its code was not run before."""
        self._idle.stop()
        self._pending, self.failure = run, None
        try:
            digest = content_digest(run.request)
        except TraceError as error:
            self._set_failure(run.request, error)
            return
        if digest is None or digest in self._workspace.settings.current.trusted_code:
            self._start_pending_run()
        else:
            self.consent_requested.emit(run.request)

    @Slot()
    def _start_pending_run(self) -> None:
        run, self._pending = self._pending, None
        if run is None:
            return
        digest = self._code_digest(run.request)
        if digest is not None and digest not in self._workspace.settings.current.trusted_code:
            self._start_with_consent(run)  # the file changed while this was pending
            return
        try:
            tracing = self._start(run.request, partial(self._progressed.emit, run.request))
        except TraceError as error:
            self._set_failure(run.request, error)
            return
        self.run, self.failure = run, None
        self._tasks.run(
            _TASK,
            partial(_finished_trace_facts, tracing),
            partial(self._apply_result, run),
            self._on_error,
            stop=tracing.cancel,
        )
        self.changed.emit()

    @staticmethod
    def _code_digest(request: TraceRequest) -> str | None:
        try:
            return content_digest(request)
        except TraceError:
            return None  # starting the trace reports why the file cannot be read

    def _apply_result(self, run: TraceRun, facts: TracedFacts) -> None:
        self.run = None
        if run.plan is not None:
            self.check = EstimateCheck(run.plan, facts)
        else:
            with self._workspace.reporting():
                self._workspace.take_trace(facts, run.label)
        self.changed.emit()

    def _on_error(self, error: BaseException) -> None:
        run, self.run = self.run, None
        if not isinstance(error, PlannerError):
            self.changed.emit()
            raise error
        if run is not None:
            self._set_failure(run.request, error)

    def _set_failure(self, request: TraceRequest, error: PlannerError) -> None:
        self._pending = None
        self.failure = FailedTrace(request, error)
        self.changed.emit()

    @Slot(object, object)
    def _on_progress(self, request: TraceRequest, progress: "TraceProgress") -> None:
        if self.run is not None and self.run.request is request:
            self.run = replace(self.run, progress=progress)
            self.changed.emit()

    @Slot()
    def _note_busy(self) -> None:
        self._workspace.note_tracing(self.busy)

    @Slot(object, object)
    def _on_plan_changed(self, old: Plan, new: Plan) -> None:
        """Cancel traces of a module that is no longer the plan's model, for example after an undo."""
        if old.model == new.model:
            return
        if self.failure is not None or self._idle.isActive() or (self.run is not None and self.run.plan is None):
            self.failure = None
            self.cancel()


def _finished_trace_facts(tracing: RunningTrace) -> TracedFacts:
    recording = tracing.result()
    from planner.trace.analysis.memory import facts_of
    from planner.trace.files import store_recording

    store_recording(traces_dir(), recording)
    return facts_of(recording)
