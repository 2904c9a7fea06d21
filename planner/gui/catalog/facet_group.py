"""The values of one facet as boxes to tick, each with how many records it would show."""

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.present import format as fmt

_FEW: Final = 8


class FacetGroup(QWidget):
    """Boxes for `values`, given as `(value, words)`, none for what is unknown; `chosen` carries the ticked values.

    Of many values only the first few and the ticked ones are shown until the person asks for all.
    """

    chosen = Signal(object)

    def __init__(self, theme: Theme, values: Sequence[tuple[str | None, str]]) -> None:
        super().__init__()
        self._words = dict(values)
        self._places = {value: row for row, (value, _) in enumerate(values)}
        self._boxes: dict[str | None, QCheckBox] = {}
        self._numbers: dict[str | None, QLabel] = {}
        self._counts: Mapping[str | None, int] = {}
        self._expanded = False
        self._more = QPushButton()
        mark(self._more, "link")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(theme.spacing.tiny)
        self._grid.setColumnStretch(0, 1)
        layout.addLayout(self._grid)
        layout.addWidget(self._more)
        self._more.clicked.connect(self._on_more)
        self._show_rows(())

    @property
    def values(self) -> tuple[str | None, ...]:
        """Return the ticked values."""
        return tuple(value for value in self._places if value in self._boxes and self._boxes[value].isChecked())

    @property
    def summary(self) -> str:
        """Return the ticked values in words."""
        return ", ".join(self._words[value] for value in self.values)

    def set_values(self, values: Sequence[str | None]) -> None:
        """Tick exactly `values`."""
        self._show_rows(values)
        for value, box in self._boxes.items():
            with QSignalBlocker(box):
                box.setChecked(value in values)

    def add_values(self, values: Sequence[tuple[str | None, str]]) -> None:
        """Offer more values, below those that are there."""
        new = [(value, words) for value, words in values if value not in self._places]
        for value, words in new:
            self._words[value], self._places[value] = words, len(self._places)
        if new:
            self._show_rows(self.values)

    def set_counts(self, counts: Mapping[str | None, int]) -> None:
        """Show how many records each value would show; a value that shows none is greyed."""
        self._counts = counts
        for value in self._boxes:
            self._show_count(value)

    @Slot()
    def _on_toggled(self) -> None:
        self.chosen.emit(self.values)

    @Slot()
    def _on_more(self) -> None:
        self._expanded = not self._expanded
        self._show_rows(self.values)

    def _show_rows(self, ticked: Sequence[str | None]) -> None:
        for value, row in self._places.items():
            shown = self._expanded or row < _FEW or value in ticked
            if shown and value not in self._boxes:
                self._make(value)
            if value in self._boxes:
                self._boxes[value].setVisible(shown)
                self._numbers[value].setVisible(shown)
        self._more.setVisible(len(self._places) > _FEW)
        self._more.setText("Show fewer" if self._expanded else f"Show all {len(self._places)}")

    def _make(self, value: str | None) -> None:
        """Make the box of `value`, which costs too much to do before it is wanted."""
        box, number = QCheckBox(self._words[value]), make_label(role="muted")
        self._boxes[value], self._numbers[value] = box, number
        self._grid.addWidget(box, self._places[value], 0)
        self._grid.addWidget(number, self._places[value], 1, Qt.AlignmentFlag.AlignRight)
        self._show_count(value)
        box.toggled.connect(self._on_toggled)

    def _show_count(self, value: str | None) -> None:
        count, box = self._counts.get(value, 0), self._boxes[value]
        self._numbers[value].setText(fmt.integer(count))
        box.setAccessibleName(f"{self._words[value]}, {count}")
        mark(box, "" if count or box.isChecked() else "muted")
