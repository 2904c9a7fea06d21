"""What the comparison says while nothing is in it, and how to begin."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.present.catalog.comparison import MOST


class NothingCompared(QWidget):
    """`add` picks a card or a system by name, `show_table` goes where several can be chosen."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        space = theme.spacing
        self.add = QPushButton("&Add a card or system…")
        self.show_table = QPushButton("Choose in the &table")
        mark(self.add, "primary")
        words = (
            f"Up to {MOST} cards and systems stand side by side, with your plan on each: does it fit, how long does it "
            "take, what does it cost? In the table, choose rows and press Compare."
        )
        buttons = QHBoxLayout()
        buttons.setSpacing(space.small)
        buttons.addWidget(self.add)
        buttons.addWidget(self.show_table)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(*(space.huge,) * 4)
        column.setSpacing(space.medium)
        column.addWidget(make_label("Nothing is compared yet", font=theme.font("title", bold=True)))
        column.addWidget(make_label(words, "muted", wrap=True))
        column.addLayout(buttons)
        column.addStretch(1)
        column.setAlignment(Qt.AlignmentFlag.AlignTop)
