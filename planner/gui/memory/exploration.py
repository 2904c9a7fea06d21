"""Memory curve around the plan, and the largest or smallest values that fit, computed in the background."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Final, NamedTuple

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from planner.gui.memory.memory_curve import CurveData, CurvePanel, curve_values
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import create_qt_classes
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, SideBySide, WidgetPool, in_column, in_row, laid_out_at_once
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, architecture_of
from planner.plan.memory_curve import Axis, count_scaling, current_value, memory_curve, plan_at_value, plan_axes
from planner.plan.plan import Plan
from planner.plan.solve import (
    LENGTHS,
    SolvableField,
    SolveResult,
    fewest_cards,
    largest_allowed,
    largest_that_fits,
    layer_count,
    sizes_of,
    smallest_card,
)
from planner.present import format as fmt
from planner.present.memory.solved import solved_text, solved_title
from planner.present.plan.settings import setting_title, title_in_sentence
from planner.workload.fields import find_field

_SHORTEST_LENGTH: Final = 128
_ALL_COUNTS_UP_TO: Final = 8


_SOLVED: Final[tuple[SolvableField, ...]] = ("micro_batch", "sequence_length", "batch", "context_length", "gpu_layers")
_FIELD_NAMES: Final[dict[str, str]] = {"lora_rank": "lora.rank"}
"""Names of workload fields by curve axis, for axes whose name differs from the field's name."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Best value of a plan field that fits: `text` is the value or why none fits, `plan` the plan with this value.

    `is_taken` is true if the plan already has the value.
    """

    field_name: str
    title: str
    text: str
    value: int | str | None = None
    plan: Plan | None = None
    is_taken: bool = False


def title_of(axis: str) -> str:
    """Return the title of the plan field `axis`, as shown in the list of axes and in the undo history."""
    return setting_title(_FIELD_NAMES.get(axis, axis))


def _axis_title_with_unit(axis: Axis) -> str:
    """Return the title of the x axis with its unit: `Sequence length, tokens`."""
    field = find_field(_FIELD_NAMES.get(axis, axis))
    unit = field.option.unit if field is not None and axis in LENGTHS else ""
    return ", ".join(part for part in (title_of(axis), unit) if part)


def find_solutions(evaluation: Evaluation, catalog: Catalog) -> tuple[Solution, ...]:
    """Return all solutions for the evaluated plan; for a plan without a card, only the smallest card that fits."""
    plan = evaluation.plan
    if plan.workload.gpus:
        return tuple(_largest_solution(evaluation, catalog, field) for field in _solvable_fields(evaluation))
    smallest = _smallest_card_solution(plan, catalog)
    if plan.gpu is None:
        return (smallest,)
    largest = tuple(_largest_solution(evaluation, catalog, field) for field in _solvable_fields(evaluation))
    return (*largest, _fewest_cards_solution(plan, catalog), smallest)


def compute_curve(evaluation: Evaluation, catalog: Catalog, axis: Axis, largest: int | None) -> CurveData:
    """Compute the memory curve over the plan field `axis`, around the plan's value and the `largest` that fits."""
    current = current_value(evaluation, axis)
    architecture = architecture_of(evaluation.plan, catalog)
    spreading = count_scaling(evaluation.plan, catalog) if axis == "count" else None
    if spreading is not None:
        values = tuple(sorted({*_reduced_counts(spreading.counts, max(current, largest or 0)), current}))
    elif axis == "gpu_layers":
        values = tuple(range(layer_count(architecture) + 1))
    else:
        values = _axis_values(evaluation, axis, current, largest)
    points = memory_curve(evaluation.plan, catalog, axis, values)
    return CurveData(
        axis=axis,
        title=f"GPUs {spreading.how}".strip() if spreading else _axis_title_with_unit(axis),
        points=points,
        current=next(point for point in points if point.value == current),
        capacity_bytes=evaluation.memory.capacity_bytes,
        card=evaluation.gpu.name if evaluation.gpu else None,
    )


def _solvable_fields(evaluation: Evaluation) -> tuple[SolvableField, ...]:
    axes = plan_axes(evaluation)
    return tuple(field for field in _SOLVED if field in axes)


