"""The answer at the top of the Monitor tab: how the cards are, what holds them back, what to try first."""

from typing import Final

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.elided_label import ElidedLabel
from planner.gui.widgets.label import make_label
from planner.gui.widgets.link_button import link_button
from planner.present.monitor.diagnosis import Tone
from planner.present.monitor.headline import Headline

_ICONS: Final[dict[Tone, tuple[str, str]]] = {
    "": ("info", "muted"),
    "muted": ("info", "muted"),
    "ok": ("fits", "ok"),
    "warn": ("tight", "warn"),
    "bad": ("does-not-fit", "bad"),
}


class Outlook(QWidget):
    """A sentence with a mark, under it what else there is to know; `opened` carries the card to tell more of."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown = Headline("")
        self._mark = QLabel()
        self._sentence = make_label(font=theme.font("title", bold=True), wrap=True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._more, self._advice = ElidedLabel(role="muted"), ElidedLabel()
        self.why = link_button(
            "Why, and what else to try",
            "Show what was seen, against which threshold, and what to optimise next.",
        )
        self._lay_out()
        self.why.clicked.connect(self.open)
        theme.changed.connect(self._dress)
        self._dress()
        self.hide()

    @property
    def text(self) -> str:
        """Return what is said."""
        return "\n".join(part for part in (self._shown.sentence, self._shown.more, self._advice.text()) if part)

    def show_headline(self, shown: Headline) -> None:
        """Say this; nothing where there is nothing to say."""
        if shown == self._shown:
            return
        self._shown = shown
        self._sentence.setText(shown.sentence)
        self._more.setText(shown.more)
        self._advice.setText(f"Try first: {_within(shown.advice)}" if shown.advice else "")
        for label in (self._more, self._advice):
            label.setVisible(bool(label.text()))
        self.why.setVisible(shown.uuid is not None)
        self.setAccessibleName(self.text)
        self.setVisible(bool(shown.sentence))
        self._dress()

    @Slot()
    def open(self) -> None:
        """Ask for the diagnosis of the card that this is about."""
        if self._shown.uuid is not None:
            self.opened.emit(self._shown.uuid)

    @Slot()
    def _dress(self) -> None:
        side = self._theme.icon_side
        icon = self._theme.icon(*_ICONS[self._shown.tone])
        self._mark.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatio()))

    def _lay_out(self) -> None:
        space = self._theme.spacing
        words = QVBoxLayout()
        words.setSpacing(0)
        for label in (self._sentence, self._more, self._advice):
            words.addWidget(label)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, space.tiny)
        layout.setSpacing(space.small)
        layout.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)
        layout.addWidget(self.why, 0, Qt.AlignmentFlag.AlignBottom)


def _within(advice: str) -> str:
    """Return advice as it stands within a sentence; names that begin with two capitals stay."""
    return advice if advice[:2].isupper() else f"{advice[:1].lower()}{advice[1:]}"
