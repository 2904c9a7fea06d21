"""The plan that the window works on: the one place where it is changed, undone, evaluated, opened and saved."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import ValidationError
from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QUndoCommand, QUndoStack

from planner.errors import PlannerError, SpecError
from planner.gui.navigator import Navigator
from planner.gui.settings import SettingsStore
from planner.plan.answers.draft import WORKLOAD
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.files import load_plan, save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.trace.facts import TracedFacts
from planner.workload.workload import Inference, Training, Workload

if TYPE_CHECKING:
    from planner.monitor.readings.inventory import Device

GESTURE_IDLE_MS: Final = 1000
SAMPLE_PLAN: Final = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(), gpu="rtx-4090")


class State(NamedTuple):
    """A plan evaluated with `catalog`; where it comes with a `pinned` plan, that is pinned together with it."""

    evaluation: Evaluation
    catalog: Catalog
    pinned: Evaluation | None = None

    @property
    def plan(self) -> Plan:
        """Return the plan."""
        return self.evaluation.plan

    def drawn_on(self, catalog: Catalog) -> "State":
        """Return the same plans as they are with `catalog`, evaluated anew where they were with another.

        Raises:
            PlannerError: If one of them cannot be evaluated with it.
        """
        if self.catalog is catalog:
            return self
        pinned = None if self.pinned is None else evaluate(self.pinned.plan, catalog)
        return State(evaluate(self.plan, catalog), catalog, pinned)


class Change(QUndoCommand):
    """One step of the history; it merges with the next one of the same label and gesture.

    `take` shows a state and returns whether it could; a step to a state that cannot be shown leaves the history.
    """

    def __init__(self, take: Callable[[State], bool], label: str, gesture: int, old: State, new: State) -> None:
        super().__init__(label)
        self._take = take
        self.gesture = gesture
        self.old, self.new = old, new

    def redo(self) -> None:
        """Show the plan after the change."""
        self.setObsolete(not self._take(self.new))

    def undo(self) -> None:
        """Show the plan before the change."""
        self.setObsolete(not self._take(self.old))

    def id(self) -> int:
        """Return the kind of step, of which there is one."""
        return 1

    def mergeWith(self, other: QUndoCommand) -> bool:
        """Take over what `other` leads to, if it belongs to the same change."""
        if not isinstance(other, Change) or (other.text(), other.gesture) != (self.text(), self.gesture):
            return False
        self.new = other.new
        self.setObsolete(self.new.plan == self.old.plan)
        return True


class Pin(QObject):
    """Stays as it is while the plan changes. `changed` says that another plan is pinned, or none."""

    changed = Signal()

    def __init__(self, workspace: "Workspace") -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self.evaluation: Evaluation | None = None

    @property
    def plan(self) -> Plan | None:
        """Return the pinned plan, if there is one."""
        return None if self.evaluation is None else self.evaluation.plan

    def put(self, plan: Plan | None) -> None:
        """Pin `plan`, or nothing.

        Raises:
            PlannerError: If it cannot be evaluated; what was pinned stays.
        """
        self.show(None if plan is None else evaluate(plan, self._workspace.catalog))

    def show(self, evaluation: Evaluation | None) -> None:
        """Pin a plan that has been evaluated with the present catalog, or nothing."""
        self.evaluation = evaluation
        self.changed.emit()

    def renew(self) -> None:
        """Evaluate what is pinned with the present catalog; what cannot be is unpinned, and that is told."""
        try:
            self.put(self.plan)
        except PlannerError as error:
            self.put(None)
            message = f"The pinned plan cannot be shown any more, and was unpinned: {error.message}."
            self._workspace.failed.emit(PlannerError(message, "Pin another plan to compare with."))

    def swap(self) -> None:
        """Make the pinned plan the present one and pin that, as one undo step."""
        if self.evaluation is not None and self.plan != self._workspace.plan:
            self._workspace.swap_pinned(self.evaluation)


class Workspace(QObject):
    """One window's plan with its evaluation and history.

    `changed` carries the old and the new plan. `file_changed` says that the file or the modified state is another.
    `failed` carries a `PlannerError` for the banner, `noticed` a message and its details, `adjusted` a sentence on what
    moved along with an answer, empty where nothing did. `devices_found` says that this machine has other cards than was
    known. What the parts of the window ask of each other goes through the `navigator`.
    """

    changed = Signal(object, object)
    file_changed = Signal()
    failed = Signal(object)
    noticed = Signal(str, str)
    adjusted = Signal(str)
    devices_found = Signal()

    def __init__(
        self, catalog: Catalog, settings: SettingsStore, plan: Plan = SAMPLE_PLAN, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.catalog = catalog
        self.settings = settings
        self.path: Path | None = None
        self.devices: tuple[Device, ...] = ()
        self._state = State(evaluate(plan, catalog), catalog)
        self._workloads: dict[str, Workload] = {
            "training": Training(),
            "inference": Inference(),
            plan.workload.task: plan.workload,
        }
        self._gesture = 0
        self._idle = QTimer(self, singleShot=True, interval=GESTURE_IDLE_MS)
        self._idle.timeout.connect(self.end_gesture)
        self.undo_stack = QUndoStack(self)
        self.pin = Pin(self)
        self.navigator = Navigator(self)
        self.undo_stack.cleanChanged.connect(self._on_clean_changed)

    @property
    def plan(self) -> Plan:
        """Return the plan, which is always valid."""
        return self._state.plan

    @property
    def evaluation(self) -> Evaluation:
        """Return what follows from the plan."""
        return self._state.evaluation

    @property
    def modified(self) -> bool:
        """Return whether the plan differs from its file, or from what it started as."""
        return not self.undo_stack.isClean()

    def apply(self, label: str, **changes: object) -> None:
        """Change fields of the plan as one undo step called `label`; the same label merges within a gesture.

        Raises:
            SpecError: If a value is not allowed; the plan stays as it was.
            PlannerError: If the changed plan cannot be evaluated; the plan stays as it was.
        """
        try:
            plan = self.plan.evolve(**changes)
        except ValidationError as error:
            raise SpecError.from_validation(error) from None
        self._push(label, plan)

    def answer(self, label: str, answer: Mapping[str, object]) -> None:
        """Change what a question is about, as `apply` does; what that makes impossible moves along in the same step.

        Fields of the workload are named as `workload.lora.rank`. What is still being typed counts from where the
        gesture began: nothing is lost to a number that was never meant.

        Raises:
            SpecError: If the answer itself is not allowed; the plan stays as it was.
            PlannerError: If the changed plan cannot be evaluated; the plan stays as it was.
        """
        # Imported here: the start of the window does not wait for what only a change needs.
        from planner.plan.answers.conflicts import resolve_conflicts
        from planner.present.plan.settings import adjustments_sentence

        fields = dict(answer)
        task = fields.pop(f"{WORKLOAD}task", None)
        start = self.before(label)
        if task is not None:
            start = start.evolve(workload=self.workload_of(task))
        resolved = resolve_conflicts(start, fields, self.catalog)
        self._push(label, resolved.plan)
        self.adjusted.emit(adjustments_sentence(resolved.adjustments, resolved.plan.workload))

    def take_trace(self, facts: TracedFacts, label: str) -> None:
        """Make a traced module the plan's model as one undo step; with several ranks, on as many cards.

        Raises:
            PlannerError: If the plan cannot be evaluated with it.
        """
        ranks = facts.request.parallel.ranks
        cards = {"count": ranks} if ranks > 1 else {}
        self.end_gesture()
        self.apply(label, model=ModelChoice.of_trace(facts), **cards)
        self.end_gesture()

    def apply_workload(self, label: str, **changes: object) -> None:
        """Change fields of the workload, as `apply` does.

        A change of `task` brings back the workload that the other task had last, on the cards that there are now.
        """
        workload = self.workload_of(changes.pop("task", self.plan.workload.task))
        try:
            changed = workload.evolve(**changes)
        except ValidationError as error:
            raise SpecError.from_validation(error, "workload") from None
        self._push(label, self.plan.evolve(workload=changed))

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Show a `PlannerError` that is raised inside to the person, across the window."""
        try:
            yield
        except PlannerError as error:
            self.failed.emit(error)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Make what is changed inside one undo step of its own; a failure is shown to the person."""
        self.end_gesture()
        with self.reporting():
            yield
        self.end_gesture()

    @Slot()
    def end_gesture(self) -> None:
        """Close the current undo step: call it on release and when a field loses the focus."""
        self._idle.stop()
        self._gesture += 1

    def set_catalog(self, catalog: Catalog) -> None:
        """Draw on another catalog from now on, such as one with fresh prices; the plan stays as it is.

        Where cards are gone the history is too: a step back could lead to one of them. A pinned plan that cannot be
        evaluated is unpinned, and that is told across the window.

        Raises:
            PlannerError: If the plan cannot be evaluated with it; the catalog stays.
        """
        state = self._state.drawn_on(catalog)
        kept = {gpu.id for gpu in catalog.hardware.gpus}
        if any(gpu.id not in kept for gpu in self.catalog.hardware.gpus):
            self._forget_history(self.modified)
        self.catalog = catalog
        if self.pin.evaluation is not None:
            self.pin.renew()
        self._take(state)

    def note_devices(self, devices: "tuple[Device, ...]") -> None:
        """Take over which cards this machine has, as whoever looked at its driver found them; none says nothing."""
        if devices and devices != self.devices:
            self.devices = devices
            self.devices_found.emit()

    def new_plan(self) -> None:
        """Start over with the sample plan."""
        self.replace(SAMPLE_PLAN, None)

    def open_plan(self, path: Path) -> None:
        """Open the plan at `path`.

        Raises:
            PlannerError: If the file is no plan, or its plan cannot be evaluated; the open plan stays.
        """
        self.replace(load_plan(path), path)
        self.settings.add_recent(path)

    def save_plan(self, path: Path | None = None) -> None:
        """Write the plan to `path`, which becomes its file, or to the file that it has.

        Raises:
            PlanFileError: If it cannot be written.
        """
        target = path or self.path
        if target is None:
            raise ValueError("the plan has no file yet")
        save_plan(target, self.plan)
        self.path = target
        self.undo_stack.setClean()
        self.settings.add_recent(target)
        self.file_changed.emit()

    def replace(self, plan: Plan, path: Path | None, modified: bool = False) -> None:
        """Take `plan`, which belongs to `path`, as a new document with an empty history."""
        self._workloads = {"training": Training(), "inference": Inference()}
        state = State(evaluate(plan, self.catalog), self.catalog)
        self._forget_history(modified)
        self.path = path
        self._take(state)
        self.file_changed.emit()

    def swap_pinned(self, pinned: Evaluation) -> None:
        """Show the plan that is `pinned` and pin the present one, as one undo step."""
        old = State(self.evaluation, self.catalog, pinned)
        new = State(pinned, self.catalog, self.evaluation)
        self.end_gesture()
        self.undo_stack.push(Change(self._step, "swap of the plans", self._gesture, old, new))
        self.end_gesture()

    def workload_of(self, task: object) -> Workload:
        """Return the workload that `task` had last, with what the cards are and hold now."""
        workload, now = self._workloads.get(str(task)), self.plan.workload
        if workload is None:
            raise SpecError("workload.task", f"{task!r} is not a task", hint="Choose training or inference.")
        if workload is now:
            return now
        held = {name: getattr(now, name) for name in ("gpus", "other_processes_bytes")}
        changed = {name: value for name, value in held.items() if value != getattr(workload, name)}
        return workload.evolve(**changed) if changed else workload

    def before(self, label: str) -> Plan:
        """Return the plan from before the open step called `label`, or the plan where there is none."""
        last = self.undo_stack.command(self.undo_stack.index() - 1)
        if isinstance(last, Change) and (last.text(), last.gesture) == (label, self._gesture):
            return last.old.plan
        return self.plan

    def _forget_history(self, modified: bool) -> None:
        self.end_gesture()
        self.undo_stack.clear()
        if modified:
            self.undo_stack.resetClean()

    def _push(self, label: str, plan: Plan) -> None:
        if plan == self.plan:
            return
        new = State(evaluate(plan, self.catalog), self.catalog)
        self._idle.start()
        self.undo_stack.push(Change(self._step, label, self._gesture, self._state, new))

    def _step(self, state: State) -> bool:
        """Show `state` as it is with the present catalog; say so and return False where it cannot be."""
        try:
            state = state.drawn_on(self.catalog)
        except PlannerError as error:
            # The step is about to leave the history: where it led to may have been what is in the file.
            if self.modified:
                self.undo_stack.resetClean()
            message = f"This step leads to a plan that cannot be shown any more: {error.message}."
            self.failed.emit(PlannerError(message, "The plan stays as it is, and the step is left out."))
            return False
        if state.pinned is not None:
            self.pin.show(state.pinned)
        # Without what is pinned: steps that start from here leave the pin alone.
        self._take(state._replace(pinned=None))
        return True

    def _take(self, state: State) -> None:
        old, self._state = self._state, state
        self._workloads[state.plan.workload.task] = state.plan.workload
        self.changed.emit(old.plan, state.plan)

    @Slot(bool)
    def _on_clean_changed(self, _clean: bool) -> None:
        self.file_changed.emit()
