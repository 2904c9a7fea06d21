"""A popup window below the button that opened it."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, Qt, Signal, Slot
from PySide6.QtGui import QHideEvent, QKeyEvent, QMouseEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.search_list import Choice, SearchList, TypedChoice


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
        return layout.totalHeightForWidth(width) if layout is not None else 0

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
