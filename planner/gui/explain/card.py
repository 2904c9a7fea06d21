"""The card that explains a term: its definition, a drawing, and what it is in the current plan."""

from PySide6.QtCore import QRect, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QWidget

from planner.glossary import GlossaryTerm
from planner.gui.explain.drawing import DRAWING_SIZE, drawing_pixmap
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.popover import Popover

_WIDTH = DRAWING_SIZE.width() + 40


class TermCard(Popover):
    """Popover about `term`; `in_plan` is its figure in the current plan. `more` is emitted by the link *More*."""

    more = Signal(str)

    def __init__(self, parent: QWidget, theme: Theme, term: GlossaryTerm, in_plan: str) -> None:
        content = QWidget()
        super().__init__(parent, theme, content)
        self.term = term
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(f"Explanation: {term.term}")
        self.setAccessibleDescription(" ".join(filter(None, (term.definition, in_plan))))
        margin = theme.spacing.small
        column = in_column(
            make_label(term.term, font=theme.font(bold=True)),
            make_label(term.definition, wrap=True),
            owner=content,
            margins=margin,
            spacing=margin,
        )
        if term.drawing:
            drawing = QLabel()
            drawing.setPixmap(drawing_pixmap(theme, term.drawing, self.devicePixelRatio()))
            drawing.setAccessibleName(f"Drawing of {term.term}")
            column.addWidget(drawing)
        if in_plan:
            column.addWidget(make_label(in_plan, font=theme.font(bold=True), wrap=True))
        self.more_button = link_button("&More", "Read about it in GPU basics")
        self.more_button.clicked.connect(self._ask_for_more)
        column.addLayout(in_row(self.more_button, STRETCH))
        content.setFocusProxy(self.more_button)

    def open_at(self, anchor: QWidget, part: QRect | None = None) -> None:
        """Show the card below `anchor`, or a part of it, as tall as its texts need."""
        self.ensurePolished()
        layout = self.layout()
        height = layout.totalHeightForWidth(_WIDTH) if layout is not None else 0
        self.open_below(anchor, _WIDTH, height, part)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Read more with Return."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.more_button.click()
        else:
            super().keyPressEvent(event)

    @Slot()
    def _ask_for_more(self) -> None:
        self.close()
        self.more.emit(self.term.term)
