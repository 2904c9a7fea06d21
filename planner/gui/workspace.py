"""The window's plan: the only place where it is changed, undone, evaluated, opened and saved."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QUndoCommand, QUndoStack

from planner.cost.terms import CostTerms, DailyHours
from planner.errors import PlannerError, SpecError
from planner.gui.navigator import Navigator
from planner.gui.settings import SettingsStore
from planner.plan.catalog import Catalog
from planner.plan.editing import TASK_OF_GOAL, WORKLOAD, goal_fields, goal_terms, resolve_conflicts
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.present.plan.settings import adjustments_sentence
from planner.trace.recording import TracedFacts
from planner.workload.choices import Goal
from planner.workload.workload import Inference, Training, Workload

if TYPE_CHECKING:
    from planner.monitor.readings.inventory import Device
    from planner.plan.cost import PlanCost

Detection = Literal["pending", "done", "failed"]
GESTURE_IDLE_MS: Final = 1000
SAMPLE_PLAN: Final = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Inference(prompt_length=3072),  # the rest of the context is left for the answer
    gpu="rtx-4090",
)
_SMALL_MODEL: Final = ModelChoice(id="openai-community/gpt2")
_DAYS_PER_WEEK: Final = 7


class PlanState(NamedTuple):
    """Plan evaluated with `catalog`, and the `pinned` plan, if any, that an undo step restores with the plan."""

    evaluation: Evaluation
    catalog: Catalog
    pinned: Evaluation | None = None

    @property
    def plan(self) -> Plan:
        """Return the plan."""
        return self.evaluation.plan

    def with_catalog(self, catalog: Catalog) -> "PlanState":
        """Return a state with the same plan and pinned plan, evaluated with `catalog`.

        Raises:
            PlannerError: If one of them cannot be evaluated with it.
        """
        if self.catalog is catalog:
            return self
        pinned = None if self.pinned is None else evaluate(self.pinned.plan, catalog)
        return PlanState(evaluate(self.plan, catalog), catalog, pinned)


class PlanUndoStep(QUndoCommand):
    """Undo step of the plan; it merges with the next step of the same label and gesture.

    `take` shows a state and returns whether that succeeded; otherwise the step is removed from the history.
    """

    def __init__(
        self, take: Callable[[PlanState], bool], label: str, gesture: int, old: PlanState, new: PlanState
    ) -> None:
        super().__init__(label)
        self._set_state = take
        self.gesture = gesture
        self.old, self.new = old, new

    def redo(self) -> None:
        """Show the plan after the change."""
        self.setObsolete(not self._set_state(self.new))

    def undo(self) -> None:
        """Show the plan before the change."""
        self.setObsolete(not self._set_state(self.old))

    def id(self) -> int:
        """Return the same id for all undo steps, which Qt needs for merging."""
        return 1

    def mergeWith(self, other: QUndoCommand) -> bool:
        """Merge the undo step `other` into this one if both have the same label and gesture."""
        if not isinstance(other, PlanUndoStep) or (other.text(), other.gesture) != (self.text(), self.gesture):
            return False
        self.new = other.new
        self.setObsolete(self.new.plan == self.old.plan)
        return True


class Pin(QObject):
    """The pinned plan, with which the current plan is compared; `changed` is emitted on each pin and unpin."""

    changed = Signal()

    def __init__(self, workspace: "Workspace") -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self.evaluation: Evaluation | None = None

    @property
    def plan(self) -> Plan | None:
        """Return the pinned plan, or None."""
        return None if self.evaluation is None else self.evaluation.plan

    def put(self, plan: Plan | None) -> None:
        """Pin `plan` for comparison; None unpins the pinned plan.

        Raises:
            PlannerError: If it cannot be evaluated; the pinned plan stays.
        """
        self.show(None if plan is None else evaluate(plan, self._workspace.catalog))

    def show(self, evaluation: Evaluation | None) -> None:
        """Pin the evaluated plan in `evaluation` for comparison; None unpins the pinned plan."""
        self.evaluation = evaluation
        self.changed.emit()

    def renew(self) -> None:
        """Evaluate the pinned plan with the current catalog; after a failure, unpin the plan and report the error."""
        try:
            self.put(self.plan)
        except PlannerError as error:
            self.put(None)
            message = f"The pinned plan was unpinned because it can no longer be shown: {error.message}."
            self._workspace.failed.emit(PlannerError(message, "Pin another plan to compare with."))

    def swap(self) -> None:
        """Swap the pinned and the current plan in one undo step."""
        if self.evaluation is not None and self.plan != self._workspace.plan:
            self._workspace.swap_pinned(self.evaluation)


class Workspace(QObject):
    """A window's plan with its evaluation and undo history.

    Signals: `changed` carries the old and the new plan; `file_changed` follows the file, its modified state and the
    choice of a plan of one's own; `failed` carries a `PlannerError` for the banner, `noticed` a message and its
    details, `adjusted` a sentence about fields adjusted by a change, or an empty string; `devices_found` follows
    changes of this machine's cards, `detection_ended` the end of the search for them, `tracing_changed` the start and
    end of a trace; `succeeded` says that something else than a change of the plan worked, so that an earlier error is
    over.
    `cost` is the cost of the current plan, once it has been computed. `base` is the content of the plan's file when it
    was last read or saved, None without a file or where it is not known.
    """

    changed = Signal(object, object)
    file_changed = Signal()
    failed = Signal(object)
    noticed = Signal(str, str)
    adjusted = Signal(str)
    devices_found = Signal()
    detection_ended = Signal()
    tracing_changed = Signal()
    succeeded = Signal()

    def __init__(
        self, catalog: Catalog, settings: SettingsStore, plan: Plan = SAMPLE_PLAN, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.catalog = catalog
        self.settings = settings
        self.path: Path | None = None
        self.base: Plan | None = None
        self.devices: tuple[Device, ...] = ()
        self.cost: PlanCost | None = None
        self.detection: Detection = "pending"
        self.is_tracing = False
        self._state = PlanState(evaluate(plan, catalog), catalog)
        self._workloads: dict[str, Workload] = {
            "training": Training(),
            "inference": Inference(),
            plan.workload.task: plan.workload,
        }
        self._gesture = 0
        self._is_own = False
        self._idle = QTimer(self, singleShot=True, interval=GESTURE_IDLE_MS)
        self._idle.timeout.connect(self.end_gesture)
        self.undo_stack = QUndoStack(self)
        self.pin = Pin(self)
        self.navigator = Navigator(self)
        self.undo_stack.cleanChanged.connect(self._on_clean_changed)

    @property
    def plan(self) -> Plan:
        """Return the current plan, which is always valid."""
        return self._state.plan

    @property
    def evaluation(self) -> Evaluation:
        """Return the evaluation of the current plan."""
        return self._state.evaluation

    @property
    def is_sample(self) -> bool:
        """Return whether the plan is still the sample, of which nobody chose the model, the workload or the cards."""
        return not self._is_own and self.path is None and _subject(self.plan) == _subject(SAMPLE_PLAN)

    @property
    def modified(self) -> bool:
        """Return whether the plan differs from its file or, without a file, from the initial plan."""
        return not self.undo_stack.isClean()

    def apply(self, label: str, **changes: object) -> None:
        """Change fields of the plan in an undo step called `label`; such steps merge within a gesture.

        Raises:
            SpecError: If a value is not allowed; the plan stays as it was.
            PlannerError: If the changed plan cannot be evaluated; the plan stays as it was.
        """
        self._push_step(label, self.plan.evolve(**changes))

    def answer(self, label: str, answer: Mapping[str, object]) -> None:
        """Change fields of the plan, and adjust other fields that conflict with the change, in one undo step.

        Fields of the workload are named like `workload.lora.rank`. Conflicts are resolved against the plan from before
        the gesture, so that a half-typed number adjusts nothing for good.

        Raises:
            SpecError: If a value is not allowed; the plan stays as it was.
            PlannerError: If the changed plan cannot be evaluated; the plan stays as it was.
        """
        # The start of the window does not wait for modules that only a change needs.

        fields = dict(answer)
        task = fields.pop(f"{WORKLOAD}task", None)
        start = self.before(label)
        if task is not None:
            start = start.evolve(workload=self.workload_of(task))
        resolved = resolve_conflicts(start, fields, self.catalog)
        self._push_step(label, resolved.plan)
        self.adjusted.emit(adjustments_sentence(resolved.adjustments, resolved.plan.workload))

    def set_goal(self, goal: Goal) -> None:
        """Run, fine-tune or train the plan's model, with the last workload of that task, in one undo step.

        Raises:
            PlannerError: If the plan cannot be evaluated; the plan stays as it was.
        """
        task = TASK_OF_GOAL[goal]
        plan = self.plan.evolve(workload=self.workload_of(task))
        terms = {"cost": goal_terms(plan.cost, goal)}
        self.answer("task", {f"{WORKLOAD}task": task, **goal_fields(plan, goal, self.catalog), **terms})

    def begin(
        self, goal: Goal, model: ModelChoice, gpu: str | None = None, count: int = 1, *, is_owned: bool = False
    ) -> None:
        """Plan anew for `goal` with a model and with cards, which the person has or not, in one undo step.

        Raises:
            PlannerError: If the plan cannot be evaluated; the plan stays as it was.
        """
        workload = Training() if TASK_OF_GOAL[goal] == "training" else Inference()
        terms = goal_terms(CostTerms(), goal)
        if is_owned:
            terms = terms.evolve(buy=terms.buy.evolve(owned=True))
        plan = Plan(model=model, workload=workload, gpu=gpu, count=count, cost=terms)
        started = resolve_conflicts(plan, goal_fields(plan, goal, self.catalog), self.catalog).plan
        self._take_plan(f"{goal} {model.id.rpartition('/')[2]}", started, is_own=True)

    def begin_pricing(self, gpu: str, count: int, hours_per_day: float, years: float) -> str:
        """Plan the cost of cards that are in use so many hours every day, whatever they compute, in one undo step.

        A plan needs a model: the sample's stands in, or a small one that fits any card. Return its id.

        Raises:
            PlannerError: If the plan cannot be evaluated; the plan stays as it was.
        """
        job = DailyHours(hours_per_day=hours_per_day, days_per_week=_DAYS_PER_WEEK)
        terms = CostTerms(job=job, horizon_years=years)
        plan = Plan(model=SAMPLE_PLAN.model, workload=Inference(), gpu=gpu, count=count, cost=terms)
        if evaluate(plan, self.catalog).memory.verdict != "fits":
            plan = plan.evolve(model=_SMALL_MODEL)
        self._take_plan(f"price of {self.catalog.hardware.gpu(gpu).name}", plan, is_own=True)
        return plan.model.id

    def show_sample(self) -> None:
        """Make the sample the plan, in one undo step."""
        self._take_plan("sample plan", SAMPLE_PLAN, is_own=False)

    def take_trace(self, facts: TracedFacts, label: str) -> None:
        """Make a traced module the plan's model in one undo step; for several ranks, the plan gets a card per rank.

        Raises:
            PlannerError: If the plan cannot be evaluated with it.
        """
        from planner.trace.launcher import traced_ranks  # as in `answer`

        ranks = traced_ranks(facts.request)
        cards = {"count": ranks} if ranks > 1 else {}
        self.end_gesture()
        self.apply(label, model=ModelChoice.of_trace(facts), **cards)
        self.end_gesture()

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Show a `PlannerError` that is raised in this `with` block in the banner."""
        try:
            yield
        except PlannerError as error:
            self.failed.emit(error)

    def report(self, error: BaseException) -> None:
        """Show the `PlannerError` of a background task in the banner; any other error is raised."""
        with self.reporting():
            raise error

    @contextmanager
    def step(self) -> Iterator[None]:
        """Combine all plan changes in this `with` block into one undo step; show a `PlannerError` in the banner."""
        self.end_gesture()
        with self.reporting():
            yield
        self.end_gesture()

    @Slot()
    def end_gesture(self) -> None:
        """End the current undo step, on a mouse release or when a field loses the focus."""
        self._idle.stop()
        self._gesture += 1

    def set_catalog(self, catalog: Catalog) -> None:
        """Replace the catalog, for example after a price update, and evaluate the plan with the new catalog.

        If a card is missing in it, the undo history is cleared, since a step could lead to that card. A pinned plan
        that cannot be evaluated is unpinned with an error message.

        Raises:
            PlannerError: If the plan cannot be evaluated with it; the catalog stays.
        """
        state = self._state.with_catalog(catalog)
        known = {gpu.id for gpu in catalog.hardware.gpus}
        if any(gpu.id not in known for gpu in self.catalog.hardware.gpus):
            self._clear_history(self.modified)
        self.catalog = catalog
        if self.pin.evaluation is not None:
            self.pin.renew()
        self._set_state(state)

    def note_devices(self, devices: "tuple[Device, ...]") -> None:
        """Store the detected cards of this machine; an empty tuple is ignored."""
        if devices and devices != self.devices:
            self.devices = devices
            self.devices_found.emit()

    def note_tracing(self, is_tracing: bool) -> None:
        """Store whether a trace is running or about to start."""
        if is_tracing != self.is_tracing:
            self.is_tracing = is_tracing
            self.tracing_changed.emit()

    def end_detection(self, detection: Detection) -> None:
        """Store how the search for this machine's cards ended."""
        self.detection = detection
        self.detection_ended.emit()

    def new_plan(self) -> None:
        """Replace the plan with the sample plan."""
        self.replace(SAMPLE_PLAN, None)

    def save_plan(self, path: Path | None = None) -> None:
        """Save the plan to `path`, which becomes the plan's file, or without `path` to the plan's current file.

        Raises:
            PlanFileError: If it cannot be written.
        """
        target = path or self.path
        if target is None:
            raise ValueError("the plan has no file yet")
        recent = self.settings.current.recent
        self.settings.add_recent_plan(target)
        if self.settings.current.recent != recent:
            # Before the file: the next start looks beside recent plans for what a killed process left.
            self.settings.flush()
        try:
            save_plan(target, self.plan)
        except PlannerError:
            self.settings.update(recent=recent)
            raise
        self.path, self.base = target, self.plan
        self.undo_stack.setClean()
        self.file_changed.emit()

    def take_file(self, theirs: Plan, merged: Plan) -> None:
        """Show `merged`, in an undo step, after another program or window changed the plan's file to `theirs`.

        Raises:
            PlannerError: If it cannot be evaluated; the plan stays as it was.
        """
        self.end_gesture()
        self._push_step("changes in the plan's file", merged)
        self.end_gesture()
        self.base = theirs
        if merged == theirs:
            self.undo_stack.setClean()
        else:
            self.undo_stack.resetClean()
        self.file_changed.emit()

    def replace(self, plan: Plan, path: Path | None, modified: bool = False, base: Plan | None = None) -> None:
        """Show `plan`, which was read from `path` or is new if None, with an empty undo history.

        A `modified` plan differs from its file, whose content was `base`.
        """
        self._workloads = {"training": Training(), "inference": Inference()}
        state = PlanState(evaluate(plan, self.catalog), self.catalog)
        self._clear_history(modified)
        self.path = path
        self.base = base if path is None or modified else plan
        self._is_own = False
        self._set_state(state)
        self.file_changed.emit()

    def swap_pinned(self, pinned: Evaluation) -> None:
        """Show the `pinned` plan and pin the current plan, in one undo step."""
        old = PlanState(self.evaluation, self.catalog, pinned)
        new = PlanState(pinned, self.catalog, self.evaluation)
        self.end_gesture()
        self.undo_stack.push(PlanUndoStep(self._show_state, "swap of current and pinned plan", self._gesture, old, new))
        self.end_gesture()

    def workload_of(self, task: object) -> Workload:
        """Return the last workload of `task`, with the plan's current cards and the memory that other programs use."""
        workload, now = self._workloads.get(str(task)), self.plan.workload
        if workload is None:
            raise SpecError("workload.task", f"{task!r} is not a task", hint="Choose training or inference.")
        if workload is now:
            return now
        cards = {name: getattr(now, name) for name in ("gpus", "other_processes_bytes")}
        changed = {name: value for name, value in cards.items() if value != getattr(workload, name)}
        return workload.evolve(**changed) if changed else workload

    def before(self, label: str) -> Plan:
        """Return the plan before the current gesture's step called `label`, or the current plan without such a step."""
        last = self.undo_stack.command(self.undo_stack.index() - 1)
        if isinstance(last, PlanUndoStep) and (last.text(), last.gesture) == (label, self._gesture):
            return last.old.plan
        return self.plan

    def _clear_history(self, modified: bool) -> None:
        self.end_gesture()
        self.undo_stack.clear()
        if modified:
            self.undo_stack.resetClean()

    def _take_plan(self, label: str, plan: Plan, *, is_own: bool) -> None:
        self.end_gesture()
        self._push_step(label, plan)
        self.end_gesture()
        self._is_own = is_own
        self.file_changed.emit()

    def _push_step(self, label: str, plan: Plan) -> None:
        if plan == self.plan:
            return
        new = PlanState(evaluate(plan, self.catalog), self.catalog)
        self._idle.start()
        self.undo_stack.push(PlanUndoStep(self._show_state, label, self._gesture, self._state, new))

    def _show_state(self, state: PlanState) -> bool:
        """Show the plan in `state` with the current catalog; report an error and return False if that fails."""
        try:
            state = state.with_catalog(self.catalog)
        except PlannerError as error:
            # The step is removed from the history, and it may have led to the state that is saved in the file.
            if self.modified:
                self.undo_stack.resetClean()
            message = f"This step leads to a plan that can no longer be shown: {error.message}."
            self.failed.emit(PlannerError(message, "The plan is unchanged, and the step was removed."))
            return False
        if state.pinned is not None:
            self.pin.show(state.pinned)
        # Without the pinned plan: later steps from here leave the pin alone.
        self._set_state(state._replace(pinned=None))
        return True

    def _set_state(self, state: PlanState) -> None:
        old, self._state = self._state, state
        self.cost = None
        self._workloads[state.plan.workload.task] = state.plan.workload
        self.changed.emit(old.plan, state.plan)

    @Slot(bool)
    def _on_clean_changed(self, _clean: bool) -> None:
        self.file_changed.emit()


def _subject(plan: Plan) -> tuple[object, ...]:
    """Return what a plan is about, without the terms of its time and cost."""
    return plan.model, plan.workload, plan.gpu, plan.count
