"""Detail pane beside the table: a record with its verdict, figures and sources."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QHelpEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QSizePolicy,
    QToolTip,
    QWidget,
)

from planner.glossary import GlossaryTerm
from planner.gui.catalog.describe import RecordSummary
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import VerdictBadge, make_label
from planner.gui.widgets.layout import STRETCH, ScrollColumn, in_column, in_row
from planner.gui.widgets.terms import explain, explained_tooltip, term_of, underline_text
from planner.present import format as fmt
from planner.present.columns import MARK_MEANINGS, Detail, DetailGroup
from planner.present.format import NO_FIGURES

_WRAP: Final = int(Qt.TextFlag.TextWordWrap)
_BREAK: Final = "\u200b"  # zero-width space: a line may break here
_LEFT: Final = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop) | _WRAP
_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop) | _WRAP
_TALL: Final = 100_000
_LINE_GAP: Final = 3
_VALUE_SHARE: Final = 0.6
_MAX_CACHED_LAYOUTS: Final = 8
_MAX_CACHED_TEXTS: Final = 2000


class _Measure:
    """Sizes of texts in a font; the width of each is measured once for all widths of the list."""

    def __init__(self, font: QFont) -> None:
        self.font = font
        metrics = QFontMetrics(font)
        self.line = metrics.height()
        # Not of the method itself, whose documentation takes PySide a tenth of a second to find.
        self.width = lru_cache(_MAX_CACHED_TEXTS)(lambda text: metrics.horizontalAdvance(text))
        self._bounds = metrics.boundingRect

    def height(self, room: QRect, flags: int, text: str) -> int:
        """Return the height of `text`, wrapped to the width of `room`."""
        is_line = self.width(text) < room.width() and "\n" not in text
        return self.line if is_line else self._bounds(room, flags, text).height()


@dataclass(frozen=True, slots=True)
class _PaintedText:
    """Painted text with its rectangle and style, and the figure for its tooltip."""

    place: QRect
    text: str
    role: str
    font: QFont
    flags: int
    detail: Detail | None = None

    @property
    def term(self) -> GlossaryTerm | None:
        """Return the glossary term that the text names if it is the title of a figure."""
        is_title = self.detail is not None and self.text == self.detail.title.lstrip()
        return term_of(self.text) if is_title else None


class FigureList(QWidget):
    """Groups of figures, painted as one widget; the tooltip of a figure shows its source."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._groups: tuple[DetailGroup, ...] = ()
        self._with_sources = False
        self._layouts: dict[int, tuple[_PaintedText, ...]] = {}  # by width: Qt's layouts query several widths in turn
        fonts = theme.font(), theme.font(bold=True), theme.font("small")
        self._body, self._bold, self._small = map(_Measure, fonts)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName("Figures")

    def show_groups(self, groups: Sequence[DetailGroup], with_sources: bool) -> None:
        """Show `groups`, with each figure's source below it if `with_sources`."""
        if (tuple(groups), with_sources) == (self._groups, self._with_sources):
            return
        self._groups, self._with_sources = tuple(groups), with_sources
        self._layouts.clear()
        texts = (
            f"{group.title}. {'; '.join(_screen_reader_text(detail) for detail in group.details)}." for group in groups
        )
        self.setAccessibleDescription(" ".join(texts))
        self.updateGeometry()
        self.update()

    def tooltip_at(self, place: QPoint) -> str:
        """Return the source of the figure at `place`."""
        for piece in self._cached_texts(self.width()):
            if piece.detail is not None and piece.place.top() <= place.y() <= piece.place.bottom():
                meaning = MARK_MEANINGS.get(piece.detail.mark, "")
                lines = piece.detail.tooltip.splitlines()
                return "\n".join(lines if meaning in lines else (*lines, meaning)).strip()
        return ""

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines."""
        return max((piece.place.bottom() + 1 for piece in self._cached_texts(width)), default=0)

    def sizeHint(self) -> QSize:
        """Return the height needed at the current width."""
        return QSize(self.width(), self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:
        """Return no minimum: texts wrap to any width."""
        return QSize(0, 0)

    def event(self, event: QEvent) -> bool:
        """Show the source of the hovered figure as a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            titled = self._term_at(event.pos())
            hint = explained_tooltip(self.tooltip_at(event.pos()), titled[0] if titled else None, "Click it")
            QToolTip.showText(event.globalPos(), hint, self)
            return True
        return super().event(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Explain the term that the clicked title names."""
        if titled := self._term_at(event.position().toPoint()):
            explain(titled[0], self, titled[1])
            return
        super().mouseReleaseEvent(event)

    def _term_at(self, place: QPoint) -> tuple[GlossaryTerm, QRect] | None:
        """Return the term that the title at `place` names, and where the title is."""
        for piece in self._cached_texts(self.width()):
            if piece.place.contains(place) and (term := piece.term):
                return term, piece.place
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the texts in the exposed area."""
        painter = QPainter(self)
        for piece in self._cached_texts(self.width()):
            if piece.place.intersects(event.rect()):
                painter.setFont(piece.font)
                painter.setPen(self._theme.color(piece.role))
                painter.drawText(piece.place, piece.flags, piece.text)
                if piece.term is not None:
                    underline_text(painter, piece.text, piece.place)

    def _cached_texts(self, width: int) -> tuple[_PaintedText, ...]:
        pieces = self._layouts.get(width)
        if pieces is None:
            if len(self._layouts) == _MAX_CACHED_LAYOUTS:
                self._layouts.clear()
            pieces = self._layouts[width] = tuple(self._placed_texts(width))
        return pieces

    def _placed_texts(self, width: int) -> Iterator[_PaintedText]:
        top = 0
        common_origin = _most_common_origin(self._groups) if self._with_sources else ""
        if common_origin:
            words = f"Source, unless stated otherwise: {_slash_breakable_line(common_origin)}"
            preface = self._placed_text(QRect(0, 0, width, _TALL), words, "muted", small=True)
            yield preface
            top = preface.place.bottom() + self._theme.spacing.medium
        for number, group in enumerate(self._groups):
            common_mark = _most_common_mark(group)
            top += self._theme.spacing.medium if number else 0
            headings = self._heading_texts(group.title, common_mark, top, width)
            yield from headings
            top = max(heading.place.bottom() for heading in headings) + self._theme.spacing.tiny
            marks_width = self._marks_width(group, common_mark)
            for detail in group.details:
                mark = "" if detail.mark == common_mark else detail.mark
                for piece in self._figure_texts(detail, mark, common_origin, top, (width, marks_width)):
                    top = max(top, piece.place.bottom() + _LINE_GAP)
                    yield piece

    def _marks_width(self, group: DetailGroup, common_mark: str) -> int:
        """Return the width of a group's column of certainty words, 0 without any."""
        words = {detail.mark for detail in group.details if detail.mark != common_mark}
        widest = max(map(self._small.width, words), default=0)
        return widest + self._theme.spacing.small if widest else 0

    def _heading_texts(self, title: str, mark: str, top: int, width: int) -> tuple[_PaintedText, ...]:
        """Return a group's title, and at its right the certainty that most of its figures share."""
        mark_width = self._small.width(mark) + 2 if mark else 0
        heading = self._placed_text(QRect(0, top, width - mark_width, _TALL), title, "text", bold=True)
        if not mark:
            return (heading,)
        shared = Detail(title, mark, mark=mark)
        room = QRect(width - mark_width, top + 1, mark_width, _TALL)
        return heading, self._placed_text(room, mark, "muted", shared, _RIGHT, small=True)

    def _figure_texts(
        self, detail: Detail, mark: str, common_origin: str, top: int, widths: tuple[int, int]
    ) -> Iterator[_PaintedText]:
        """Yield the texts of a figure; `widths` are those of the list and of its column of certainty words."""
        width, marks_width = widths
        title, value = self._title_beside_value(detail, top, width - marks_width)
        if value.place.height() > self._body.line:
            title, value = self._title_above_value(detail, top, width - marks_width)
        yield title
        yield value
        if mark:
            room = QRect(width - marks_width, value.place.top() + 1, marks_width, _TALL)
            yield self._placed_text(room, mark, "muted", detail, _RIGHT, small=True)
        if self._with_sources and detail.tooltip and (detail.exact or detail.origin != common_origin):
            below = max(title.place.bottom(), value.place.bottom()) + 1
            words = detail.tooltip if detail.origin != common_origin else detail.exact
            yield self._placed_text(
                QRect(0, below, width, _TALL), _slash_breakable_line(words), "muted", detail, small=True
            )

    def _title_beside_value(self, detail: Detail, top: int, width: int) -> tuple[_PaintedText, _PaintedText]:
        room = width - self._theme.spacing.small
        value_width = min(
            self._body.width(detail.text) + 2,
            max(round(room * _VALUE_SHARE), room - self._body.width(detail.title) - 2),
        )
        value_room = QRect(width - value_width, top, value_width, _TALL)
        return (
            self._title_text(detail, top, room - value_width),
            self._placed_text(value_room, detail.text, _value_color_role(detail), detail, _RIGHT),
        )

    def _title_above_value(self, detail: Detail, top: int, width: int) -> tuple[_PaintedText, _PaintedText]:
        """Return a title and, left-aligned below the title, a value that wraps."""
        title = self._title_text(detail, top, width)
        indent = self._theme.spacing.medium
        room = QRect(indent, title.place.bottom() + 1, width - indent, _TALL)
        return title, self._placed_text(room, detail.text, _value_color_role(detail), detail)

    def _title_text(self, detail: Detail, top: int, width: int) -> _PaintedText:
        """Return a title whose lines are all indented by the title's leading spaces."""
        text = detail.title.lstrip()
        left = self._body.width(" ") * (len(detail.title) - len(text))
        return self._placed_text(QRect(left, top, width - left, _TALL), text, "muted", detail)

    def _placed_text(
        self,
        room: QRect,
        text: str,
        role: str,
        detail: Detail | None = None,
        flags: int = _LEFT,
        *,
        bold: bool = False,
        small: bool = False,
    ) -> _PaintedText:
        """Return `text` placed at the top of `room`, as high as the wrapped text."""
        measure = self._small if small else self._bold if bold else self._body
        place = QRect(room.left(), room.top(), room.width(), measure.height(room, flags, text))
        return _PaintedText(place, text, role, measure.font, flags, detail)


def _value_color_role(detail: Detail) -> str:
    return "muted" if detail.text in NO_FIGURES else "text"


def _screen_reader_text(detail: Detail) -> str:
    meaning = MARK_MEANINGS.get(detail.mark)
    text = f"{detail.title.lstrip()}: {detail.text}"
    return f"{text}, {meaning}" if meaning else text


def _most_common_origin(groups: Sequence[DetailGroup]) -> str:
    """Return the most frequent origin of figures, which is stated once instead of below each figure."""
    origins = Counter(detail.origin for group in groups for detail in group.details if detail.origin)
    return max(origins, key=origins.__getitem__, default="")


def _most_common_mark(group: DetailGroup) -> str:
    """Return the certainty that most figures of a group have, empty for a group without."""
    marks = Counter(detail.mark for detail in group.details if detail.mark)
    return max(marks, key=marks.__getitem__, default="")


def _slash_breakable_line(text: str) -> str:
    return text.replace("/", f"/{_BREAK}").replace("\n", " · ")


class DetailPane(QWidget):
    """Pane that shows one record; the buttons emit `used` and `comparison_requested`."""

    used = Signal()
    comparison_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._described: RecordSummary | None = None
        self._name = make_label(font=theme.font("title", bold=True), wrap=True)
        self._kind = make_label(role="muted", wrap=True)
        self._badge = VerdictBadge(theme)
        self._sentence = make_label(wrap=True)
        self._use = push_button("", "Use it in the plan", "primary")
        self._compare = push_button("Compare", "Add it to the comparison")
        self._sources = QCheckBox("Sho&w sources")
        self._figures = FigureList(theme)
        self._notes = make_label(wrap=True)
        self._nothing = make_label(role="muted", wrap=True)
        self._body = QWidget()
        self._lay_out()
        self._use.clicked.connect(self.used)
        self._compare.clicked.connect(self.comparison_requested)
        self._sources.toggled.connect(self._on_sources_toggled)
        self._body.hide()

    @property
    def is_describing(self) -> bool:
        """Return whether a record is shown."""
        return self._described is not None

    def clear(self, hidden: str = "") -> None:
        """Show the hint to select a row instead of a record; `hidden` is the selected one that the filters hide."""
        self._described = None
        select = "Select a row to see its figures and their sources."
        self._nothing.setText(f"{hidden} is selected, but your filters hide it.\n\n{select}" if hidden else select)
        self._body.hide()
        self._nothing.show()

    def describe(self, summary: RecordSummary) -> None:
        """Show the summary of a record."""
        self._described = summary
        self._name.setText(summary.name)
        self._kind.setText(summary.kind)
        self._badge.set_verdict(summary.verdict, summary.phrase)
        self._sentence.setText(fmt.unbroken(summary.sentence))
        self._use.setText("In the plan" if summary.in_plan else summary.use)
        self._use.setVisible(bool(summary.use))
        self._use.setEnabled(not summary.in_plan)
        self._notes.setText("\n\n".join(summary.notes))
        self._notes.setVisible(bool(summary.notes))
        self._figures.show_groups(summary.groups, self._sources.isChecked())
        self._nothing.hide()
        self._body.show()

    def as_text(self) -> str:
        """Return the shown record as text, one line per figure; empty without a record."""
        return self._described.as_text() if self._described else ""

    @Slot()
    def _on_sources_toggled(self) -> None:
        if self._described is not None:
            self._figures.show_groups(self._described.groups, self._sources.isChecked())

    def _lay_out(self) -> None:
        space = self._theme.spacing
        self._sources.setToolTip("Shows the source below each figure")
        scrolled = QWidget()
        in_column(
            self._sources,
            self._figures,
            self._notes,
            STRETCH,
            owner=scrolled,
            margins=(space.medium, space.small, space.medium, space.medium),
            spacing=space.large,
        )
        area = ScrollColumn()
        area.setWidget(scrolled)
        area.setAccessibleName("Figures")
        set_style_role(area, "ringed")
        head = in_column(
            self._name,
            self._kind,
            self._badge,
            self._sentence,
            margins=(space.medium, space.small, space.medium, space.small),
            spacing=space.small,
        )
        buttons = in_row((self._use, 1), self._compare)
        head.addLayout(buttons)
        in_column(head, (area, 1), owner=self._body, spacing=0)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        in_column(self._nothing, self._body, owner=self)
        self._nothing.setContentsMargins(space.medium, space.huge, space.medium, space.huge)
