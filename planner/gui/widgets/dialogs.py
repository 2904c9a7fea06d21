"""Helpers for dialogs: close and copy buttons, opening, confirmation boxes, a report's file, and dropped files."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFileDialog, QMessageBox, QPushButton, QWidget

from planner.gui.threads import CalmTimer


def dropped_path(event: QDropEvent) -> Path | None:
    """Return the only local file or folder that is dragged, or None."""
    urls = event.mimeData().urls()
    return Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None


_KINDS: Final = "Web page (*.html);;PDF (*.pdf);;Markdown (*.md)"


def choose_report_file(parent: QWidget, suggestion: Path) -> Path | None:
    """Ask for the file of a report, and return it with the ending of its format; None if the question was closed."""
    name, kind = QFileDialog.getSaveFileName(parent, "Write a report", str(suggestion), _KINDS)
    if not name:
        return None
    path = Path(name)
    return path if path.suffix else path.with_suffix(kind.partition("(*")[2].rstrip(")"))


def closing_buttons(dialog: QDialog, *actions: QPushButton) -> QDialogButtonBox:
    """Return a button box with `actions` and a button that closes `dialog`."""
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    for action in actions:
        buttons.addButton(action, QDialogButtonBox.ButtonRole.ActionRole)
    buttons.rejected.connect(dialog.reject)
    return buttons


def copy_button(get_text: Callable[[], str]) -> QPushButton:
    """Return a button that copies the result of `get_text()` to the clipboard."""
    button = QPushButton("&Copy")
    button.clicked.connect(lambda: QGuiApplication.clipboard().setText(get_text()))
    return button


def open_once(dialog: QDialog) -> None:
    """Open a dialog without blocking the caller, and delete the dialog when it is closed."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def open_later(dialog: QDialog, parent: QWidget) -> None:
    """Open a dialog that has just been created over `parent` in a later turn; both at once would block the window.

    The wait ends with `parent`, which may be closed before.
    """

    def open_now() -> None:
        opening.deleteLater()
        if dialog.parent() is not parent:
            dialog.setParent(parent, dialog.windowFlags())
        dialog.open()

    opening = CalmTimer(parent)
    opening.timeout.connect(open_now)
    opening.start()


def confirmation(
    title: str, question: str, details: str, yes: QPushButton, parent: QWidget, answer: Callable[[bool], object]
) -> QMessageBox:
    """Return a message box that asks for confirmation; `answer` receives whether `yes` was clicked.

    Return and Escape cancel.
    """
    box = QMessageBox(QMessageBox.Icon.Warning, title, question, parent=parent.window())
    box.setInformativeText(details)
    box.addButton(yes, QMessageBox.ButtonRole.DestructiveRole)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.setEscapeButton(cancel)
    box.buttonClicked.connect(lambda button: answer(button is yes))
    return box
