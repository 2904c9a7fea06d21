"""The plan that the present one is compared with."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from planner.errors import PlannerError
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
