"""The answer at the top of the Monitor tab, and what can be seen instead of cards while there are none."""

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
    """A sentence with a mark, under it what else there is to know; `opened` carries the card to tell more of."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown = Headline("")
        self._mark = IconLabel(theme)
        self._sentence = make_label(font=theme.font("title", bold=True), wrap=True, selectable=True)
        self._more, self._advice = ElidedLabel(role="muted"), ElidedLabel()
        self.why = link_button(
            "Why, and what else to try",
            "Show what was seen, against which threshold, and what to optimise next.",
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
        self._mark.show_icon(_ICONS[self._shown.tone])
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
        self._mark.show_icon(_ICONS[shown.tone])

    @Slot()
    def open(self) -> None:
        """Ask for the diagnosis of the card that this is about."""
        if self._shown.uuid is not None:
            self.opened.emit(self._shown.uuid)


def _within(advice: str) -> str:
    """Return advice as it stands within a sentence; names that begin with two capitals stay."""
    return advice if advice[:2].isupper() else f"{advice[:1].lower()}{advice[1:]}"


class EmptyState(QWidget):
    """A sentence and three ways on, which are set from outside. Why there are no cards is a fault of its own."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._more = make_label(
            "The machine itself is watched all the same, and a recording shows everything else.",
            "muted",
            selectable=True,
        )
        self.replay = push_button(
            "&Open a recording…", "Replay a recording, or a log of nvidia-smi, dmon, nvtop or DCGM.", "primary"
        )
        self.demo = push_button(
            "Show a &demo", "Replay a quarter of an hour of invented readings of two cards that train."
        )
        self.doctor = push_button(
            "&What works here", "Check everything between a card and its readings, and say what to do."
        )
        in_column(
            self._more,
            in_row(self.replay, self.demo, self.doctor, STRETCH, spacing=theme.spacing.small),
            owner=self,
            margins=(0, theme.spacing.tiny, 0, theme.spacing.small),
            spacing=theme.spacing.small,
        )
