"""What dialogs have in common: their closing buttons, how they are opened, and questions before something is done."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QMessageBox, QPushButton, QWidget


def closing_buttons(dialog: QDialog, *actions: QPushButton) -> QDialogButtonBox:
    """Return `actions` and a button that closes `dialog`."""
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    for action in actions:
        buttons.addButton(action, QDialogButtonBox.ButtonRole.ActionRole)
    buttons.rejected.connect(dialog.reject)
    return buttons


def copy_button(text: Callable[[], str]) -> QPushButton:
    """Return a button that puts what `text` returns on the clipboard."""
    button = QPushButton("&Copy")
    button.clicked.connect(lambda: QGuiApplication.clipboard().setText(text()))
    return button


def open_once(dialog: QDialog) -> None:
    """Open a dialog that does not hold up the window and is gone when it is closed."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def confirmation(
    title: str, question: str, details: str, yes: QPushButton, parent: QWidget, answer: Callable[[bool], object]
) -> QMessageBox:
    """Return a box that asks before `yes` is done, which it is not by Return or Escape; `answer` gets what was said."""
    box = QMessageBox(QMessageBox.Icon.Warning, title, question, parent=parent.window())
    box.setInformativeText(details)
    box.addButton(yes, QMessageBox.ButtonRole.DestructiveRole)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.setEscapeButton(cancel)
    box.buttonClicked.connect(lambda button: answer(button is yes))
    return box
