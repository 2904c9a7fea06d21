"""Figures in groups, each with a sign for how sure it is, and on demand with its source in words."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.present.columns import Detail, DetailGroup
from planner.present.format import NOT_PUBLISHED, UNKNOWN
from planner.present.provenance import MARK_MEANINGS

_MEANINGS = dict(MARK_MEANINGS)


class _Line:
    """The widgets of one figure, reused from record to record."""

    def __init__(self, theme: Theme, grid: QGridLayout, row: int) -> None:
        self.title = make_label(role="muted", wrap=True)
        self.value = make_label(wrap=True)
        self.sign = make_label(role="muted", font=theme.font("small"))
        self.source = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        self.value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.sign.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self.sign.setFixedWidth(self.sign.fontMetrics().horizontalAdvance("≠") + theme.spacing.tiny)
        for column, label in enumerate((self.title, self.value, self.sign)):
            grid.addWidget(label, 2 * row, column)
        grid.addWidget(self.source, 2 * row + 1, 0, 1, 3)

    def show(self, detail: Detail, with_source: bool) -> None:
        meaning = _MEANINGS.get(detail.mark, "")
        self.title.setText(detail.title)
        self.value.setText(detail.text)
        self.sign.setText(detail.mark)
        self.source.setText(detail.tooltip.replace("\n", " · "))
        mark(self.value, "muted" if detail.text in (UNKNOWN, NOT_PUBLISHED) else "")
        for label in self._labels:
            label.setToolTip(detail.tooltip)
        self.sign.setAccessibleName(meaning)
        self.value.setAccessibleName(f"{detail.title}: {detail.text}{', ' if meaning else ''}{meaning}")
        for label in self._labels:
            label.show()
        self.source.setVisible(with_source and bool(detail.tooltip))

    def hide(self) -> None:
        for label in (*self._labels, self.source):
            label.hide()

    @property
    def _labels(self) -> tuple[QLabel, ...]:
        return self.title, self.value, self.sign


class _Group(QWidget):
    """A heading over its figures."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._heading = make_label(font=theme.font(bold=True))
        self._lines: list[_Line] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(theme.spacing.small)
        self._grid.setVerticalSpacing(theme.spacing.tiny)
        self._grid.setColumnStretch(0, 5)
        self._grid.setColumnStretch(1, 4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addWidget(self._heading)
        layout.addLayout(self._grid)

    def show_group(self, group: DetailGroup, with_sources: bool) -> None:
        self._heading.setText(group.title)
        while len(self._lines) < len(group.details):
            self._lines.append(_Line(self._theme, self._grid, len(self._lines)))
        for line, detail in zip(self._lines, group.details, strict=False):
            line.show(detail, with_sources)
        for line in self._lines[len(group.details) :]:
            line.hide()


class FigureList(QWidget):
    """Groups of figures below one another."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._groups: list[_Group] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.large)

    def show_groups(self, groups: Sequence[DetailGroup], with_sources: bool) -> None:
        """Show `groups`, with each figure's source under it if `with_sources`."""
        while len(self._groups) < len(groups):
            self._groups.append(_Group(self._theme))
            self._column.addWidget(self._groups[-1])
        for widget, group in zip(self._groups, groups, strict=False):
            widget.show_group(group, with_sources)
            widget.setVisible(True)
        for widget in self._groups[len(groups) :]:
            widget.hide()
