"""Memory breakdown: bars of the phases, and a table of the terms of the peak, each of which expands to its formula."""

import re
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QContextMenuEvent,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QAbstractButton, QLabel, QSizePolicy, QToolTip, QWidget

from planner.glossary import GlossaryTerm
from planner.gui.theme import Theme
from planner.gui.widgets.labels import colored, fact_rows, table_row
from planner.gui.widgets.layout import in_column, laid_out_at_once
from planner.gui.widgets.terms import EXPLAIN_KEY, draw_underline, explain, show_explained_tooltip, term_of
from planner.present import format as fmt
from planner.present.memory.view import MemoryView, PartRow, PhaseRow, SymbolRow, TermRow

_BAR_HEIGHT: Final = 8
_MINIMUM_WIDTH: Final = 150


class PhaseBars(QWidget):
    """Two lines per phase of the run: name and memory, then a bar of the memory terms on the peak phase's scale.

    The peak phase is bold.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[PhaseRow, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Phases of the run")
        theme.changed.connect(self._fit_height)

    def set_view(self, view: MemoryView) -> None:
        """Show the phases of a memory result."""
        self._rows = view.phases
        self.setAccessibleDescription("; ".join(map(_screen_reader_text, self._rows)))
        self._fit_height()

    def sizeHint(self) -> QSize:
        """Return the total height of all phases in pixels."""
        return QSize(_MINIMUM_WIDTH, round(len(self._rows) * self._row_height_pixels()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the phases from top to bottom."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, row in enumerate(self._rows):
            self._paint_phase(painter, row, number * self._row_height_pixels())
        painter.end()

    def event(self, event: QEvent) -> bool:
        """Show a phase's exact size in bytes and its explanation as a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            number = int(event.pos().y() / self._row_height_pixels())
            row = self._rows[number] if 0 <= number < len(self._rows) else None
            QToolTip.showText(event.globalPos(), _tooltip_text(row) if row else "", self)
            return True
        return super().event(event)

    @Slot()
    def _fit_height(self) -> None:
        self.setFixedHeight(self.sizeHint().height())
        self.update()

    def _row_height_pixels(self) -> float:
        return QFontMetricsF(self._theme.font("small")).height() + _BAR_HEIGHT + self._theme.spacing.small

    def _paint_phase(self, painter: QPainter, row: PhaseRow, top: float) -> None:
        font = self._theme.font("small", bold=row.is_peak)
        painter.setFont(font)
        painter.setPen(self._theme.color("text" if row.is_peak else "muted"))
        line = QRectF(0, top, self.width(), QFontMetricsF(font).height())
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, self._phase_title(row, QFontMetricsF(font)))
        painter.drawText(line, Qt.AlignmentFlag.AlignRight, row.text)
        track = QRectF(0, line.bottom() + 1, self.width(), _BAR_HEIGHT)
        painter.fillRect(track, self._theme.color("free"))
        left = 0.0
        for part in row.parts:
            width = row.share * self.width() * part.bytes / row.bytes
            painter.fillRect(QRectF(left, track.top(), width, _BAR_HEIGHT), self._theme.color(part.name))
            left += width
        if row.is_peak:
            painter.setPen(QPen(self._theme.color("text"), 1))
            painter.drawRect(track.adjusted(0.5, 0.5, -0.5, -0.5))

    def _phase_title(self, row: PhaseRow, metrics: QFontMetricsF) -> str:
        """Return the phase's title; the title of the peak phase ends in *peak* if there is room."""
        title_with_peak = f"{row.title} · peak"
        fits = metrics.horizontalAdvance(f"{title_with_peak}  {row.text}") <= self.width()
        return title_with_peak if row.is_peak and fits else row.title


def _screen_reader_text(row: PhaseRow) -> str:
    return f"{row.title} {row.text}{', the peak' if row.is_peak else ''}"


def _tooltip_text(row: PhaseRow) -> str:
    return "\n".join(part for part in (f"{row.title}: {row.exact}", row.explanation) if part)


