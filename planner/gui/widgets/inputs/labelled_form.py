"""Form of labelled input fields; a value other than its default is marked and has a reset button."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QFontMetrics, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.layout import in_grid
from planner.gui.widgets.terms import EXPLAIN_KEY, TermLabel, explain

_RESET_KEY: Final = "Alt+Del"


@dataclass(frozen=True)
class _FormRow:
    """Row of the form: field, label, reset button, and a function that returns the default."""

    field: Field
    label: TermLabel
    reset: IconButton
    default: Callable[[], object]


class LabelledForm(QWidget):
    """Column of labelled input fields; a value other than its default is marked and has a reset button."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[_FormRow] = []
        self._next_line = 0
        self._label_width: int | None = None
        self._grid = in_grid(self, across=theme.spacing.small, down=theme.spacing.small, stretched=1)
        theme.changed.connect(self._update_rows)

    def reserve(self) -> int:
        """Reserve the next line of the form for a field that is added later, and return the line number."""
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
        """Add a labelled field at the end, or in a reserved `line`.

        Args:
            label: Its text with a mnemonic (`&Batch`).
            field: The input.
            default: Returns the value that the reset button sets; without it there is nothing to reset.
            hint: The tooltip.
            wide: Let the input take the place of the reset button too.
            line: A line returned by `reserve`.
        """
        title = TermLabel()
        title.setToolTip(hint)
        title.setBuddy(field)
        if self._label_width is not None:
            title.setWordWrap(True)
            title.setMaximumWidth(self._label_width)
        field.setToolTip(hint)
        index = self.reserve() if line is None else line
        reset = IconButton(self._theme, "reset", "", "accent")
        reset.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # Tab goes from field to field
        _set_space_kept(reset, not wide)
        self._grid.addWidget(title, index, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(field, index, 1, 1, 2 if wide else 1)
        self._grid.addWidget(reset, index, 2, Qt.AlignmentFlag.AlignTop)
        row = _FormRow(field, title, reset, default or (lambda: field.value))
        self._rows.append(row)
        self.set_label(field, label)
        self._align_label(row)
        reset.clicked.connect(partial(self._reset_to_default, row))
        field.shown.connect(partial(self._update_reset_button, row))
        self._update_reset_button(row)

    def add_below(self, widget: QWidget) -> None:
        """Add a widget without a label below the last field."""
        self._grid.addWidget(widget, self.reserve(), 1, 1, 2)

    def add_across(self, widget: QWidget) -> None:
        """Add a widget over the full width, such as a list."""
        self._grid.addWidget(widget, self.reserve(), 0, 1, 3)

    def set_label_width(self, width: int) -> None:
        """Make the labels `width` pixels wide, so that several forms line up; longer labels wrap."""
        self._label_width = width
        self._grid.setColumnMinimumWidth(0, width)

    def set_label(self, field: Field, label: str) -> None:
        """Name a field and its reset button by a text with a mnemonic."""
        row, name = self._row_of(field), label.replace("&", "")
        row.label.setText(label)
        row.reset.setToolTip(f"Reset “{name}” ({_RESET_KEY})")
        row.reset.setAccessibleName(f"Reset “{name}”")
        field.set_name(name)

    def set_row_visible(self, field: Field, visible: bool) -> None:
        """Show or hide the row of a field."""
        row = self._row_of(field)
        row.label.setVisible(visible)
        row.field.setVisible(visible)
        row.reset.setVisible(visible and self._is_changed(row))
        _set_space_kept(row.reset, visible)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Reset the focused field, or explain its label's term, which the window's key cannot do over a dialog."""
        focused = next((row for row in self._rows if row.field.isAncestorOf(self.focusWidget())), None)
        pressed = QKeySequence(event.keyCombination())
        if focused is not None and focused.label.term is not None and pressed == QKeySequence(EXPLAIN_KEY):
            explain(focused.label.term, focused.field)
        elif focused is not None and pressed == QKeySequence(_RESET_KEY):
            self._reset_to_default(focused)
        else:
            super().keyPressEvent(event)

    @property
    def differs(self) -> bool:
        """Return whether a visible field has a value other than its default."""
        return any(self._is_changed(row) for row in self._rows if not row.field.isHidden())

    def _row_of(self, field: Field) -> _FormRow:
        return next(row for row in self._rows if row.field is field)

    @staticmethod
    def _is_changed(row: _FormRow) -> bool:
        return row.field.value != row.default()

    @Slot()
    def _update_rows(self) -> None:
        # A new style sheet resets every label to its first font and makes inputs taller.
        for row in self._rows:
            self._align_label(row)
            self._update_reset_button(row)

    def _align_label(self, row: _FormRow) -> None:
        if self._label_width is None:  # room for bold, or the fields would move when a value changes
            bold = QFontMetrics(self._theme.font(bold=True))
            row.label.setMinimumWidth(bold.horizontalAdvance(row.label.text().replace("&", "")))
        row.label.setMinimumHeight(row.reset.sizeHint().height())

    def _update_reset_button(self, row: _FormRow) -> None:
        differs = self._is_changed(row)
        row.reset.setVisible(differs and not row.field.isHidden())
        row.label.setFont(self._theme.font(bold=differs))

    def _reset_to_default(self, row: _FormRow) -> None:
        row.field.setFocus()
        row.field.choose(row.default())


def _set_space_kept(widget: QWidget, keep: bool) -> None:
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(keep)
    widget.setSizePolicy(policy)
