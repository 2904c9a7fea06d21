"""Memory curve around the plan and the values that fit, computed in the background."""

from functools import partial
from importlib import import_module
from typing import Final, NamedTuple

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QWidget

from planner.gui.memory.curves.data import CurveData
from planner.gui.memory.curves.panel import CurvePanel
from planner.gui.memory.curves.solutions import Solution, compute_curve, find_solutions, title_of
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import create_qt_classes
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, SideBySide, in_column, in_row, laid_out_at_once
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.memory_curve import Axis, plan_at_value, plan_axes
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.plan.settings import title_in_sentence

REST_MS: Final = 120
_ASIDE_WIDTH: Final = 230
_SPLIT_WIDTH: Final = 620
"""Width in pixels from which the values that fit stand beside the curve."""
_KEY: Final = "exploration"


class ExplorationResult(NamedTuple):
    """Solutions and memory curve from one background computation."""

    solutions: tuple[Solution, ...]
    curve: CurveData


class SolutionRow(QWidget):
    """Row with a value that fits, such as the largest batch; its *Use* button emits the solution as `use_requested`."""

    use_requested = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.solution: Solution | None = None
        self._title = make_label(role="muted", font=theme.font("small"))
        self._value = make_label(font=theme.font(bold=True), wrap=True)
        self.use = QPushButton("Use")
        self.use.setToolTip("Put this value into the plan")
        in_column(self._title, in_row((self._value, 1), self.use), owner=self, spacing=theme.spacing.tiny)
        self.use.clicked.connect(self._on_use_clicked)

    @property
    def text(self) -> str:
        """Return the title and the value."""
        return f"{self._title.text()}: {self._value.text()}"

    def show_solution(self, solution: Solution) -> None:
        """Show a solution; the button is disabled if the plan already has the value, hidden if there is no value."""
        self.solution = solution
        self._title.setText(solution.title)
        self._value.setText(solution.text)
        self.use.setVisible(solution.plan is not None)
        self.use.setText(f"Use {fmt.integer(solution.value)}" if isinstance(solution.value, int) else "Use")
        self.use.setToolTip("The plan already has it." if solution.is_taken else "Change the plan to this value.")
        self.use.setEnabled(not solution.is_taken)
        self.use.setAccessibleName(f"{self.use.text()}: {self.text}")

    @Slot()
    def _on_use_clicked(self) -> None:
        self.use_requested.emit(self.solution)


class ExplorationPanel(QWidget):
    """Memory curve and values that fit; `updated` is emitted after each finished computation."""

    updated = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._evaluation: Evaluation | None = None
        self._axis: Axis | None = None
        self.curve = CurvePanel(theme)
        self.rows: list[SolutionRow] = []
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out()
        self._rest.timeout.connect(self.update_now)
        self.curve.axis_chosen.connect(self._on_axis_chosen)
        self.curve.value_chosen.connect(self._on_value_chosen)
        self.curve.failed.connect(workspace.failed)

    def set_evaluation(self, evaluation: Evaluation) -> None:
        """Recompute the memory curve for the evaluated plan after a delay, if the curve is visible."""
        self._evaluation = evaluation
        axes = plan_axes(evaluation)
        self._tasks.cancel(_KEY)
        for row in self.rows:
            row.use.setEnabled(False)
        if not axes:
            return
        if self._axis not in axes:
            self._axis = axes[0]
        self.curve.offer(tuple((axis, title_of(axis)) for axis in axes), self._axis)
        if self.isVisible():
            self._rest.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Update after changes that were made while the curve was hidden."""
        super().showEvent(event)
        self._rest.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Compute nothing while the curve is hidden."""
        super().hideEvent(event)
        self._rest.stop()

    @Slot()
    def update_now(self) -> None:
        """Compute the curve and the solutions in the background."""
        if self._evaluation is not None and self._axis in plan_axes(self._evaluation):
            create_qt_classes()
            work = partial(explore, self._evaluation, self._workspace.catalog, self._axis)
            self._tasks.run(_KEY, work, self._show_result, self._on_error)

    def _show_result(self, explored: ExplorationResult) -> None:
        with laid_out_at_once(self):
            while len(self.rows) < len(explored.solutions):
                self._add_solution_row()
            for position, row in enumerate(self.rows):
                row.setVisible(position < len(explored.solutions))
                if position < len(explored.solutions):
                    row.show_solution(explored.solutions[position])
        self.curve.set_data(explored.curve)
        self.updated.emit()

    def _on_error(self, error: BaseException) -> None:
        with self._workspace.reporting():
            raise error

    @Slot(object)
    def _on_axis_chosen(self, axis: Axis) -> None:
        self._axis = axis
        self.update_now()

    @Slot(object)
    def _on_value_chosen(self, value: int) -> None:
        if self._evaluation is not None and self.curve.data is not None:
            axis = self.curve.data.axis
            with self._workspace.reporting():
                self._apply_plan(axis, plan_at_value(self._evaluation.plan, self._workspace.catalog, axis, value))

    @Slot(object)
    def _use_solution(self, solution: Solution) -> None:
        if solution.plan is not None:
            with self._workspace.reporting():
                self._apply_plan(solution.field_name, solution.plan)

    def _apply_plan(self, field_name: str, plan: Plan) -> None:
        """Apply `plan` as one undo step named after the field `field_name`."""
        self._workspace.end_gesture()
        self._workspace.apply(
            title_in_sentence(title_of(field_name)), workload=plan.workload, gpu=plan.gpu, count=plan.count
        )
        self._workspace.end_gesture()

    def _add_solution_row(self) -> None:
        row = SolutionRow(self._theme)
        row.use_requested.connect(self._use_solution)
        self.rows.append(row)
        self._column.insertWidget(len(self.rows) - 1, row)

    def _lay_out(self) -> None:
        aside = QWidget()
        aside.setMinimumWidth(_ASIDE_WIDTH)
        self._column = in_column(STRETCH, owner=aside, spacing=self._theme.spacing.small)
        both = SideBySide(
            self.curve, aside, least_width=_SPLIT_WIDTH, stretches=(1, 0), spacing=self._theme.spacing.large
        )
        in_column(both, owner=self)


def explore(evaluation: Evaluation, catalog: Catalog, axis: Axis) -> ExplorationResult:
    """Compute the solutions and the curve over `axis`."""
    # Imported here, in the background, since pyqtgraph takes half a second. `make_classes` was called before.
    import_module("planner.gui.memory.curves.plot")
    solutions = find_solutions(evaluation, catalog)
    largest = next(
        (solution.value for solution in solutions if solution.field_name == axis and isinstance(solution.value, int)),
        None,
    )
    return ExplorationResult(solutions, compute_curve(evaluation, catalog, axis, largest))
