"""A button that looks like a link."""

from PySide6.QtWidgets import QPushButton

from planner.gui.theme import mark


def link_button(words: str, tooltip: str) -> QPushButton:
    """Return a button that says `words`, for what is done less often than what other buttons do."""
    button = QPushButton(words)
    button.setToolTip(tooltip)
    mark(button, "link")
    return button
