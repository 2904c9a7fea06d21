"""The steps of the history: what the window shows before and after each change."""

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtGui import QUndoCommand

from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan


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