SHARE: Final = "Share"
HOW: Final = "How"
CONFIDENCE: Final = "Confidence"
_WIDEST_TITLE: Final = "Framework overhead"
_WIDEST_AMOUNT: Final = "123.45"
_WIDEST_SHARE: Final = "100 %"
_WIDEST_CONFIDENCE: Final = "counted exactly"
_TYPICAL_HOW: Final = "2,048 tokens × 128,256 logits × 14 bytes"
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_WRAPPED = _LEFT | Qt.TextFlag.TextWordWrap
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_ORIGINS: Final = {
    "model": "from the model",
    "workload": "your choice",
    "card": "from the GPU",
    "format": "from the format",
    "library": "from the library",
}
_NUMBER_WITH_NOUN: Final = re.compile(rf"(?<=[\dBM])[ {fmt.THIN}](?=[A-Za-z%])")
"""The space between a number and its unit or noun, at which no line breaks."""
_CELL_SPACING: Final = 2
_TALL: Final = 10_000
Cells = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class ColumnPositions:
    """Horizontal positions of the breakdown columns, in pixels."""

    chevron: float
    swatch: float
    title: float
    amount_right: float
    share_right: float
    how: float
    how_right: float
    confidence: float
    width: float

    @property
    def how_width(self) -> float:
        """Return the width of the *How* column."""
        return max(1, self.how_right - self.how)


def place_columns(theme: Theme, width: int) -> ColumnPositions:
    """Return the column positions in a table of `width` pixels; *How* takes the remaining width.

    In a narrow table the column *Confidence* is left out: the opened row and the tooltip state it.
    """
    metrics, plain = QFontMetricsF(theme.font(bold=True)), QFontMetricsF(theme.font())
    gap = theme.spacing.medium
    swatch = theme.icon_side + theme.spacing.tiny
    title = swatch + metrics.ascent() + theme.spacing.small
    amount_right = title + metrics.horizontalAdvance(_WIDEST_TITLE) + metrics.horizontalAdvance(_WIDEST_AMOUNT)
    share_right = amount_right + gap + metrics.horizontalAdvance(_WIDEST_SHARE)
    how = share_right + theme.spacing.large
    confidence = width - plain.horizontalAdvance(_WIDEST_CONFIDENCE) - theme.spacing.tiny
    how_right = confidence - gap
    if how_right - how < plain.horizontalAdvance(_TYPICAL_HOW):
        how_right = confidence = max(how, width)
    return ColumnPositions(0, swatch, title, amount_right, share_right, how, how_right, confidence, width)


def row_height(theme: Theme, lines: int = 1) -> int:
    """Return the height of a breakdown row with so many `lines` of text, in pixels."""
    return round(lines * QFontMetricsF(theme.font()).height() + theme.spacing.small)


def paint_cells(painter: QPainter, columns: ColumnPositions, height: int, cells: Cells) -> None:
    """Paint title, amount, share, *How* and confidence into their columns, in the painter's font and pen."""
    title, amount, share, how, confidence = cells
    painter.drawText(QRectF(columns.title, 0, columns.amount_right - columns.title, height), _LEFT, title)
    painter.drawText(QRectF(0, 0, columns.amount_right, height), _RIGHT, amount)
    painter.drawText(QRectF(0, 0, columns.share_right, height), _RIGHT, share)
    painter.drawText(QRectF(columns.how, 0, columns.how_width, height), _WRAPPED, how)
    painter.drawText(QRectF(columns.confidence, 0, columns.width - columns.confidence, height), _LEFT, confidence)


