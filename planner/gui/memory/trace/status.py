"""Status of the tracer: progress with a *Cancel* button, a failure with its traceback, or another card's notice."""

from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QProgressBar, QPushButton, QWidget

from planner.errors import PlannerError, TraceError
from planner.gui.memory.trace.tracer import FailedTrace, Tracer, TraceRun
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.plan.evaluate import Evaluation


class OtherCardStrip(QWidget):
    """Notice that the traced operators are not those of the plan's card, with a button to trace again."""

    def __init__(self, theme: Theme, tracer: Tracer) -> None:
        super().__init__()
        self.words = make_label(role="warn", wrap=True)
        self.again = link_button("Trace again", "Trace the module again, with the operators of the plan's card.")
        in_row((self.words, 1), self.again, owner=self, spacing=theme.spacing.small)
        self.again.clicked.connect(tracer.trace_for_card)
        self.hide()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the notice if the traced module of `evaluation` was traced for another card."""
        traced, gpu = evaluation.traced, evaluation.gpu
        self.hide()
        if traced is None or gpu is None:
            return
        from planner.plan.trace_request import is_traced_for_other_card  # few plans are traced

        if is_traced_for_other_card(traced.request, gpu):
            self.words.setText(
                f"The trace was made for another card, of CUDA {traced.request.compute_capability}. "
                f"The operators of the {gpu.name} may need other memory."
            )
            self.show()


_MAX_LINES: Final = 12
_OUTDATED_NOTE: Final = "The figures below are for the previous settings."


class TraceStatus(QWidget):
    """Progress or failure of the latest trace; `edit_requested` carries the request of a failed trace to edit."""

    edit_requested = Signal(object)

    def __init__(self, theme: Theme, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer
        self.progress = _ProgressStrip(theme)
        self.failure = _FailurePanel(theme)
        in_column(self.progress, self.failure, owner=self)
        self.progress.cancel.clicked.connect(tracer.cancel)
        self.failure.dismiss.clicked.connect(tracer.dismiss)
        self.failure.edit.clicked.connect(self._request_edit)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the current state of the tracer."""
        tracer = self._tracer
        self.progress.setVisible(tracer.busy)
        if tracer.busy:
            self.progress.show_run(tracer.run, is_change=tracer.is_change)
        self.failure.setVisible(tracer.failure is not None)
        if tracer.failure is not None:
            self.failure.show_failure(tracer.failure)
        self.setVisible(tracer.busy or tracer.failure is not None)

    @Slot()
    def _request_edit(self) -> None:
        if self._tracer.failure is not None:
            self.edit_requested.emit(self._tracer.failure.request)


class _ProgressStrip(QFrame):
    """One line with the traced module, its progress, and *Cancel*."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "strip")
        self._text = ElidedLabel()
        self._old = make_label(role="muted", font=theme.font("small"))
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedWidth(120)
        self._bar.setAccessibleName("Progress of the trace")
        self.cancel = push_button("Cancel", "Cancel the trace; the current result stays.")
        in_row(
            (in_column(self._text, self._old, spacing=0), 1),
            self._bar,
            self.cancel,
            owner=self,
            margins=(theme.spacing.medium, theme.spacing.small),
            spacing=theme.spacing.medium,
        )

    def show_run(self, run: TraceRun | None, *, is_change: bool) -> None:
        """Show the progress of `run`, or that a trace is about to start."""
        progress = run.progress if run else None
        steps = progress.steps if progress else 0
        self._bar.setRange(0, steps)
        self._bar.setValue(progress.step if progress else 0)
        self._text.setText(_progress_text(run))
        self._old.setText(_OUTDATED_NOTE)
        self._old.setVisible(is_change)
        self.setAccessibleName(self._text.text())


class _FailurePanel(QFrame):
    """Failure of a trace: message, hint, and the traceback of the user's code."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "banner")
        self._message = make_label(font=theme.font(bold=True), wrap=True, selectable=True)
        self._hint = make_label(wrap=True, selectable=True)
        self.details = QPlainTextEdit(readOnly=True)
        self.details.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.details.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.details.setAccessibleName("Traceback of the module's own code")
        self.details.setTabChangesFocus(True)
        self.edit = QPushButton("Edit…")
        self.copy = QPushButton("Copy")
        self.dismiss = QPushButton("Dismiss")
        self._lay_out(theme)
        self.copy.clicked.connect(self._copy_failure)

    def show_failure(self, failure: FailedTrace) -> None:
        """Show a failed trace."""
        error = failure.error
        message = error.message
        self._message.setText(f"{failure.request.target.short_title} could not be traced: {message}")
        self._hint.setText(error.hint)
        self._hint.setVisible(bool(error.hint))
        details = _traceback_text(error)
        if details != self.details.toPlainText():
            self.details.setPlainText(details)
            self.details.verticalScrollBar().setValue(self.details.verticalScrollBar().maximum())
        lines = min(_MAX_LINES, details.count("\n") + 2)
        self.details.setFixedHeight(
            lines * self.details.fontMetrics().lineSpacing() + 2 * self.details.frameWidth() + 16
        )
        self.details.setVisible(bool(details))
        self.setAccessibleName(f"Error: {message}")

    @Slot()
    def _copy_failure(self) -> None:
        parts = (self._message.text(), self._hint.text(), self.details.toPlainText())
        QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))

    def _lay_out(self, theme: Theme) -> None:
        layout = in_column(
            self._message,
            self._hint,
            self.details,
            owner=self,
            margins=(theme.spacing.medium, theme.spacing.small),
            spacing=theme.spacing.tiny,
        )
        buttons = in_row(self.edit, self.copy, self.dismiss, STRETCH)
        layout.addLayout(buttons)


def _progress_text(run: TraceRun | None) -> str:
    if run is None:
        return "Tracing again in a moment…"
    name = run.request.target.short_title
    if run.progress is None:
        return f"Tracing {name}: starting…"
    return f"Tracing {name}: {run.progress.text}"


def _traceback_text(error: PlannerError) -> str:
    return error.details if isinstance(error, TraceError) else ""
