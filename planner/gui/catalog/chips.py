"""What the catalog is narrowed by, as a row of buttons that lift one condition each."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QWidget

from planner.gui.catalog.filters import Condition
from planner.gui.theme import Theme, mark
from planner.gui.widgets.flow_layout import FlowLayout


class ChipRow(QWidget):
    """One button a condition; `lifted` carries the filter without it. Hidden while there is none."""

    lifted = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[Condition, ...] = ()
        self._chips: list[QToolButton] = []
        self._flow = FlowLayout(theme.spacing.tiny)
        self._flow.setContentsMargins(theme.spacing.small, 0, 0, 0)
        self.setLayout(self._flow)
        self.hide()
        theme.changed.connect(self._tint)

    def show_conditions(self, conditions: Sequence[Condition]) -> None:
        """Show a button for each of `conditions`."""
        if tuple(conditions) == self._shown:
            return
        self._shown = tuple(conditions)
        for chip in self._chips:
            self._flow.removeWidget(chip)
            chip.setParent(None)
            chip.deleteLater()  # later, since it may be the one whose click is being answered
        self._chips = [self._make(condition) for condition in self._shown]
        self._tint()
        self.setVisible(bool(self._chips))

    def _make(self, condition: Condition) -> QToolButton:
        chip = QToolButton()
        mark(chip, "chip")
        chip.setText(condition.words)
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        chip.setAccessibleName("Remove the filter %1".replace("%1", condition.words))
        chip.setToolTip(chip.accessibleName())
        chip.clicked.connect(partial(self.lifted.emit, condition.lifted))
        self._flow.addWidget(chip)
        return chip

    def _tint(self) -> None:
        for chip in self._chips:
            chip.setIcon(self._theme.icon("close", "muted"))