class TermButton(QAbstractButton):
    """Line of a memory term, checked while expanded. Return and Space expand the line; Up and Down move between lines.

    `stepped` carries −1 for Up and 1 for Down.
    """

    stepped = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._row: TermRow | None = None
        self._how = ""
        self._heights: dict[int, int] = {}  # by width: Qt's layouts ask for several widths in turn, again and again
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._on_theme_changed)
        self.toggled.connect(self._update_accessible_name)

    def set_row(self, row: TermRow) -> None:
        """Show a memory term."""
        if row == self._row:
            return
        how = _NUMBER_WITH_NOUN.sub("\N{NO-BREAK SPACE}", row.how)
        is_reworded, self._row, self._how = how != self._how, row, how
        self.setToolTip(f"{row.exact} ({row.range_text}), {row.certainty}")
        self._update_accessible_name()
        if is_reworded:
            self._heights.clear()
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return a size with the height of a row whose words do not wrap; see `heightForWidth`."""
        return QSize(0, row_height(self._theme))

    def heightForWidth(self, width: int) -> int:
        """Return the height of the row, whose words on how it is computed wrap."""
        if width not in self._heights:
            self._heights[width] = self._wrapped_height(width)
        return self._heights[width]

    @Slot()
    def _on_theme_changed(self) -> None:
        self._heights.clear()
        self.update()

    def _wrapped_height(self, width: int) -> int:
        metrics = QFontMetricsF(self._theme.font())
        box = QRectF(0, 0, place_columns(self._theme, width).how_width, _TALL)
        words = metrics.boundingRect(box, _WRAPPED, self._how)
        return row_height(self._theme, max(1, round(words.height() / metrics.lineSpacing())))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the line, with a frame while the line has the focus."""
        if self._row is None:
            return
        painter, columns = QPainter(self), place_columns(self._theme, self.width())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_background(painter)
        self._paint_chevron_and_swatch(painter, columns, self._row)
        painter.setFont(self._theme.font(bold=self.isChecked()))
        painter.setPen(self._theme.color("text"))
        paint_cells(painter, columns, self.height(), (self._row.title, self._row.amount, self._row.share_text, "", ""))
        painter.setFont(self._theme.font())
        paint_cells(painter, columns, self.height(), ("", "", "", self._how, ""))
        painter.setPen(self._theme.color("muted"))
        if self.term is not None:
            metrics = self.fontMetrics()
            underline = (self.height() + metrics.height()) / 2
            draw_underline(painter, columns.title, metrics.horizontalAdvance(self._row.title), underline)
        if columns.confidence < columns.width:
            paint_cells(painter, columns, self.height(), ("", "", "", "", self._row.certainty))
        painter.end()

    @property
    def term(self) -> GlossaryTerm | None:
        """Return the glossary term of the line."""
        return None if self._row is None else term_of(self._row.title)

    def event(self, event: QEvent) -> bool:
        """Add the first sentence about the term to the tooltip."""
        action = f"Right-click it or press {EXPLAIN_KEY}"
        return show_explained_tooltip(event, self, self.toolTip(), self.term, action) or super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Explain the term on a right click."""
        if self.term is not None:
            explain(self.term, self)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Expand the line with Return or Space; move to the line above or below with Up and Down."""
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif key in steps:
            self.stepped.emit(steps[key])
        else:
            super().keyPressEvent(event)

    def _paint_background(self, painter: QPainter) -> None:
        ground = self.rect().adjusted(0, 0, -1, -1)
        if self.underMouse():
            painter.fillRect(self.rect(), self._theme.color("hover"))
        painter.fillRect(0, ground.bottom(), self.width(), 1, self._theme.color("border"))
        if self.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.drawRoundedRect(ground, self._theme.tokens.radius, self._theme.tokens.radius)

    def _paint_chevron_and_swatch(self, painter: QPainter, columns: ColumnPositions, row: TermRow) -> None:
        chevron = "chevron-down" if self.isChecked() else "chevron-right"
        top = (self.height() - self._theme.icon_side) // 2
        painter.drawPixmap(round(columns.chevron), top, self._theme.pixmap(chevron, "muted", self.devicePixelRatio()))
        swatch = QFontMetricsF(QFont(self._theme.font("small"))).ascent()
        painter.fillRect(
            QRectF(columns.swatch, (self.height() - swatch) / 2, swatch, swatch), self._theme.color(row.name)
        )

    def _update_accessible_name(self) -> None:
        if self._row is not None:
            state = "expanded" if self.isChecked() else "collapsed"
            row = self._row
            self.setAccessibleName(f"{row.title}, {fmt.size(row.bytes)}, {row.share_text}, {row.certainty}, {state}")
            self.setAccessibleDescription(row.how)


