"""Which cards this machine has, found out beside the window and without it waiting."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Slot

from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.workspace import Workspace

if TYPE_CHECKING:
    from planner.monitor.readings.inventory import Device

_KEY: Final = "machine"
_LONGEST_START_SECONDS: Final = 10.0
"""A driver that takes longer to open is left to the Monitor, which shows what it waits for."""


def look_here() -> "tuple[Device, ...]":
    """Return the cards of this machine after one look by a process that ends at once; none without a driver."""
    from planner.monitor.settings import Timeouts
    from planner.monitor.supervisor.gathering import look_once  # the first picture of the window does without them

    return look_once(Timeouts(start=_LONGEST_START_SECONDS)).inventory.devices


class Machine(QObject):
    """Looks when the catalog is first shown, unless the Monitor has told by then; `look` does it in the background."""

    def __init__(
        self,
        workspace: Workspace,
        tasks: TaskRunner,
        look: "Callable[[], tuple[Device, ...]]" = look_here,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace, self._tasks, self._look = workspace, tasks, look
        self._has_looked = False

    @Slot(str)
    def on_tab(self, key: str) -> None:
        """Look if the tab that is shown says which cards are here, and nobody has looked."""
        if key == "catalog" and not self._has_looked and not self._workspace.devices:
            self._has_looked = True
            self._tasks.run(_KEY, self._look, self._workspace.note_devices, _pass_over)


def _pass_over(error: BaseException) -> None:
    """Know nothing of this machine where it cannot be looked at: the Monitor says why."""
    if not isinstance(error, PlannerError | OSError):
        raise error
