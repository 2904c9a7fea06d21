"""Labels in the theme's text roles, icons in its colors, also of verdicts and ages, elided labels, and rich text."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final, NamedTuple, Protocol

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.layout import in_row
from planner.memory.result import Verdict
from planner.present.cost.prices import Age, age_of
from planner.present.memory.verdict import VERDICT_TITLES

_CELL = '<td style="padding-right: 12px">{}</td>'


def table_row(*cells: str) -> str:
    """Return an HTML table row of cells, each of which is rich text."""
    return f"<tr>{''.join(map(_CELL.format, cells))}</tr>"


def fact_rows(facts: Iterable[tuple[str, str]], color: str) -> str:
    """Return HTML table rows for the facts that have a text: the name in `color`, then the plain text."""
    return "".join(table_row(colored(name, color), escape(text)) for name, text in facts if text)


def colored(text: str, color: str) -> str:
    """Return HTML that shows plain text in `color`."""
    return f'<span style="color: {color}">{escape(text)}</span>'


_SHORTEST = 4


def make_label(
    text: str = "", role: str = "", font: QFont | None = None, wrap: bool = False, *, selectable: bool = False
) -> QLabel:
    """Return a plain-text label in the color of `role`, such as `muted` or `warn`; `selectable` text can be copied."""
    label = QLabel(text, textFormat=Qt.TextFormat.PlainText, wordWrap=wrap)
    if role:
        set_style_role(label, role)
    if font is not None:
        label.setFont(font)
    if selectable:
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


class IconLabel(QLabel):
    """Label with an icon in a theme color, `scale` times as large as a small icon."""

    def __init__(self, theme: Theme, scale: float = 1.0) -> None:
        super().__init__()
        self._theme, self._scale = theme, scale
        self._icon: tuple[str, str] | None = None
        theme.changed.connect(self._update_icon)

    def show_icon(self, icon: tuple[str, str]) -> None:
        """Show the icon with this name and color role."""
        self._icon = icon
        self._update_icon()

    @Slot()
    def _update_icon(self) -> None:
        if self._icon is not None:
            self.setPixmap(self._theme.pixmap(*self._icon, self.devicePixelRatio(), self._scale))


class ElidedLabel(QLabel):
    """Label that elides a text too long for its width and shows the whole text in the tooltip.

    With `is_live` the width does not depend on the text: one that changes every second would otherwise lay out the
    whole window again.
    """

    def __init__(self, text: str = "", role: str = "", *, is_live: bool = False) -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText)
        self._text = self._shown = text
        self._is_live = is_live
        if is_live:
            self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if role:
            set_style_role(self, role)

    def text(self) -> str:
        """Return the text before it is elided."""
        return self._text

    def setText(self, text: str) -> None:
        """Replace the text, elided to the current width."""
        if text == self._text:
            return
        self._text = text
        if self._is_live:
            self.setAccessibleName(text)
            self.update()
        else:
            super().setText(text)
        self._elide_text()

    def minimumSizeHint(self) -> QSize:
        """Return the width of a few letters."""
        return QSize(self.fontMetrics().averageCharWidth() * _SHORTEST, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Elide the text for the new width."""
        super().resizeEvent(event)
        self._elide_text()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the elided text."""
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(self.contentsRect(), self.alignment(), self._shown)
        painter.end()

    def _elide_text(self) -> None:
        width = self.contentsRect().width()
        self._shown = self.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, width)
        self.setToolTip("" if self._shown == self._text else self._text)


class StatusIcon(NamedTuple):
    """Icon with a color role, which also colors the text after the icon."""

    icon: str
    role: str


_ROLES: Final[dict[Verdict, str]] = {"fits": "ok", "tight": "warn", "does-not-fit": "bad"}
AGE_ROLES: Final[Mapping[Age, str]] = {
    "fresh": "ok",
    "recent": "ok",
    "aging": "warn",
    "old": "bad",
    "outdated": "bad",
    "undated": "warn",
}


def verdict_icon(verdict: Verdict | None) -> StatusIcon:
    """Return the icon and color role of a verdict."""
    return StatusIcon("unknown", "muted") if verdict is None else StatusIcon(verdict, _ROLES[verdict])


class VerdictBadge(QWidget):
    """Badge of a memory verdict: its icon and its text, side by side."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._mark = IconLabel(theme)
        self._text = make_label(font=theme.font(bold=True))
        in_row(self._mark, (self._text, 1), owner=self, spacing=theme.spacing.tiny)

    def set_verdict(self, verdict: Verdict | None, text: str = "") -> None:
        """Show a verdict with `text`, or with the verdict's name if `text` is empty."""
        self._text.setText(text or ("Unknown" if verdict is None else VERDICT_TITLES[verdict]))
        self.setAccessibleName(self._text.text())
        icon = verdict_icon(verdict)
        self._mark.show_icon(icon)
        set_style_role(self._text, icon.role)


class _HasAge(Protocol):
    """Row with the age of its price."""

    @property
    def age_days(self) -> int | None: ...


def age_icon(row: _HasAge) -> StatusIcon:
    """Return the icon and color role of a row's price age."""
    return StatusIcon("time", AGE_ROLES[age_of(row.age_days)])