class TermDetail(QLabel):
    """Details of a memory term as selectable text: formula, values, symbols, parts, source and confidence."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(wordWrap=True, textFormat=Qt.TextFormat.RichText)
        self._theme = theme
        self._row: TermRow | None = None
        self._heights: dict[int, int] = {}
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        left = round(place_columns(theme, 0).title) - _CELL_SPACING
        self.setContentsMargins(left, theme.spacing.tiny, 0, theme.spacing.small)
        self.setFont(theme.font("small"))
        theme.changed.connect(self._update_html)

    def set_row(self, row: TermRow) -> None:
        """Show a memory term."""
        if row != self._row:
            self._row = row
            self.setAccessibleName(f"How {row.title.lower()} is computed")
            self._update_html()

    def heightForWidth(self, width: int) -> int:
        """Return the height of the text, laid out once for each width: a layout asks many times."""
        if width not in self._heights:
            self._heights[width] = super().heightForWidth(width)
        return self._heights[width]

    @Slot()
    def _update_html(self) -> None:
        self._heights.clear()
        if self._row is not None:
            self.setText(detail_html(self._row, self._theme.color("muted").name()))


def detail_html(row: TermRow, muted: str) -> str:
    """Return all details of `row` as HTML, with headings in the color `muted`."""
    facts = [("Formula", row.formula), ("With values", _formula_with_values_text(row.substituted, row.exact))]
    if row.range_text != fmt.size(row.bytes):
        facts.append(("Range", row.range_text))
    facts += [("Confidence", row.certainty), ("Source", row.source)]
    blocks = (
        fact_rows(facts, muted),
        _heading_row_html(("Symbol", "Value", "Meaning", "Origin"), muted)
        + "".join(map(_symbol_row_html, row.symbols)),
        _heading_row_html(("Part", "Size", "Calculation"), muted)
        + "".join(_part_row_html(part, muted) for part in row.parts),
    )
    shown = (True, bool(row.symbols), bool(row.parts))
    tables = (f'<table width="100%" cellspacing="{_CELL_SPACING}">{block}</table>' for block in blocks)
    return "".join(table for table, some in zip(tables, shown, strict=True) if some)


def _formula_with_values_text(numbers: str, exact: str) -> str:
    return exact if exact.startswith(numbers) else f"{numbers} = {exact}"


def _symbol_row_html(symbol: SymbolRow) -> str:
    origin = _ORIGINS.get(symbol.origin, symbol.origin)
    return table_row(*map(escape, (symbol.name, symbol.value, symbol.meaning, origin)))


def _part_row_html(part: PartRow, muted: str) -> str:
    numbers = _formula_with_values_text(part.substituted, part.exact)
    source = f'<tr><td></td><td colspan="2">{colored(part.source, muted)}</td></tr>'
    return table_row(*map(escape, (part.title, part.text, numbers))) + source


def _heading_row_html(headings: tuple[str, ...], muted: str) -> str:
    return table_row(*(colored(head, muted) for head in headings))


class Breakdown(QWidget):
    """One line per term between a heading and the total. Expanded terms stay expanded when the plan changes."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[TermRow, ...] = ()
        self._lines: list[tuple[TermButton, TermDetail]] = []
        self._open: set[str] = set()
        self._head = _TextLine(theme, "muted", bold=False)
        self._total = _TextLine(theme, "text", bold=True)
        self._layout = in_column(self._head, self._total, owner=self, spacing=0)

    @property
    def term_buttons(self) -> tuple[TermButton, ...]:
        """Return the buttons of the memory terms, from top to bottom."""
        return tuple(button for button, _ in self._lines[: len(self._rows)])

    def detail(self, name: str) -> TermDetail | None:
        """Return the details of the term called `name`, or None if the term is collapsed."""
        names = [row.name for row in self._rows]
        return self._lines[names.index(name)][1] if name in names and name in self._open else None

    def set_view(self, view: MemoryView) -> None:
        """Show the terms of a memory result."""
        self._rows = view.terms
        while len(self._lines) < len(self._rows):
            self._add_term_line()
        for number, (button, detail) in enumerate(self._lines):
            row = self._rows[number] if number < len(self._rows) else None
            button.setVisible(row is not None)
            self._show_detail(detail, row)
            if row is not None:
                button.set_row(row)
                button.setChecked(row.name in self._open)
        self._head.set_cells(("Term", view.unit, SHARE, HOW, CONFIDENCE))
        self._total.set_cells(("Total", fmt.table_size(view.total_bytes, view.total_bytes), fmt.percent(1), "", ""))
        self._total.setToolTip(fmt.exact_bytes(view.total_bytes))

    def open_term(self, name: str) -> None:
        """Expand the term called `name` and focus it."""
        for row, button in zip(self._rows, self.term_buttons, strict=True):
            if row.name == name:
                button.setChecked(True)
                self._on_line_toggled(self.term_buttons.index(button))
                button.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy all lines as tab-separated text with the copy shortcut."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText("".join("\t".join(cells) + "\n" for cells in self._all_line_cells()))
        else:
            super().keyPressEvent(event)

    def _all_line_cells(self) -> list[Cells]:
        rows = [(row.title, row.amount, row.share_text, row.how, row.certainty) for row in self._rows]
        return [self._head.cells, *rows, self._total.cells]

    def _add_term_line(self) -> None:
        number = len(self._lines)
        button, detail = TermButton(self._theme), TermDetail(self._theme)
        button.clicked.connect(partial(self._on_line_toggled, number))
        button.stepped.connect(partial(self._focus_line_beside, number))
        self._lines.append((button, detail))
        for widget in (button, detail):
            self._layout.insertWidget(self._layout.count() - 1, widget)

    def _on_line_toggled(self, number: int, _checked: bool = False) -> None:
        button, detail = self._lines[number]
        row = self._rows[number]
        (self._open.add if button.isChecked() else self._open.discard)(row.name)
        with laid_out_at_once(self):
            self._show_detail(detail, row)

    def _show_detail(self, detail: TermDetail, row: TermRow | None) -> None:
        shown = row is not None and row.name in self._open
        if shown and row is not None:
            detail.set_row(row)
        detail.setVisible(shown)

    def _focus_line_beside(self, number: int, step: int) -> None:
        if 0 <= number + step < len(self._rows):
            self._lines[number + step][0].setFocus()


class _TextLine(QWidget):
    """The heading line or the total line of the breakdown."""

    def __init__(self, theme: Theme, role: str, bold: bool) -> None:
        super().__init__()
        self._theme, self._role, self._bold = theme, role, bold
        self.cells: Cells = ("", "", "", "", "")
        self.setFixedHeight(row_height(theme))
        theme.changed.connect(self.update)

    def set_cells(self, cells: Cells) -> None:
        """Show the texts `cells` in the line."""
        self.cells = cells
        self.update()

    def sizeHint(self) -> QSize:
        """Return a size with the height of a breakdown line."""
        return QSize(0, row_height(self._theme))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the texts, with a hairline below the heading."""
        painter = QPainter(self)
        painter.setFont(self._theme.font("body" if self._bold else "small", bold=self._bold))
        painter.setPen(QPen(self._theme.color(self._role)))
        columns = place_columns(self._theme, self.width())
        shown = self.cells if columns.confidence < columns.width else (*self.cells[:-1], "")
        paint_cells(painter, columns, self.height(), shown)
        if not self._bold:
            painter.setPen(self._theme.color("border"))
            painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
        painter.end()
