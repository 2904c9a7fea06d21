"""The legend of the timeline; a click hides a category, so that the others show their own course."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QIcon, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from planner.gui.memory.trace.timeline_data import colour_of
from planner.gui.theme import Theme, mark
from planner.gui.widgets.layout import FlowLayout
from planner.present.trace.view import TimelineSeries


class TimelineLegend(QWidget):
    """A button a category; `changed` says that other ones are hidden."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._series: tuple[TimelineSeries, ...] = ()
        self._buttons: list[QToolButton] = []
        self._hidden: set[str] = set()
        self._flow = FlowLayout(theme.spacing.tiny)
        self.setLayout(self._flow)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._tint)

    @property
    def hidden(self) -> frozenset[str]:
        """Return the categories that are hidden."""
        return frozenset(self._hidden)

    def set_series(self, series: Sequence[TimelineSeries]) -> None:
        """Name other categories, in the order in which they lie, the highest first; what is hidden stays so."""
        self._series = tuple(reversed(series))
        while len(self._buttons) < len(self._series):
            self._add_button()
        for number, button in enumerate(self._buttons):
            button.setVisible(number < len(self._series))
            if number < len(self._series):
                shown = self._series[number]
                button.setText(shown.title)
                button.setChecked(shown.category not in self._hidden)
                button.setAccessibleName(f"Show {shown.title.lower()} in the timeline")
        self._tint()

    def _add_button(self) -> None:
        button = QToolButton()
        mark(button, "legend")
        button.setCheckable(True)
        button.setToolTip("Show or hide this category")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.clicked.connect(partial(self._on_clicked, len(self._buttons)))
        self._buttons.append(button)
        self._flow.addWidget(button)

    def _on_clicked(self, number: int) -> None:
        shown = self._buttons[number].isChecked()
        (self._hidden.discard if shown else self._hidden.add)(self._series[number].category)
        self._tint()
        self.changed.emit()

    @Slot()
    def _tint(self) -> None:
        side = self._theme.icon_side - self._theme.spacing.tiny
        for button, series in zip(self._buttons, self._series, strict=False):
            pixmap = QPixmap(side, side)
            pixmap.fill(self._theme.color("free" if series.category in self._hidden else colour_of(series)))
            button.setIcon(QIcon(pixmap))
