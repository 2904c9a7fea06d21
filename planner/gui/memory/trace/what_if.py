"""What if the traced module were run in another way: each change is traced in the background."""

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.memory.trace.desk import TraceDesk
from planner.gui.memory.trace.tracer import Tracer
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation

if TYPE_CHECKING:
    from planner.gui.memory.trace.request_form import RequestForm


class WhatIf(QWidget):
    """The questions about the run of the plan's traced module."""

    def __init__(self, workspace: Workspace, theme: Theme, tracer: Tracer, desk: TraceDesk) -> None:
        super().__init__()
        self._workspace, self._theme, self._tracer = workspace, theme, tracer
        self.edit = QPushButton("Edit…")
        self.edit.setToolTip("Change inputs, arguments, loss and the rest.")
        self.again = QPushButton("Trace a&gain")
        self.again.setToolTip("Trace it as before, because its file has changed.")
        buttons = QHBoxLayout()
        for button in (self.edit, self.again):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.small)
        layout.addLayout(buttons)
        self._column = layout
        self.edit.clicked.connect(desk.edit)
        self.again.clicked.connect(tracer.trace_again)
        tracer.changed.connect(self._follow)

    @cached_property
    def form(self) -> "RequestForm":
        """Return the questions, which are made when a traced module is first shown."""
        from planner.gui.memory.trace.request_form import RequestForm

        made = RequestForm(self._workspace, self._theme)
        made.edited.connect(self._tracer.change)
        self._column.insertWidget(0, made)
        return made

    def refresh(self, evaluation: Evaluation) -> None:
        """Show how the module is run, or is about to be."""
        if evaluation.traced is not None:
            wanted = (self._tracer.wanted if self._tracer.is_change else None) or evaluation.traced.request
            self.form.set_request(wanted)

    @Slot()
    def _follow(self) -> None:
        self.refresh(self._workspace.evaluation)
