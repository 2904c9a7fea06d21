"""A form of labelled inputs that marks values other than the default and can reset each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.inputs.field import Field


@dataclass(frozen=True)
class _Row:
    field: Field
    label: QLabel
    reset: IconButton
    default: Callable[[], object]


class LabelledForm(QWidget):
    """A column of labelled fields; `default` of a row is called each time, since it can depend on the model."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[_Row] = []
        self._next_line = 0
        self._label_width: int | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.spacing.small)
        self._grid.setVerticalSpacing(theme.spacing.small)
        self._grid.setColumnStretch(1, 1)
        theme.changed.connect(self._mark_all)

    def reserve(self) -> int:
        """Reserve the next line of the grid for a row that is added later, and return its number."""
        self._next_line += 1
        return self._next_line - 1

    def add(
        self,
        label: str,
        field: Field,
        default: Callable[[], object] | None = None,
        hint: str = "",
        wide: bool = False,
        line: int | None = None,
    ) -> None:
        """Add a row at the end, or in a reserved `line`.

        Args:
            label: Its text with a mnemonic (`&Batch`).
            field: The input.
            default: Returns the value that the reset button sets; without it there is nothing to reset.
            hint: The tooltip.
            wide: Let the input take the place of the reset button too.
            line: A line returned by `reserve`.
        """
        name = label.replace("&", "")
        title = QLabel(label)
        title.setToolTip(hint)
        title.setBuddy(field)
        if self._label_width is not None:
            title.setWordWrap(True)
            title.setMaximumWidth(self._label_width)
        field.set_name(name)
        field.setToolTip(hint)
        index = self.reserve() if line is None else line
        reset = IconButton(self._theme, "reset", f"Reset {name.lower()}", "accent")
        _keep_space(reset, not wide)
        self._grid.addWidget(title, index, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(field, index, 1, 1, 2 if wide else 1)
        self._grid.addWidget(reset, index, 2, Qt.AlignmentFlag.AlignTop)
        row = _Row(field, title, reset, default or (lambda: field.value))
        self._rows.append(row)
        self._align(row)
        reset.clicked.connect(partial(self._reset, row))
        field.shown.connect(partial(self._mark, row))
        self._mark(row)

    def add_below(self, widget: QWidget) -> None:
        """Add a widget without a label below the last field."""
        self._grid.addWidget(widget, self.reserve(), 1, 1, 2)

    def add_across(self, widget: QWidget) -> None:
        """Add a widget over the full width, such as a list."""
        self._grid.addWidget(widget, self.reserve(), 0, 1, 3)

    def set_label_width(self, width: int) -> None:
        """Make labels `width` pixels wide, so that several forms line up; longer labels wrap."""
        self._label_width = width
        self._grid.setColumnMinimumWidth(0, width)

    def set_row_visible(self, field: Field, visible: bool) -> None:
        """Show or hide the row of a field."""
        row = next(row for row in self._rows if row.field is field)
        row.label.setVisible(visible)
        row.field.setVisible(visible)
        row.reset.setVisible(visible and self._differs(row))
        _keep_space(row.reset, visible)

    @property
    def differs(self) -> bool:
        """Return whether the value of a visible row differs from its default."""
        return any(self._differs(row) for row in self._rows if not row.field.isHidden())

    @staticmethod
    def _differs(row: _Row) -> bool:
        return row.field.value != row.default()

    @Slot()
    def _mark_all(self) -> None:
        # A new style sheet resets every label to its first font and makes inputs taller.
        for row in self._rows:
            self._align(row)
            self._mark(row)

    @staticmethod
    def _align(row: _Row) -> None:
        row.label.setMinimumHeight(row.reset.sizeHint().height())

    def _mark(self, row: _Row) -> None:
        differs = self._differs(row)
        row.reset.setVisible(differs and not row.field.isHidden())
        row.label.setFont(self._theme.font(bold=differs))

    def _reset(self, row: _Row) -> None:
        row.field.setFocus()
        row.field.choose(row.default())


def _keep_space(widget: QWidget, keep: bool) -> None:
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(keep)
    widget.setSizePolicy(policy)
