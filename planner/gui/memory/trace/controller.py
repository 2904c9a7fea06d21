"""Controller of tracing, which asks for consent before code runs, and the widgets that show its state."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QFrame, QMessageBox, QPlainTextEdit, QProgressBar, QPushButton, QWidget

from planner.errors import PlannerError, TraceError
from planner.gui.memory.trace.tracer import FailedTrace, Tracer, TraceRun
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.dialogs import open_later
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.trace.request import Target, TraceRequest
from planner.trace.user_code import user_files

if TYPE_CHECKING:
    from planner.gui.memory.trace.dialog import TraceDialog
    from planner.gui.memory.trace.request_form import RequestForm


class OtherCardStrip(QWidget):
    """Notice that the traced operators are not those of the plan's card, with a button to trace again."""

    def __init__(self, theme: Theme, tracer: Tracer) -> None:
        super().__init__()
        self.words = make_label(role="warn", wrap=True)
        self.again = link_button("Trace again", "Trace the module again, with the operators of the plan's GPU.")
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
                f"The trace was made for a GPU of compute capability {traced.request.compute_capability}. "
                f"On the {gpu.name}, the operators may need a different amount of memory."
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


class TraceController(QObject):
    """Handles the window's requests to trace a module, and asks the user for consent to run its code."""

    opened = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tracer: Tracer, tab: QWidget) -> None:
        super().__init__(tab)
        self._workspace, self._theme, self._tracer, self._tab = workspace, theme, tracer, tab
        self.dialog: TraceDialog | None = None
        self.consent: QMessageBox | None = None
        workspace.navigator.trace_requested.connect(self.open_dialog)
        workspace.navigator.script_trace_requested.connect(self.open_for_script)
        workspace.navigator.trace_again_requested.connect(tracer.trace_again)
        workspace.navigator.trace_cancel_requested.connect(tracer.cancel)
        workspace.navigator.estimate_check_requested.connect(self.check_estimate)
        tracer.consent_requested.connect(self.ask_consent)

    @Slot(object)
    def open_dialog(self, subject: object = None) -> None:
        """Open the trace dialog for a new module, for the file `subject`, or to edit the request `subject`."""
        if self.dialog is None:
            # Imported here, as in `start_in_child`.
            from planner.gui.memory.trace.dialog import TraceDialog
            from planner.trace.run import missing_packages_hint

            # Without a parent first, and so without a style: to style so many widgets takes as long as to create them.
            self.dialog = TraceDialog(self._workspace, self._theme, None, missing_packages_hint())
            self.dialog.trace_requested.connect(self._trace)
        if isinstance(subject, TraceRequest) or not self.dialog.is_unfinished:
            self.dialog.set_request(subject if isinstance(subject, TraceRequest) else None)
        if isinstance(subject, Path):
            self.dialog.open_file(subject)
        open_later(self.dialog, self._tab.window())
        self.opened.emit()

    @Slot()
    def open_for_script(self) -> None:
        """Open the trace dialog for a script."""
        self.open_dialog()
        if self.dialog is not None:
            self.dialog.target.choose_script()

    @Slot(object)
    def _trace(self, request: TraceRequest) -> None:
        """Trace the dialog's request; the dialog stays open behind the question whether its code may run."""
        self._tracer.trace(request)
        if self.dialog is not None and self.consent is None:
            self.dialog.finish()

    @Slot()
    def edit(self) -> None:
        """Open the dialog to edit the request of the plan's module."""
        facts = self._workspace.plan.model.trace
        self.open_dialog(None if facts is None else self._tracer.requested or facts.request)

    @Slot()
    def check_estimate(self) -> None:
        """Trace the plan's own model, or report why that is not possible."""
        from planner.trace.run import missing_packages_hint  # imported here as in `start_in_child`

        with self._workspace.reporting():
            missing = missing_packages_hint(config=True)
            if missing is not None:
                raise TraceError("start", missing, environment=True)
            self._tracer.check_estimate()

    @Slot(object)
    def ask_consent(self, request: TraceRequest) -> None:
        """Ask for consent to run the code, once per version of a file."""
        is_from_dialog = self.dialog is not None and self.dialog.isVisible()
        parent = self.dialog if is_from_dialog else self._tab.window()
        box = QMessageBox(QMessageBox.Icon.Question, "Run this code?", _consent_question_text(request), parent=parent)
        box.setInformativeText(_consent_terms_text())
        run = box.addButton("&Run it", QMessageBox.ButtonRole.AcceptRole)
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.setEscapeButton(cancel)
        box.buttonClicked.connect(lambda button: self._on_consent(request, button is run))
        self.consent = box
        box.open()

    def _on_consent(self, request: TraceRequest, agreed: bool) -> None:
        box, self.consent = self.consent, None
        if box is not None:
            box.deleteLater()
        if agreed:
            if self.dialog is not None and self.dialog.isVisible():
                self.dialog.finish()
            self._tracer.agree(request)
        else:
            self._tracer.refuse()


