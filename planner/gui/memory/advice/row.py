"""One advice: what it is, what it saves and costs, and a button that makes the change."""

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.plan.advice.advise import Advice
from planner.present import format as fmt
from planner.present.memory.advice import advice_row


class AdviceLine(QWidget):
    """Two lines of words with their button; `wanted` carries the advice when that is pressed."""

    wanted = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._advice: Advice | None = None
        self._mark = QLabel()
        self._title = make_label(font=theme.font(bold=True), wrap=True)
        self._then = make_label()
        self._price = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.apply = QPushButton("Apply")
        self._lay_out()
        theme.changed.connect(self._dress)
        self.apply.clicked.connect(self._on_clicked)

    @property
    def words(self) -> str:
        """Return what is said."""
        return f"{self._title.text()}: {self._then.text()}; {self._price.text()}"

    def show_advice(self, advice: Advice) -> None:
        """Show another advice, which may be taken."""
        self._advice = advice
        row = advice_row(advice)
        saves = fmt.size_difference(-advice.saved_bytes) if row.saves else ""
        self._title.setText(row.title)
        self._then.setText(" · ".join(word for word in (saves, row.then) if word))
        self._price.setText(row.price)
        self.setToolTip("\n\n".join(row.details))
        self.apply.setAccessibleName(f"{self.apply.text()}: {row.title}")
        self.apply.setAccessibleDescription(self.words)
        self.setEnabled(True)
        self._dress()

    @Slot()
    def _dress(self) -> None:
        if self._advice is not None:
            side = self._theme.icon_side
            icon = self._theme.icon(*verdict_mark(self._advice.verdict))
            self._mark.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatio()))

    @Slot()
    def _on_clicked(self) -> None:
        self.wanted.emit(self._advice)

    def _lay_out(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(self._theme.spacing.small)
        grid.setVerticalSpacing(0)
        grid.addWidget(self._mark, 0, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self._title, 0, 1)
        grid.addWidget(self._then, 0, 2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self._price, 1, 1, 1, 2)
        grid.addWidget(self.apply, 0, 3, 2, 1, Qt.AlignmentFlag.AlignVCenter)
        grid.setColumnStretch(1, 1)
