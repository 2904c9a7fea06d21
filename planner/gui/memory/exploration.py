"""Around the plan: the curve and the largest values that fit, computed after a short rest."""

from functools import partial
from typing import Final

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from planner.errors import PlannerError
from planner.gui.memory.curve_panel import CurvePanel
from planner.gui.memory.explored import Explored, Largest, compute_curve, explored_fields, find_largest
from planner.gui.memory.largest import LargestRow
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation

REST_MS: Final = 120
_CURVE_HEIGHT: Final = 190


class Exploration(QWidget):
    """What the same plan would need with other numbers. `updated` says that everything is up to date."""

    updated = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, aside_width: int) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self._evaluation: Evaluation | None = None
        self._position = 0
        self.curve = CurvePanel(theme)
        self.curve.setMinimumHeight(_CURVE_HEIGHT)
        self.largest = (LargestRow(theme), LargestRow(theme))
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out(aside_width)
        self._rest.timeout.connect(self.update_now)
        self.curve.field_chosen.connect(self._on_field_chosen)
        self.curve.value_chosen.connect(self._on_value_chosen)
        self.curve.failed.connect(workspace.failed)
        for position, row in enumerate(self.largest):
            row.used.connect(partial(self._take, position))

    def set_evaluation(self, evaluation: Evaluation) -> None:
        """Follow the plan, as soon as it has rested and this is in view."""
        self._evaluation = evaluation
        fields = explored_fields(evaluation)
        if not fields:
            return
        self._position = min(self._position, len(fields) - 1)
        self.curve.offer_fields(tuple(field.switch for field in fields), self._position)
        if self.isVisible():
            self._rest.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what changed while this was out of view."""
        super().showEvent(event)
        self._rest.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Rest while this is out of view."""
        super().hideEvent(event)
        self._rest.stop()

    @Slot()
    def update_now(self) -> None:
        """Compute the curve and the largest values."""
        if self._evaluation is None or not explored_fields(self._evaluation):
            return
        evaluation, catalog = self._evaluation, self._workspace.catalog
        fields = explored_fields(evaluation)
        found = [find_largest(evaluation, catalog, field) for field in fields]
        for position, row in enumerate(self.largest):
            row.setVisible(position < len(fields))
            if position < len(fields):
                row.show_result(fields[position].largest, found[position], fields[position].current(evaluation))
        self._draw(evaluation, fields[self._position], found[self._position])
        self.updated.emit()

    def _draw(self, evaluation: Evaluation, field: Explored, largest: Largest) -> None:
        self.curve.set_data(compute_curve(evaluation, self._workspace.catalog, field, largest.value))

    @Slot(object)
    def _on_field_chosen(self, position: int) -> None:
        self._position = position
        self.update_now()

    @Slot(object)
    def _on_value_chosen(self, value: int) -> None:
        self._take(self._position, value)

    def _take(self, position: int, value: int) -> None:
        if self._evaluation is None:
            return
        field = explored_fields(self._evaluation)[position]
        self._workspace.end_gesture()
        try:
            self._workspace.apply_workload(field.title.partition(",")[0].lower(), **{field.name: value})
        except PlannerError as error:
            self._workspace.failed.emit(error)

    def _lay_out(self, aside_width: int) -> None:
        aside = QWidget()
        aside.setFixedWidth(aside_width)
        column = QVBoxLayout(aside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(self._theme.spacing.medium)
        for row in self.largest:
            column.addWidget(row)
        column.addStretch(1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(self._theme.spacing.huge)
        layout.addWidget(self.curve, 1)
        layout.addWidget(aside)