def _consent_question_text(request: TraceRequest) -> str:
    files = user_files(request)
    names = "\n".join(map(str, files)) or request.target.title
    subject = "script" if request.target.is_script else "module"
    return f"To trace the {subject}, this code has to run on this computer:\n\n{names}"


def _consent_terms_text() -> str:
    from planner.trace.run import TraceLimits  # imported here as in `start_in_child`

    limits = TraceLimits()
    memory = "half of the free memory, at most 8 GiB" if limits.memory_bytes is None else fmt.size(limits.memory_bytes)
    return (
        f"It runs in a separate process for at most {limits.seconds / 60:g} minutes, with {memory} and with your "
        "permissions: it can read and change your files. Run only code that you trust. You are asked again when the "
        "file changes."
    )


class TracedRunForm(QWidget):
    """Form for the run settings of the plan's traced module."""

    def __init__(self, workspace: Workspace, theme: Theme, tracer: Tracer, controller: TraceController) -> None:
        super().__init__()
        self._workspace, self._theme, self._tracer = workspace, theme, tracer
        self.edit = push_button("Edit…", "Change inputs, arguments, loss and other settings.")
        self.again = push_button("Trace a&gain", "Trace it again with the same settings, because its file has changed.")
        self.command = make_label(role="muted", font=theme.font("small"), wrap=True, selectable=True)
        self.copy = push_button("Copy as comman&d", "Copy the command that traces the script in a shell.")
        self.copy.clicked.connect(self._copy_command)
        layout = in_column(
            self.command,
            in_row(self.edit, self.again, self.copy, STRETCH),
            owner=self,
            spacing=theme.spacing.small,
        )
        self._column = layout
        self.edit.clicked.connect(controller.edit)
        self.again.clicked.connect(tracer.trace_again)
        tracer.changed.connect(self._refresh_with_pending_request)

    @cached_property
    def form(self) -> "RequestForm":
        """Return the form for the run settings, built when a traced module is first shown."""
        from planner.gui.memory.trace.request_form import RequestForm

        form = RequestForm(self._workspace, self._theme)
        form.edited.connect(self._tracer.change)
        self._column.insertWidget(1, form)
        return form

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the trace request for the plan's module, or the changed request if a changed trace is pending."""
        if evaluation.traced is not None:
            request = (self._tracer.requested if self._tracer.is_change else None) or evaluation.traced.request
            self.form.set_request(request)
            self._show_command(request.target)

    def _show_command(self, target: Target) -> None:
        """Show the command that runs the traced script; nothing for a module."""
        if target.is_script:
            from planner.present.trace import command_text  # few traces are of scripts

            self.command.setText(command_text(target))
        self.command.setVisible(target.is_script)
        self.copy.setVisible(target.is_script)

    @Slot()
    def _copy_command(self) -> None:
        from planner.present.trace import shell_command  # as in `_show_command`

        evaluation = self._workspace.evaluation
        if evaluation.traced is not None:
            QGuiApplication.clipboard().setText(shell_command(evaluation.traced.request, evaluation.gpu))

    @Slot()
    def _refresh_with_pending_request(self) -> None:
        self.refresh(self._workspace.evaluation)
