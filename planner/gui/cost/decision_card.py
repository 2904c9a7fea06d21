"""The card at the top of the Cost tab: the decision, its confidence, both sides' figures, and what would change it."""

from functools import partial
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QToolButton, QWidget

from planner.gui.cost.figures import FigureGrid
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, FlowLayout, WidgetPool, in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.widgets.status_icons import AGE_ROLES
from planner.present.cost.decision import DecisionView, FlipChip

_BAR_SIZE: Final = QSize(160, 10)
_GAP: Final = 2


class ConfidenceBar(QWidget):
    """A bar split into the shares of cases in which renting (left) and buying (right) are cheaper."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._renting = 0.5
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_fraction(self, renting_cheaper: float, description: str) -> None:
        """Show the fraction of cases in which renting is cheaper."""
        self._renting = renting_cheaper
        self.setAccessibleName(description)
        self.setToolTip(description)
        self.update()

    def sizeHint(self) -> QSize:
        """Return the preferred size in pixels."""
        return _BAR_SIZE

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the two parts, in the colors that the curves of renting and owning have."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        split = (self.width() - _GAP) * self._renting
        for left, width, role in ((0.0, split, "accent"), (split + _GAP, self.width() - split - _GAP, "text")):
            if width > 0:
                painter.setBrush(self._theme.color(role))
                painter.drawRoundedRect(QRectF(left, 0, width, self.height()), _GAP, _GAP)
        painter.end()


class DecisionCard(QFrame):
    """The decision with its figures; its details, all in prose, are collapsed.

    `flip_requested` carries the change that the user wants to try; `hardware_requested` asks for other hardware.
    """

    flip_requested = Signal(object)
    hardware_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "card")
        self._view = DecisionView("")
        self._details_text = self._simulation_text = ""
        self._headline = make_label(selectable=True, font=theme.font("answer", bold=True), wrap=True)
        self._subject = make_label(selectable=True, wrap=True)
        self._bar = ConfidenceBar(theme)
        self._confidence = make_label(selectable=True)
        self.figures = FigureGrid(theme, ("Renting", "Buying"))
        self._flip_heading = make_label("Changes if", role="muted")
        self._flip_flow = FlowLayout(theme.spacing.tiny)
        self.flip_buttons: list[QToolButton] = []
        self._footnote = make_label(selectable=True, font=theme.font("small"), wrap=True)
        self.choose_hardware = push_button("Choose &hardware…", "Compare every card, number of cards and offer.")
        self._details_label = make_label(selectable=True, wrap=True)
        self.details = Section(theme, "Details", self._details_label)
        self._lay_out(theme)
        self.choose_hardware.clicked.connect(self.hardware_requested)
