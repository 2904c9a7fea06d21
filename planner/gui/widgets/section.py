"""A collapsible section that shows a summary while it is collapsed."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QToolButton, QWidget

from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.gui.widgets.layout import in_column, in_row


class Section(QWidget):
    """Heading that expands and collapses `body`; `toggled` carries whether the section is open.

    A summary too long for its line is elided, or continues on the next with `wraps`.
    """

    toggled = Signal(bool)

    def __init__(self, theme: Theme, title: str, body: QWidget, summary: str = "", *, wraps: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._body = body
        self._is_marked = False
        self._button = QToolButton()
        set_style_role(self._button, "section")
        self._button.setText(title)
        self._button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._summary = make_label(summary, "muted", wrap=True) if wraps else ElidedLabel(summary, "muted")
        header = _Header(self._button, self._summary)
        in_column(header, body, owner=self, spacing=theme.spacing.tiny)
        body.setContentsMargins(theme.spacing.large, 0, 0, theme.spacing.small)
        self._button.clicked.connect(self._on_heading_clicked)
        theme.changed.connect(self._update_heading)
        self.set_open(False)

    @property
    def is_open(self) -> bool:
        """Return whether the section is expanded."""
        return not self._body.isHidden()

    def set_open(self, opened: bool) -> None:
        """Expand or collapse the section."""
        self._body.setVisible(opened)
        self._summary.setVisible(not opened)
        self._update_heading()

    def remember(self, name: str, settings: SettingsStore, *, opened: bool = False) -> None:
        """Restore from the settings whether the section `name` is expanded (`opened` by default), and store changes."""
        known = settings.current.open_sections
        self.set_open(name in known or (opened and f"-{name}" not in known))

        def store_open_state(is_open: bool) -> None:
            others = (each for each in settings.current.open_sections if each not in (name, f"-{name}"))
            settings.update(open_sections=(*others, name if is_open else f"-{name}"))

        self.toggled.connect(store_open_state)

    def focus_heading(self) -> None:
        """Give the keyboard focus to the heading."""
        self._button.setFocus()

    def set_title(self, title: str) -> None:
        """Change the text of the heading."""
        if title != self._button.text():
            self._button.setText(title)
            self._update_heading()

    def set_title_width(self, width: int) -> None:
        """Make the title at least `width` pixels wide, so that the summaries of several sections line up."""
        self._button.setMinimumWidth(width)

    def set_summary(self, text: str) -> None:
        """Set the summary that is shown while the section is collapsed."""
        if text != self._summary.text():
            self._summary.setText(text)
            self._update_heading()

    def set_marked(self, marked: bool) -> None:
        """Make the title bold, which marks a value other than the default."""
        if marked != self._is_marked:
            self._is_marked = marked
            self._update_heading()

    @Slot()
    def _on_heading_clicked(self) -> None:
        self.set_open(not self.is_open)
        self.toggled.emit(self.is_open)

    @Slot()
    def _update_heading(self) -> None:
        self._button.setFont(self._theme.font(bold=self._is_marked))
        self._button.setIcon(self._theme.icon("chevron-down" if self.is_open else "chevron-right", "muted"))
        self._button.setToolTip(f"{'Hide' if self.is_open else 'Show'} “{self._button.text()}”")
        state = ("expanded",) if self.is_open else ("collapsed", self._summary.text())
        self._button.setAccessibleName(", ".join(filter(None, (self._button.text(), *state))))


class _Header(QWidget):
    """Heading line, on which a click anywhere toggles the section."""

    def __init__(self, button: QToolButton, summary: QWidget) -> None:
        super().__init__()
        self._button = button
        in_row((button, 0, Qt.AlignmentFlag.AlignLeft), (summary, 1), owner=self)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Toggle the section when the heading line is clicked."""
        self._button.click()
        event.accept()
