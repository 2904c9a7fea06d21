"""What is said of the point under the pointer."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QWidget

from planner.gui.theme import Theme, mark

_GAP = 14


class HoverCard(QLabel):
    """A name and its figures beside the pointer, kept within the parent."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._around = parent
        mark(self, "hover-card")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setContentsMargins(*(theme.spacing.small,) * 4)
        self.hide()

    def tell(self, lines: tuple[str, ...], place: QPoint) -> None:
        """Say `lines` at `place`; without any, say nothing."""
        self.setText("\n".join(lines))
        self.setVisible(bool(lines))
        if not lines:
            return
        self.adjustSize()
        room = self._around.size() - self.size()
        left = place.x() + _GAP if place.x() + _GAP <= room.width() else place.x() - _GAP - self.width()
        top = min(place.y() + _GAP, room.height())
        self.move(max(0, left), max(0, top))
        self.raise_()
