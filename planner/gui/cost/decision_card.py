"""The card at the top of the Cost tab: the decision, its confidence, both sides' figures, and what would change it."""

from itertools import zip_longest
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QToolButton, QWidget

from planner.gui.cost.figures import FigureGrid
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.labels import AGE_ROLES, make_label
from planner.gui.widgets.layout import STRETCH, FlowLayout, in_column, in_row
from planner.gui.widgets.section import Section
from planner.present.cost.decision import FlipChip, SideRow
from planner.present.cost.decision_card import DecisionView
from planner.present.cost.rent_or_buy import FigureCell, FigureRow

_BAR_SIZE: Final = QSize(160, 10)
_GAP: Final = 2


class ConfidenceBar(QWidget):
    """A bar split into the shares of simulated cases in which renting (left) and buying (right) are cheaper."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._renting = 0.5
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_fraction(self, renting_cheaper: float, description: str) -> None:
        """Show the fraction of simulated cases in which renting is cheaper."""
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
    """The decision with its figures; the reasons in prose are collapsed.

    `flip_requested` carries the change of one input that the user wants to try, and `back_requested` takes it back;
    `hardware_requested` asks for other hardware, and `note_followed` for what the note proposes.
    """

    flip_requested = Signal(object)
    back_requested = Signal()
    hardware_requested = Signal()
    note_followed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._theme = theme
        self._view = DecisionView("")
        self._headline = make_label(selectable=True, font=theme.font("answer", bold=True))
        self._subject = make_label(selectable=True, wrap=True)
        self._saving_range = make_label(role="muted", selectable=True, wrap=True)
        self._note = make_label(selectable=True, wrap=True)
        self.follow_note = link_button("", "Ctrl+Z undoes it.")
        self._bar = ConfidenceBar(theme)
        self._bar_ends = tuple(make_label(role="muted", font=theme.font("small")) for _ in range(2))
        self._confidence = make_label(selectable=True)
        self.figures = FigureGrid(theme, ("Renting", "Buying"))
        self._flip_heading = make_label("Changes if", role="muted")
        self._flips = QWidget()
        self._flip_flow = FlowLayout(theme.spacing.tiny)
        self.flip_buttons: list[QToolButton] = []
        self._trial = make_label(role="warn", selectable=True)
        self.back = link_button("Back", "Restore the value from before the trial.")
        self.commitment = link_button("", "Rent for a whole term.")
        self._commitment_terms = make_label(role="muted", selectable=True, wrap=True)
        self._break_even = make_label(selectable=True, wrap=True)
        self._price_dates = make_label(selectable=True, font=theme.font("small"))
        self.choose_hardware = push_button(
            "Choose &hardware…", "Compare all GPUs, their numbers and rental offers for this job.", "primary"
        )
        self._details_label = make_label(selectable=True, wrap=True)
        self.details = Section(theme, "Details", self._details_label)
        self._lay_out()
        self.choose_hardware.clicked.connect(self.hardware_requested)
        self.follow_note.clicked.connect(self.note_followed)
        self.back.clicked.connect(self.back_requested)
        self.commitment.clicked.connect(lambda: self.flip_requested.emit(self._view.commitment))

    @property
    def view(self) -> DecisionView:
        """Return the shown contents."""
        return self._view

    @property
    def text(self) -> str:
        """Return the card as lines of text, with its details."""
        return "\n".join(filter(None, (self._view.text, self._saving_range.text(), self._note.text())))

    def show_view(self, view: DecisionView) -> None:
        """Replace the contents."""
        self._view = view
        self._headline.setText(view.headline)
        set_style_role(self._headline, "bad" if view.is_blocked else "")
        self._subject.setText(view.subject)
        # It keeps its line, so that nothing below moves when the draws arrive a moment later.
        self._saving_range.setText("")
        self._saving_range.setVisible(view.awaits_range)
        self.show_note("")
        self.show_trial("")
        share = view.renting_cheaper_fraction
        for end, name in zip(self._bar_ends, ("renting", view.buying_title.lower()), strict=True):
            end.setText(name)
        for widget in (self._bar, *self._bar_ends, self._confidence):
            widget.setVisible(share is not None)
        if share is not None:
            self._bar.show_fraction(share, view.confidence)
            self._confidence.setText(view.confidence)
        self.figures.setVisible(bool(view.rows))
        self.figures.set_columns(("Renting", view.buying_title))
        self.figures.show_rows(tuple(_figure_row(row, view.origins) for row in view.rows))
        self._show_flips(view.chips)
        self._show_commitment(view.commitment)
        for label, text in ((self._break_even, view.break_even), (self._price_dates, view.price_dates)):
            label.setText(text)
            label.setVisible(bool(text))
        set_style_role(self._price_dates, AGE_ROLES[view.price_age])
        self.choose_hardware.setVisible(view.needs_hardware)
        self._details_label.setText("\n".join(f"• {line}" for line in view.details))
        self.details.setVisible(bool(view.details))
        self.setAccessibleName(view.summary)

    def show_note(self, sentence: str, proposal: str = "") -> None:
        """Show a sentence below the decision, as a warning with a link if it proposes something better."""
        self._note.setText(sentence)
        self._note.setVisible(bool(sentence))
        set_style_role(self._note, "warn" if proposal else "")
        self.follow_note.setText(proposal)
        self.follow_note.setVisible(bool(proposal))

    def show_trial(self, value: str) -> None:
        """Show which value is tried, with a link that takes it back; nothing if none is."""
        self._trial.setText(f"You are trying {value}." if value else "")
        for widget in (self._trial, self.back):
            widget.setVisible(bool(value))

    def show_saving_range(self, sentence: str) -> None:
        """Show the range of the saving below the decision."""
        self._saving_range.setText(sentence)

    def _show_flips(self, flips: tuple[FlipChip, ...]) -> None:
        while len(self.flip_buttons) < len(flips):
            self.flip_buttons.append(self._make_flip_button())
        for button, chip in zip_longest(self.flip_buttons, flips):
            button.setVisible(chip is not None)
            if chip is not None:
                button.setText(chip.text)
                button.setEnabled(chip.field is not None)
                button.setToolTip(f"{chip.try_text}. “Back” restores it." if chip.field else "")
                button.setAccessibleName(f"{chip.text}. {chip.try_text}".removesuffix(". "))
        for widget in (self._flip_heading, self._flips):
            widget.setVisible(bool(flips))

    def _show_commitment(self, chip: FlipChip | None) -> None:
        for widget in (self.commitment, self._commitment_terms):
            widget.setVisible(chip is not None)
        if chip is not None:
            self.commitment.setText(chip.text)
            self._commitment_terms.setText(chip.terms)
            self.commitment.setToolTip(f"{chip.try_text}. “Back” restores it.")

    def _make_flip_button(self) -> QToolButton:
        button = QToolButton()
        set_style_role(button, "chip")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        at = len(self.flip_buttons)
        button.clicked.connect(lambda: self.flip_requested.emit(self._view.chips[at]))
        self._flip_flow.addWidget(button)
        return button

    def _lay_out(self) -> None:
        space = self._theme.spacing
        self._flips.setLayout(self._flip_flow)
        bar_row = in_row(
            self._bar_ends[0], (self._bar, 1, Qt.AlignmentFlag.AlignVCenter), self._bar_ends[1], spacing=space.small
        )
        in_column(
            in_row(self._headline, STRETCH, self._confidence, spacing=space.large),
            bar_row,
            self._subject,
            in_row(self.choose_hardware, STRETCH),
            in_row(self._trial, self.back, STRETCH, spacing=space.small),
            self._saving_range,
            in_row((self._note, 1), self.follow_note, spacing=space.large),
            in_row(self.figures, STRETCH),
            in_row(self._flip_heading, (self._flips, 1), spacing=space.small),
            in_row(self.commitment, (self._commitment_terms, 1), spacing=space.small),
            in_row((self._break_even, 1), (self._price_dates, 0), spacing=space.large),
            self.details,
            owner=self,
            margins=(space.large, space.medium),
            spacing=space.small,
        )


def _figure_row(row: SideRow, origins: tuple[str, str]) -> FigureRow:
    texts = (row.renting, row.buying)
    return FigureRow(row.title, tuple(FigureCell(text, origin) for text, origin in zip(texts, origins, strict=True)))
