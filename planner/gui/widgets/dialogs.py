"""What dialogs have in common."""

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPushButton


def closing_buttons(dialog: QDialog, *actions: QPushButton) -> QDialogButtonBox:
    """Return `actions` and a button that closes `dialog`."""
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    for action in actions:
        buttons.addButton(action, QDialogButtonBox.ButtonRole.ActionRole)
    buttons.rejected.connect(dialog.reject)
    return buttons
