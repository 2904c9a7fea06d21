"""Headline of the Monitor tab, and what the tab shows on a machine without cards."""

from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.labels import ElidedLabel, IconLabel, make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.present.monitor.diagnosis import Tone
from planner.present.monitor.headline import Headline

_ICONS: Final[dict[Tone, tuple[str, str]]] = {
    "": ("info", "muted"),
    "muted": ("info", "muted"),
    "ok": ("fits", "ok"),
    "warn": ("tight", "warn"),
    "bad": ("does-not-fit", "bad"),
}


class HeadlinePanel(QWidget):
    """Headline with icon, details and advice; `opened` carries the UUID of the card that the headline is about."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._headline = Headline("")
        self._mark = IconLabel(theme)
        self._sentence = make_label(font=theme.font("title", bold=True), wrap=True, selectable=True)
        self._more, self._advice = ElidedLabel(role="muted"), ElidedLabel()
        self.why = link_button(
            "Details and advice",
            "Show the evidence with its thresholds, and the optimization checklist.",
        )
        space = self._theme.spacing
        in_row(
            (self._mark, 0, Qt.AlignmentFlag.AlignTop),
            (in_column(self._sentence, self._more, self._advice, spacing=0), 1),
            (self.why, 0, Qt.AlignmentFlag.AlignBottom),
            owner=self,
            margins=(0, 0, 0, space.tiny),
            spacing=space.small,
        )
        self.why.clicked.connect(self.open)
        self._mark.show_icon(_ICONS[self._headline.tone])
        self.hide()

    @property
    def text(self) -> str:
        """Return the headline as text."""
        return "\n".join(part for part in (self._headline.sentence, self._headline.more, self._advice.text()) if part)

    def show_headline(self, headline: Headline) -> None:
        """Show the headline, with its details and advice; an empty headline hides the panel."""
        if headline == self._headline:
            return
        self._headline = headline
        self._sentence.setText(headline.sentence)
        self._more.setText(headline.more)
        self._advice.setText(f"Try first: {_with_lowercase_start(headline.advice)}" if headline.advice else "")
        for label in (self._more, self._advice):
            label.setVisible(bool(label.text()))
        self.why.setVisible(headline.uuid is not None)
        self.setAccessibleName(self.text)
        self.setVisible(bool(headline.sentence))
        self._mark.show_icon(_ICONS[headline.tone])

    @Slot()
    def open(self) -> None:
        """Open the diagnosis of the card that the headline is about."""
        if self._headline.uuid is not None:
            self.opened.emit(self._headline.uuid)


def _with_lowercase_start(advice: str) -> str:
    """Return the advice with a lowercase first letter, unless it starts with an acronym."""
    return advice if advice[:2].isupper() else f"{advice[:1].lower()}{advice[1:]}"


class EmptyState(QWidget):
    """Buttons for a machine without cards, which the tab connects."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.demo = push_button(
            "Show a &demo", "Replay a made-up recording of two cards in training, 15 minutes long.", "primary"
        )
        self.replay = push_button(
            "Open a recordin&g…", "Replay a recording, or a log of nvidia-smi, dmon, nvtop, DCGM or amd-smi."
        )
        self.doctor = push_button(
            "Chec&k this machine", "Check everything that readings depend on, from the card to the driver."
        )
        in_row(
            self.demo,
            self.replay,
            self.doctor,
            STRETCH,
            owner=self,
            margins=(0, theme.spacing.tiny, 0, theme.spacing.small),
            spacing=theme.spacing.small,
        )
