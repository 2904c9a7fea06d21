"""The plan that the present one is compared with."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand

from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan

if TYPE_CHECKING:
    from planner.gui.workspace import Workspace


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
        self.evaluation = None if plan is None else evaluate(plan, self._workspace.catalog)
        self.changed.emit()

    def swap(self) -> None:
        """Make the pinned plan the present one and pin that, as one undo step."""
        pinned, present = self.plan, self._workspace.plan
        if pinned is None or pinned == present:
            return
        stack = self._workspace.undo_stack
        self._workspace.end_gesture()
        stack.beginMacro("swap of the plans")
        stack.push(_Put(self, pinned, present))
        self._workspace.apply(
            "swap of the plans", **{name: getattr(pinned, name) for name in type(pinned).model_fields}
        )
        stack.endMacro()
        self._workspace.end_gesture()


class _Put(QUndoCommand):
    """One plan pinned instead of another, within a step of the history."""

    def __init__(self, pin: Pin, old: Plan, new: Plan) -> None:
        super().__init__()
        self._pin, self._old, self._new = pin, old, new

    def redo(self) -> None:
        self._pin.put(self._new)

    def undo(self) -> None:
        self._pin.put(self._old)
