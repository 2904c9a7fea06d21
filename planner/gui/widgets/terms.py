"""Labels whose text names a glossary term: underlined softly, and explained by a click or by Shift+F1."""

from html import escape
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QEnterEvent,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QTextLayout,
)
from PySide6.QtWidgets import QAbstractButton, QLabel, QTableView, QToolTip, QWidget

from planner.glossary import GlossaryTerm, find_term, is_glossary_read

EXPLAIN_KEY: Final = "Shift+F1"
_BELOW_BASELINE: Final = 3
_BESIDE_MNEMONIC: Final = 2
"""Pixels between the line of a mnemonic letter and the soft underline."""


class TermRequests(QObject):
    """Child of a window that explains terms: `card_requested` carries a term, its widget and its place there.

    Widgets of the window and of its dialogs find it through their parents, so that none has to know who explains.
    """

    card_requested = Signal(object, object, object)


def explain(term: GlossaryTerm, anchor: QWidget, part: QRect | None = None) -> None:
    """Ask the window of `anchor` to explain `term` below the widget, or below a `part` of it."""
    window: QWidget | None = anchor.window()
    while window is not None:
        found = window.findChild(TermRequests, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if found is not None:
            found.card_requested.emit(term, anchor, part)
            return
        parent = window.parentWidget()
        window = None if parent is None else parent.window()


def explaining_action(term: GlossaryTerm, anchor: QWidget, part: QRect | None = None) -> QAction:
    """Return a menu action that explains `term` below the widget, or below a `part` of it."""
    action = QAction(f"Explain: {term.term}", anchor)
    action.triggered.connect(lambda: explain(term, anchor, part))
    return action


def term_of(text: str) -> GlossaryTerm | None:
    """Return the term that `text` names; None also until the window has read the glossary, after its start."""
    return find_term(text) if text and is_glossary_read() else None


def terms_at(widget: QWidget) -> list[GlossaryTerm]:
    """Return the terms that the focused `widget` names: those of a table's columns, else that of its name or text."""
    if isinstance(widget, QTableView):
        return table_terms(widget)
    text = widget.text() if isinstance(widget, QAbstractButton) else ""
    name = widget.accessibleName()
    found = find_term(text) or find_term(name.partition(",")[0]) or find_term(name)
    return [] if found is None else [found]


def table_terms(table: QTableView) -> list[GlossaryTerm]:
    """Return the terms of the visible columns of `table`, from left to right."""
    header, model = table.horizontalHeader(), table.model()
    positions = [header.logicalIndex(visual) for visual in range(header.count())]
    titles = (
        str(model.headerData(position, Qt.Orientation.Horizontal) or "")
        for position in positions
        if not header.isSectionHidden(position)
    )
    return list(dict.fromkeys(filter(None, map(find_term, titles))))


def explained_tooltip(hint: str, term: GlossaryTerm | None, action: str = f"Click it or press {EXPLAIN_KEY}") -> str:
    """Return a tooltip as rich text: `hint`, then the first sentence of `term`, if any, and how to read more."""
    if term is None:
        return hint
    first = term.definition.partition(". ")[0].rstrip(".")
    lines = (
        escape(hint).replace("\n", "<br>"),
        f"<b>{escape(term.term)}</b>: {escape(first)}.",
        f"<i>{action} for more.</i>",
    )
    return "".join(f"<p>{line}</p>" for line in lines if line)


def underline_text(painter: QPainter, text: str, room: QRect, mnemonic: int = -1) -> None:
    """Draw the soft underline below each line of `text`, which wraps within `room`, in the painter's font and color.

    The letter at the index `mnemonic` has a line of its own, and none of these.
    """
    metrics, layout = painter.fontMetrics(), QTextLayout(text, painter.font())
    layout.beginLayout()
    baseline = room.top() + metrics.ascent() + _BELOW_BASELINE
    while (line := layout.createLine()).isValid():
        line.setLineWidth(room.width())
        start, end = 0.0, min(line.naturalTextWidth(), room.width())
        if line.textStart() <= mnemonic < line.textStart() + line.textLength():
            letter = metrics.horizontalAdvance(text[line.textStart() : mnemonic])
            draw_underline(painter, room.left(), max(0, letter - _BESIDE_MNEMONIC), baseline)
            start = letter + metrics.horizontalAdvance(text[mnemonic]) + _BESIDE_MNEMONIC
        draw_underline(painter, room.left() + start, end - start, baseline)
        baseline += metrics.lineSpacing()
    layout.endLayout()


def draw_underline(painter: QPainter, left: float, width: float, y: float) -> None:
    """Draw the soft underline of a term in the painter's color."""
    if width <= 0:
        return
    painter.setPen(QPen(painter.pen().color(), 1, Qt.PenStyle.DotLine))
    painter.drawLine(QPoint(round(left), round(y)), QPoint(round(left + width), round(y)))


def show_explained_tooltip(
    event: QEvent, widget: QWidget, hint: str, term: GlossaryTerm | None, action: str = ""
) -> bool:
    """Show the tooltip `hint`, with the first sentence of `term`, if `event` asks for one; return whether it does."""
    if not isinstance(event, QHelpEvent) or event.type() != QEvent.Type.ToolTip:
        return False
    QToolTip.showText(event.globalPos(), explained_tooltip(hint, term, *filter(None, (action,))), widget)
    return True


class TermLabel(QLabel):
    """Label that is underlined softly if its text names a glossary term; a click explains the term."""

    @property
    def term(self) -> GlossaryTerm | None:
        """Return the term that the text names."""
        return term_of(self.text())

    def event(self, event: QEvent) -> bool:
        """Add the first sentence about the term to the tooltip."""
        return show_explained_tooltip(event, self, self.toolTip(), self.term) or super().event(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        """Show the cursor of help over a term."""
        self.setCursor(Qt.CursorShape.WhatsThisCursor if self.term else Qt.CursorShape.ArrowCursor)
        super().enterEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Explain the term."""
        if self.term is not None and event.button() == Qt.MouseButton.LeftButton:
            explain(self.term, self)
            return
        super().mouseReleaseEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, and below the lines of a term the soft underline."""
        super().paintEvent(event)
        if self.term is None:
            return
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
        underline_text(painter, self.text().replace("&", ""), self._place_of_text(), self.text().find("&"))
        painter.end()

    def _place_of_text(self) -> QRect:
        """Return the room of the text, which is centered within the label."""
        area, flags = self.contentsRect(), Qt.TextFlag.TextWordWrap if self.wordWrap() else 0
        needed = self.fontMetrics().boundingRect(area, int(flags), self.text()).height()
        return area.adjusted(0, (area.height() - needed) // 2, 0, 0)
