"""A banner across the window for errors and notices."""

import re
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame

from planner.errors import NoFormulaError, PlannerError
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import IconButton, push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row

_FIRST_WORD: Final = re.compile(r"[a-z]+ ")


class Banner(QFrame):
    """Banner with one message; `trace_requested` carries the network that the message offers to trace."""

    trace_requested = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "banner")
        self._message = make_label(font=theme.font(bold=True), wrap=True, selectable=True)
        self._hint = make_label(role="muted", wrap=True, selectable=True)
        dismiss = IconButton(theme, "close", "Dismiss this message")
        dismiss.clicked.connect(self.hide)
        self._traceable = ""
        self._is_past_error = False
        self.trace = push_button(
            "&Trace it…", "Count the model's memory by tracing it with fake tensors: no GPU needed"
        )
        self.trace.clicked.connect(lambda: self.trace_requested.emit(self._traceable))
        in_row(
            (in_column(self._message, self._hint, spacing=theme.spacing.tiny), 1),
            (self.trace, 0, Qt.AlignmentFlag.AlignTop),
            (dismiss, 0, Qt.AlignmentFlag.AlignTop),
            owner=self,
            margins=(theme.spacing.medium, theme.spacing.small),
        )
        self.hide()

    @property
    def text(self) -> str:
        """Return the message of the banner."""
        return self._message.text()

    @property
    def hint(self) -> str:
        """Return the hint or the details below the message."""
        return self._hint.text()

    def show_error(self, error: PlannerError) -> None:
        """Show the message and the hint of an error."""
        set_style_role(self, "", "tone")
        self._show_message(error.message, error.hint, f"Error: {error.message}")
        # What fails in part may still change the plan in the same turn of the event loop.
        QTimer.singleShot(0, self, self._note_error)
        if isinstance(error, NoFormulaError):
            self._traceable = error.traceable
            self.trace.show()

    def show_notice(self, message: str, details: str) -> None:
        """Show a notice, with its details below the message."""
        set_style_role(self, "notice", "tone")
        self._show_message(message, details, message)

    @Slot()
    def hide_past_error(self) -> None:
        """Hide an error, because something later succeeded; a notice stays until it is dismissed."""
        if self._is_past_error:
            self.hide()

    @Slot()
    def _note_error(self) -> None:
        self._is_past_error = self.property("tone") != "notice"

    def _show_message(self, message: str, details: str, name: str) -> None:
        self._is_past_error = False
        # A message begins with a name, which keeps its spelling, or with a word.
        first = _FIRST_WORD.match(message)
        self._message.setText(f"{message[0].upper()}{message[1:]}" if first else message)
        self._hint.setText(details)
        self._hint.setVisible(bool(details))
        self.setAccessibleName(name)
        self.trace.hide()
        self.show()

    @Slot()
    def dismiss(self) -> None:
        """Hide the banner."""
        self.hide()
