"""The inputs of a traced module: a row each, with its name and its shape."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from planner.errors import SpecError
from planner.gui.theme import Theme, mark
from planner.gui.widgets.icon_button import IconButton
from planner.gui.widgets.label import make_label
from planner.gui.widgets.text_field import TextField
from planner.trace.notation import input_text, parse_input
from planner.trace.request import Input

_EXAMPLE = "8x3x224x224:float32"


class InputsEditor(QWidget):
    """Rows of inputs, at least one; `edited` says that one has changed."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[_Row] = []
        self._add = QPushButton("Add an &input")
        mark(self._add, "link")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.tiny)
        below = QHBoxLayout()
        below.addWidget(self._add)
        below.addStretch(1)
        self._column.addWidget(make_label("Inputs: name and shape", "muted"))
        self._column.addLayout(below)
        self._add.clicked.connect(self._on_add)
        self.set_names(("",))

    @property
    def problem(self) -> str:
        """Return why the inputs cannot be used as they stand; empty if they can."""
        return next((row.shape.problem for row in self._rows if row.shape.problem), "")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Return the inputs whose shape is given.

        Raises:
            SpecError: If one is not understood.
        """
        return tuple(row.read() for row in self._rows if row.shape.text)

    def set_inputs(self, inputs: Sequence[Input]) -> None:
        """Show other inputs."""
        texts = [input_text(given) for given in inputs] or [""]
        self._show([text.rpartition("=")[::2] if "=" in text else ("", text) for text in texts])

    def set_names(self, names: Sequence[str]) -> None:
        """Ask for inputs of these names; shapes that were given for one of them stay."""
        known = {row.name.text(): row.shape.text for row in self._rows}
        self._show([(name, known.get(name, "")) for name in names or ("",)])

    def focus_first_gap(self) -> None:
        """Put the keyboard where a shape is missing or wrong."""
        wrong = [row for row in self._rows if row.shape.problem or not row.shape.text]
        (wrong or self._rows)[0].shape.setFocus()

    def _show(self, pairs: Sequence[tuple[str, str]]) -> None:
        while len(self._rows) > len(pairs):
            self._remove(self._rows[-1])
        while len(self._rows) < len(pairs):
            self._append()
        for row, (name, shape) in zip(self._rows, pairs, strict=True):
            row.name.setText(name)
            row.shape.set_value(shape)

    def _append(self) -> "_Row":
        row = _Row(self._theme, len(self._rows) + 1)
        row.removed.connect(lambda: self._on_remove(row))
        row.edited.connect(self.edited)
        self._rows.append(row)
        self._column.insertWidget(len(self._rows), row)
        return row

    def _remove(self, row: "_Row") -> None:
        self._rows.remove(row)
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()

    @Slot()
    def _on_add(self) -> None:
        self._append().name.setFocus()
        self.edited.emit()

    def _on_remove(self, row: "_Row") -> None:
        if len(self._rows) == 1:
            row.name.clear()
            row.shape.set_value("")
        else:
            self._remove(row)
        self._rows[0].shape.setFocus()
        self.edited.emit()


class _Row(QWidget):
    """A name, which may stay empty, and a shape."""

    edited = Signal()
    removed = Signal()

    def __init__(self, theme: Theme, number: int) -> None:
        super().__init__()
        self.name = QLineEdit(placeholderText="by place")
        self.name.setAccessibleName(f"Name of input {number}")
        self.name.setToolTip("The argument of forward; empty: by its place.")
        self.name.setFixedWidth(self.name.fontMetrics().averageCharWidth() * 16)
        self.shape = TextField(_check, _EXAMPLE)
        self.shape.set_name(f"Shape of input {number}")
        remove = IconButton(theme, "close", f"Remove input {number}")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        top = Qt.AlignmentFlag.AlignTop
        layout.addWidget(self.name, 0, top)
        layout.addWidget(self.shape, 1)
        layout.addWidget(remove, 0, top)
        self.setFocusProxy(self.shape)
        self.name.textEdited.connect(self.edited)
        self.shape.typed.connect(self.edited)
        remove.clicked.connect(self.removed)

    def read(self) -> Input:
        """Return the input.

        Raises:
            SpecError: If its shape is not understood.
        """
        name = self.name.text().strip()
        return parse_input(f"{name}={self.shape.text}" if name else self.shape.text)


def _check(text: str) -> None:
    if text.strip():
        given = parse_input(text)
        if given.name:
            raise SpecError("input", "the name has a field of its own", f"Write the shape alone, such as {_EXAMPLE}.")
