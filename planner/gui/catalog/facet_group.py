"""The values of one facet as boxes to tick, each with how many records it would show."""

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QGridLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label

_FEW: Final = 8


class FacetGroup(QWidget):
    """Boxes for `values`, given as `(value, words)`; `chosen` carries the ticked values.

    Of many values only the first few and the ticked ones are shown until the person asks for all.
    """

    chosen = Signal(object)

    def __init__(self, theme: Theme, values: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._words = dict(values)
        self._boxes = {value: QCheckBox(words) for value, words in values}
        self._counts = {value: make_label(role="muted") for value, _ in values}
        self._more = QPushButton()
        self._expanded = False
        mark(self._more, "link")
        grid = QGridLayout()
        grid.setVerticalSpacing(theme.spacing.tiny)
        grid.setColumnStretch(0, 1)
        for row, value in enumerate(self._boxes):
            grid.addWidget(self._boxes[value], row, 0)
            grid.addWidget(self._counts[value], row, 1, Qt.AlignmentFlag.AlignRight)
            self._boxes[value].toggled.connect(self._on_toggled)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addLayout(grid)
        layout.addWidget(self._more)
        self._more.clicked.connect(self._on_more)
        self._show_rows()

    @property
    def values(self) -> tuple[str, ...]:
        """Return the ticked values."""
        return tuple(value for value, box in self._boxes.items() if box.isChecked())

    @property
    def summary(self) -> str:
        """Return the ticked values in words."""
        return ", ".join(self._words[value] for value in self.values)

    def set_values(self, values: Sequence[str]) -> None:
        """Tick exactly `values`."""
        for value, box in self._boxes.items():
            with QSignalBlocker(box):
                box.setChecked(value in values)
        self._show_rows()

    def set_counts(self, counts: Mapping[str, int]) -> None:
        """Show how many records each value would show; a value that shows none is greyed."""
        for value, box in self._boxes.items():
            count = counts.get(value, 0)
            self._counts[value].setText(str(count))
            box.setAccessibleName(f"{self._words[value]}, {count}")
            mark(box, "" if count or box.isChecked() else "muted")

    @Slot()
    def _on_toggled(self) -> None:
        self.chosen.emit(self.values)

    @Slot()
    def _on_more(self) -> None:
        self._expanded = not self._expanded
        self._show_rows()

    def _show_rows(self) -> None:
        for row, (value, box) in enumerate(self._boxes.items()):
            shown = self._expanded or row < _FEW or box.isChecked()
            box.setVisible(shown)
            self._counts[value].setVisible(shown)
        self._more.setVisible(len(self._boxes) > _FEW)
        self._more.setText(self.tr("Show fewer") if self._expanded else self.tr("Show all %n", "", len(self._boxes)))
