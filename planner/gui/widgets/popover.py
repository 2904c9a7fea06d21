"""A popup window below the button that opened it, and the searchable list that most of them hold."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QHideEvent, QKeyEvent, QMouseEvent, QPainter, QPalette, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column

Index = QModelIndex | QPersistentModelIndex

_CHOICE_ROLE: Final = Qt.ItemDataRole.UserRole
_SEPARATOR: Final = re.compile(r"[-_/]")
_LIST_KEYS: Final = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


@dataclass(frozen=True, slots=True)
class Choice:
    """Choice in a searchable list; `words` are further search terms, `mark` is an icon and its color role."""

    key: object
    title: str
    detail: str = ""
    mark: tuple[str, str] | None = None
    words: str = ""


TypedChoice = Callable[[str], Choice | None]


def match_rank(query: str, text: str) -> tuple[int, int] | None:
    """Return the rank of `text` as a match for `query` (smaller is better), or None if it does not match.

    The query counts without its separators and points: `qwen25 32b` is Qwen2.5-32B. A match at the start of the text
    ranks above one at the start of a word, then come one within a word, and a text that holds each word of the query
    somewhere.
    """
    words, text_words = _words_of(query), _words_of(text)
    sought, joined = "".join(words), "".join(text_words)
    if not all(word in joined for word in words):
        return None
    if joined.startswith(sought):
        return 0, len(text)
    starts = accumulate(map(len, text_words), initial=0)
    if any(joined.startswith(sought, start) for start in starts):
        return 1, len(text)
    return (2, len(text)) if sought in joined else (3, len(text))


def _words_of(text: str) -> list[str]:
    return _SEPARATOR.sub(" ", text.lower().replace(".", "")).split()


def search_choices(choices: Sequence[Choice], query: str) -> tuple[Choice, ...]:
    """Return the choices that match `query`, best match first; an empty query returns all choices in their order."""
    if not query.strip():
        return tuple(choices)
    ranked = [(_best_rank(query, choice), choice) for choice in choices]
    found = [(rank, choice) for rank, choice in ranked if rank is not None]
    return tuple(choice for _, choice in sorted(found, key=lambda pair: pair[0]))


def _best_rank(query: str, choice: Choice) -> tuple[int, int] | None:
    if not choice.words:
        return match_rank(query, choice.title)
    together = match_rank(query, f"{choice.title} {choice.words}")
    if together is None:  # as then each of the two
        return None
    ranks = (match_rank(query, choice.title), match_rank(query, choice.words), together)
    return min(rank for rank in ranks if rank is not None)


class SearchList(QWidget):
    """List that is filtered by typing; `typed` may turn the typed text into an additional first choice."""

    chosen = Signal(object)
    matched = Signal()

    def __init__(self, theme: Theme, placeholder: str, typed: TypedChoice = lambda _: None) -> None:
        super().__init__()
        self._choices: tuple[Choice, ...] = ()
        self._typed = typed
        self._edit = QLineEdit(placeholderText=placeholder)
        self._edit.setAccessibleName(placeholder)
        self._edit.installEventFilter(self)
        self._model = _ChoiceModel()
        self._view = QListView()
        self._view.setModel(self._model)
        self._view.setItemDelegate(_ChoiceDelegate(theme, self._view))
        self._view.setUniformItemSizes(True)
        self._view.setMinimumHeight(1)  # or a popup would show three lines for one match
        self._view.setMouseTracking(True)
        self._view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._view.setAccessibleName("Matches")
        self._no_match = make_label("Nothing matches.", "muted")
        self._no_match.hide()
        self.setFocusProxy(self._edit)
        in_column(self._edit, self._no_match, (self._view, 1), owner=self, spacing=theme.spacing.tiny)
        self._edit.textChanged.connect(self._show_matches)
        self._edit.returnPressed.connect(self._emit_current_choice)
        self._view.clicked.connect(self._emit_current_choice)

    def set_choices(self, choices: Sequence[Choice], current: object = None) -> None:
        """Replace the choices and clear the search; `current` is the key of the choice to select."""
        self._choices = tuple(choices)
        self._edit.clear()
        self._show_matches()
        rows = [row for row, choice in enumerate(self._choices) if choice.key == current]
        if rows:
            self._select_row(rows[0])

    def search(self, words: str) -> None:
        """Type `words` into the search field."""
        self._edit.insert(words)

    def missing_height(self) -> int:
        """Return by how many pixels the list is too low to show all matches; negative if it has room to spare."""
        rows = len(self.matches) * max(self._view.sizeHintForRow(0), 0)
        return rows + 2 * self._view.frameWidth() - self._view.height()

    @property
    def matches(self) -> tuple[Choice, ...]:
        """Return the choices that match the search, in order."""
        return self._model.choices

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Forward the arrow and page keys from the search field to the list."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in _LIST_KEYS:
            self._view.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

    @Slot()
    def _show_matches(self) -> None:
        further = self._typed(self._edit.text())
        matches = search_choices(self._choices, self._edit.text())
        self._model.set_choices(matches if further is None else (further, *matches))
        self._no_match.setVisible(not self._model.choices)
        self._select_row(0)
        self.matched.emit()

    def _select_row(self, row: int) -> None:
        index = self._model.index(row)
        self._view.setCurrentIndex(index)
        self._view.scrollTo(index, QListView.ScrollHint.PositionAtCenter)

    @Slot()
    def _emit_current_choice(self) -> None:
        row = self._view.currentIndex().row()
        if row >= 0:
            self.chosen.emit(self._model.choices[row].key)


class _ChoiceModel(QAbstractListModel):
    """List model of the choices that match the search."""

    def __init__(self) -> None:
        super().__init__()
        self.choices: tuple[Choice, ...] = ()

    def set_choices(self, choices: tuple[Choice, ...]) -> None:
        self.beginResetModel()
        self.choices = choices
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.choices)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        choice = self.choices[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return choice.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{choice.title}, {choice.detail}" if choice.detail else choice.title
        return choice if role == _CHOICE_ROLE else None


class _ChoiceDelegate(QStyledItemDelegate):
    """Paints a choice: its icon, its title, and its detail in a muted color at the right end."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(0, option.fontMetrics.height() + self._theme.spacing.small)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        choice: Choice = index.data(_CHOICE_ROLE)
        space = self._theme.spacing
        self._paint_background(painter, option)
        line = option.rect.adjusted(space.small, 0, -space.small, 0)
        if choice.mark is not None:
            side = self._theme.icon_side
            place = QRect(line.left(), line.center().y() - side // 2, side, side)
            self._theme.icon(*choice.mark).paint(painter, place)
            line.setLeft(place.right() + space.small)
        detail = option.fontMetrics.elidedText(choice.detail, Qt.TextElideMode.ElideRight, line.width() * 3 // 5)
        painter.setPen(self._theme.color("muted"))
        painter.drawText(line, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, detail)
        taken = option.fontMetrics.horizontalAdvance(detail) + space.medium if detail else 0
        line.setRight(line.right() - taken)
        title = option.fontMetrics.elidedText(choice.title, Qt.TextElideMode.ElideMiddle, line.width())
        painter.setPen(option.palette.color(QPalette.ColorRole.Text))
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)

    def _paint_background(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        selected = option.state & QStyle.StateFlag.State_Selected
        hovered = option.state & QStyle.StateFlag.State_MouseOver
        if selected or hovered:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("selection" if selected else "hover"))
            painter.drawRoundedRect(option.rect, self._theme.tokens.radius, self._theme.tokens.radius)


class Popover(QFrame):
    """Popup window with `content`; Escape, a click elsewhere or a choice closes the popup.

    `anchor_clicked` is emitted when the button is clicked again while the popup is open.
    """

    anchor_clicked = Signal()

    def __init__(self, parent: QWidget, theme: Theme, content: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        set_style_role(self, "popover")
        self.content = content
        self._anchor: QWidget | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_NoMouseReplay)
        in_column(content, owner=self, margins=theme.spacing.small)

    def open_below(self, anchor: QWidget, width: int, height: int, part: QRect | None = None) -> None:
        """Show the popup below `anchor`, or a `part` of it, or above if there is more space, within the window."""
        self._anchor = anchor
        area, part = anchor.window().geometry(), part or anchor.rect()
        top_left = anchor.mapToGlobal(part.topLeft())
        below, above = area.bottom() - top_left.y() - part.height(), top_left.y() - area.top()
        upwards = below < min(height, above)
        self.resize(min(width, area.width()), max(1, min(height, above if upwards else below)))
        left = min(top_left.x(), area.right() - self.width())
        top = top_left.y() - self.height() if upwards else top_left.y() + part.height()
        self.move(max(area.left(), left), top)
        self.show()
        self.content.setFocus(Qt.FocusReason.PopupFocusReason)

    def height_for(self, width: int) -> int:
        """Return the height that the content needs in a popup of this width."""
        self.ensurePolished()
        self.content.updateGeometry()  # parts of it may have been shown or hidden since it was laid out
        layout = self.layout()
        if layout is None:
            return 0
        layout.activate()  # gives up the least height of what is hidden now, below which no popup can be resized
        return layout.totalHeightForWidth(width)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Close the popup on a click on its anchor, and emit `anchor_clicked`."""
        anchor = self._anchor
        at = event.globalPosition().toPoint()
        if anchor is not None and QRect(anchor.mapToGlobal(QPoint()), anchor.size()).contains(at):
            self.close()
            self.anchor_clicked.emit()
            return
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close the popup on Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
            return
        super().keyPressEvent(event)


class SearchPopover(Popover):
    """Popover with a searchable list; `chosen` carries the key of the choice."""

    chosen = Signal(object)

    def __init__(
        self,
        parent: QWidget,
        theme: Theme,
        placeholder: str,
        header: QWidget | None = None,
        typed: TypedChoice = lambda _: None,
    ) -> None:
        self.list = SearchList(theme, placeholder, typed)
        content = QWidget()
        content.setFocusProxy(self.list)
        super().__init__(parent, theme, content)
        layout = in_column(owner=content)
        if header is not None:
            layout.addWidget(header)
        layout.addWidget(self.list, 1)
        self._place = QRect()
        self.list.chosen.connect(self._close_and_emit)
        self.list.matched.connect(self._fit_matches)

    def showEvent(self, event: QShowEvent) -> None:
        """Keep the place for the longest list."""
        super().showEvent(event)
        self._place = self.geometry()

    def hideEvent(self, event: QHideEvent) -> None:
        """Keep the height until the next list is placed."""
        super().hideEvent(event)
        self._place = QRect()

    @Slot()
    def _fit_matches(self) -> None:
        """Be as high as the matches need, at the edge that touches the anchor."""
        place = self._place
        if place.isNull():
            return
        least = min(place.height(), self.minimumSizeHint().height())
        height = max(least, min(place.height(), self.height() + self.list.missing_height()))
        is_above = self._anchor is not None and place.bottom() <= self._anchor.mapToGlobal(QPoint()).y()
        top = place.bottom() + 1 - height if is_above else place.top()
        self.setGeometry(place.left(), top, place.width(), height)

    def offer(self, anchor: QWidget, choices: Sequence[Choice], current: object = None, width: int = 460) -> None:
        """Open the popover below `anchor` with these choices."""
        self.list.set_choices(choices, current)
        self.open_below(anchor, width, 420)

    @Slot(object)
    def _close_and_emit(self, key: object) -> None:
        self.close()
        self.chosen.emit(key)
