"""What would help: changes of the plan with their price, each a click away, found in the background after a rest."""

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.memory.verdict import in_need

if TYPE_CHECKING:
    from planner.gui.memory.advice.row import AdviceLine
    from planner.plan.advice.advise import Advice

REST_MS: Final = 200
_FIRST: Final = 4
_KEY: Final = "advice"


class AdvicePanel(QWidget):
    """Unfolds by itself when the plan does not fit or only just; folded, it computes nothing.

    `updated` says that what is shown belongs to the present plan.
    """

    updated = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._evaluation: Evaluation | None = None
        self._found_for: Plan | None = None
        self._found: tuple[Advice, ...] = ()
        self._needed = False
        self._lines: list[AdviceLine] = []
        self._body = QWidget()
        self._nothing = make_label(role="muted", wrap=True)
        self.more = QPushButton()
        mark(self.more, "link")
        self.section = Section(theme, "What would help", self._body, "ways to need less memory")
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out()
        self._rest.timeout.connect(self.update_now)
        self.section.toggled.connect(self._on_toggled)
        self.more.clicked.connect(self._show_all)

    @property
    def lines(self) -> "tuple[AdviceLine, ...]":
        """Return the advice in view, the best first."""
        return tuple(line for line in self._lines if not line.isHidden())

    def set_evaluation(self, evaluation: Evaluation) -> None:
        """Follow the plan; what was found for the one before can no longer be applied."""
        self._evaluation = evaluation
        needed = in_need(evaluation.memory)
        self.setVisible(needed or evaluation.traced is None)
        if needed != self._needed:
            self._needed = needed
            self.section.set_open(needed)
        if evaluation.plan != self._found_for:
            self._tasks.cancel(_KEY)
            for line in self._lines:
                line.setEnabled(False)
            self._start()

    def showEvent(self, event: QShowEvent) -> None:
        """Find what changed while this was out of view."""
        super().showEvent(event)
        self._start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Rest while this is out of view."""
        super().hideEvent(event)
        self._rest.stop()

    @Slot()
    def update_now(self) -> None:
        """Find what would help, in the background."""
        if self._evaluation is not None:
            plan = self._evaluation.plan
            self._tasks.run(
                _KEY,
                partial(_advise, plan, self._workspace.catalog),
                partial(self._on_found, self._evaluation),
                self._on_error,
            )

    def _start(self) -> None:
        wanted = self._evaluation is not None and self._evaluation.plan != self._found_for
        if wanted and self.isVisible() and self.section.is_open:
            self._rest.start()

    def _on_found(self, evaluation: Evaluation, found: "tuple[Advice, ...]") -> None:
        from planner.present.memory.advice import no_advice

        self._found_for, self._found = evaluation.plan, found
        self._nothing.setText(no_advice(evaluation.memory, traced=evaluation.traced is not None))
        self._nothing.setVisible(not found)
        self._show(_FIRST)
        self.updated.emit()

    def _on_error(self, error: BaseException) -> None:
        with self._workspace.reporting():
            raise error

    def _show(self, most: int) -> None:
        while len(self._lines) < min(most, len(self._found)):
            self._add_line()
        for number, line in enumerate(self._lines):
            line.setVisible(number < min(most, len(self._found)))
            if number < len(self._found):
                line.show_advice(self._found[number])
        left = len(self._found) - most
        self.more.setVisible(left > 0)
        self.more.setText(f"Show {fmt.integer(max(0, left))} more")

    def _add_line(self) -> None:
        from planner.gui.memory.advice.row import AdviceLine

        line = AdviceLine(self._theme)
        line.wanted.connect(self._apply)
        self._lines.append(line)
        self._column.insertWidget(len(self._lines) - 1, line)

    @Slot()
    def _show_all(self) -> None:
        self._show(len(self._found))

    @Slot(bool)
    def _on_toggled(self, _opened: bool) -> None:
        self._start()

    @Slot(object)
    def _apply(self, advice: "Advice") -> None:
        plan = advice.plan
        self._workspace.end_gesture()
        with self._workspace.reporting():
            self._workspace.apply(advice.name, workload=plan.workload, gpu=plan.gpu, count=plan.count)
        self._workspace.end_gesture()

    def _lay_out(self) -> None:
        self._column = QVBoxLayout(self._body)
        self._column.setSpacing(self._theme.spacing.small)
        self._column.addWidget(self._nothing)
        self._column.addWidget(self.more)
        self._nothing.hide()
        self.more.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.section)


def _advise(plan: Plan, catalog: Catalog) -> "tuple[Advice, ...]":
    # Imported here, and so in the background: the start of the window does not wait for it.
    from planner.plan.advice.advise import advise

    return advise(plan, catalog)