def _axis_values(evaluation: Evaluation, axis: Axis, current: int, largest: int | None) -> tuple[int, ...]:
    if axis == "lora_rank" or axis == "count":
        return curve_values(current, None, 1, None)
    limit = largest_allowed(evaluation.plan, axis)
    if axis in LENGTHS:
        return curve_values(current, largest, _SHORTEST_LENGTH, min(evaluation.max_context or limit, limit))
    sizes = sizes_of(evaluation.plan, axis)
    values = (sizes.at(sizes.step(value)) for value in curve_values(current, largest, 1, limit))
    return tuple(sorted({*values, current}))


def _reduced_counts(counts: Sequence[int], largest_count: int) -> list[int]:
    """Return the card counts up to twice `largest_count`; above a limit, only powers of two.

    Pipeline stages are slow to compute.
    """
    near = [count for count in counts if count <= max(2 * largest_count, _ALL_COUNTS_UP_TO)]
    return [count for count in near if count <= _ALL_COUNTS_UP_TO or count & (count - 1) == 0]


def _largest_solution(evaluation: Evaluation, catalog: Catalog, field: SolvableField) -> Solution:
    plan = evaluation.plan
    comfortable = largest_that_fits(plan, catalog, field)
    tight = largest_that_fits(plan, catalog, field, "tight")
    best = comfortable if comfortable.value is not None else tight
    is_taken = best.value == current_value(evaluation, field)
    return Solution(field, solved_title(field), solved_text(comfortable, tight), best.value, best.plan, is_taken)


def _fewest_cards_solution(plan: Plan, catalog: Catalog) -> Solution:
    comfortable, tight = fewest_cards(plan, catalog), fewest_cards(plan, catalog, "tight")
    best = comfortable if comfortable.value is not None else tight
    text = ", ".join(part for part in (solved_text(comfortable, tight), best.how) if part)
    return Solution("count", solved_title("count"), text, best.value, best.plan, best.plan == plan)


def _smallest_card_solution(plan: Plan, catalog: Catalog) -> Solution:
    comfortable = smallest_card(plan, catalog)
    best = comfortable if comfortable.value is not None else smallest_card(plan, catalog, "tight")
    return Solution(
        "gpu",
        solved_title("gpu"),
        _smallest_card_text(best, catalog),
        best.value,
        best.plan,
        best.value == plan.gpu,
    )


def _smallest_card_text(solved: SolveResult, catalog: Catalog) -> str:
    if not isinstance(solved.value, str):
        return f"none, {solved.reason}"
    name = catalog.hardware.gpu(solved.value).name
    return f"{name} may fit" if solved.verdict == "tight" else name


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
        self.use = push_button("Use", "Put this value into the plan")
        in_column(in_row((self._title, 1), self.use, spacing=theme.spacing.small), self._value, owner=self, spacing=0)
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
        self.rows: tuple[SolutionRow, ...] = ()
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
            self._tasks.run(_KEY, work, self._show_result, self._workspace.report)

    def _show_result(self, explored: ExplorationResult) -> None:
        with laid_out_at_once(self):
            self.rows = self._pool.show(len(explored.solutions))
            for row, solution in zip(self.rows, explored.solutions, strict=True):
                row.show_solution(solution)
        self.curve.set_data(explored.curve)
        self.updated.emit()

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

    def _make_row(self) -> SolutionRow:
        row = SolutionRow(self._theme)
        row.use_requested.connect(self._use_solution)
        return row

    def _lay_out(self) -> None:
        aside = QWidget()
        aside.setMinimumWidth(_ASIDE_WIDTH)
        self._pool = WidgetPool(in_column(STRETCH, owner=aside, spacing=self._theme.spacing.small), self._make_row)
        both = SideBySide(
            self.curve, aside, least_width=_SPLIT_WIDTH, stretches=(1, 0), spacing=self._theme.spacing.large
        )
        in_column(both, owner=self)


def explore(evaluation: Evaluation, catalog: Catalog, axis: Axis) -> ExplorationResult:
    """Compute the solutions and the curve over `axis`."""
    # In the background, since it takes half a second; `create_qt_classes` was called before.
    import_module("pyqtgraph")
    solutions = find_solutions(evaluation, catalog)
    largest = next(
        (solution.value for solution in solutions if solution.field_name == axis and isinstance(solution.value, int)),
        None,
    )
    return ExplorationResult(solutions, compute_curve(evaluation, catalog, axis, largest))
