"""Memory curve and solved values around the plan, computed in the background."""

from functools import partial
from importlib import import_module
from typing import Final, NamedTuple

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QWidget

from planner.gui.memory.curves.data import CurveData
from planner.gui.memory.curves.panel import CurvePanel
from planner.gui.memory.curves.solutions import Solution, compute_curve, find_all, title_of
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import create_qt_classes
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.memory_curve import Axis, plan_at_value, plan_axes
from planner.plan.plan import Plan
from planner.present.plan.settings import in_sentence

REST_MS: Final = 120
_CURVE_HEIGHT: Final = 190
_KEY: Final = "exploration"


class ExplorationResult(NamedTuple):
    """Result of one background computation."""

    found: tuple[Solution, ...]
    curve: CurveData


class SolutionRow(QWidget):
    """One solved value; `used` carries it when its button is pressed."""

    used = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.found: Solution | None = None
        self._title = make_label(role="muted", font=theme.font("small"))
        self._value = make_label(font=theme.font(bold=True), wrap=True)
        self.use = QPushButton("Use")
        in_column(self._title, in_row((self._value, 1), self.use), owner=self, spacing=theme.spacing.tiny)
        self.use.clicked.connect(self._on_clicked)

    @property
    def words(self) -> str:
        """Return the title and the value."""
        return f"{self._title.text()}: {self._value.text()}"

    def show_found(self, found: Solution) -> None:
        """Show a solution; its button is disabled if the plan already has the value, and hidden if there is none."""
        self.found = found
        self._title.setText(found.title)
        self._value.setText(found.words)
        self.use.setVisible(found.plan is not None)
        self.use.setEnabled(not found.is_taken)
        self.use.setAccessibleName(f"{self.use.text()}: {self.words}")

    @Slot()
    def _on_clicked(self) -> None:
        self.used.emit(self.found)


class Exploration(QWidget):
    """Memory of the plan with other numbers; `updated` follows each finished computation."""

    updated = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner, aside_width: int) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._evaluation: Evaluation | None = None
        self._axis: Axis | None = None
        self.curve = CurvePanel(theme)
        self.curve.setMinimumHeight(_CURVE_HEIGHT)
        self.rows: list[SolutionRow] = []
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out(aside_width)
        self._rest.timeout.connect(self.update_now)
        self.curve.axis_chosen.connect(self._on_axis_chosen)
        self.curve.value_chosen.connect(self._on_value_chosen)
        self.curve.failed.connect(workspace.failed)

    def set_evaluation(self, evaluation: Evaluation) -> None:
        """Recompute for the plan after a delay, if this is visible."""
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
        """Update after changes that were made while this was hidden."""
        super().showEvent(event)
        self._rest.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Compute nothing while this is hidden."""
        super().hideEvent(event)
        self._rest.stop()

    @Slot()
    def update_now(self) -> None:
        """Compute the curve and the solutions in the background."""
        if self._evaluation is not None and self._axis in plan_axes(self._evaluation):
            create_qt_classes()
            work = partial(explore, self._evaluation, self._workspace.catalog, self._axis)
            self._tasks.run(_KEY, work, self._take_result, self._on_error)

    def _take_result(self, explored: ExplorationResult) -> None:
        while len(self.rows) < len(explored.found):
            self._add_row()
        for position, row in enumerate(self.rows):
            row.setVisible(position < len(explored.found))
            if position < len(explored.found):
                row.show_found(explored.found[position])
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
                self._apply(axis, plan_at_value(self._evaluation.plan, self._workspace.catalog, axis, value))

    @Slot(object)
    def _use(self, found: Solution) -> None:
        if found.plan is not None:
            with self._workspace.reporting():
                self._apply(found.asked, found.plan)

    def _apply(self, asked: str, plan: Plan) -> None:
        """Apply `plan` as one undo step named after the number `asked`."""
        self._workspace.end_gesture()
        self._workspace.apply(in_sentence(title_of(asked)), workload=plan.workload, gpu=plan.gpu, count=plan.count)
        self._workspace.end_gesture()

    def _add_row(self) -> None:
        row = SolutionRow(self._theme)
        row.used.connect(self._use)
        self.rows.append(row)
        self._column.insertWidget(len(self.rows) - 1, row)

    def _lay_out(self, aside_width: int) -> None:
        aside = QWidget()
        aside.setFixedWidth(aside_width)
        self._column = in_column(STRETCH, owner=aside, spacing=self._theme.spacing.small)
        in_row((self.curve, 1), aside, owner=self, spacing=self._theme.spacing.large)


def explore(evaluation: Evaluation, catalog: Catalog, axis: Axis) -> ExplorationResult:
    """Compute the solutions and the curve over `axis`."""
    # Imported here, in the background, since pyqtgraph takes half a second. `make_classes` was called before.
    import_module("planner.gui.memory.curves.plot")
    found = find_all(evaluation, catalog)
    largest = next((one.value for one in found if one.asked == axis and isinstance(one.value, int)), None)
    return ExplorationResult(found, compute_curve(evaluation, catalog, axis, largest))
