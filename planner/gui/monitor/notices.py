"""Headline and notices of the Monitor tab: totals, faults, alerts, interrupted recordings, machines without cards."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from time import time
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QPushButton, QSystemTrayIcon, QWidget

from planner.gui.monitor.feed import Feed
from planner.gui.monitor.settings import unfinished_message
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import IconButton, link_button, push_button
from planner.gui.widgets.labels import ElidedLabel, IconLabel, make_label
from planner.gui.widgets.layout import STRETCH, WidgetPool, in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.monitor.alert_delivery import AlertDelivery
from planner.monitor.alerts import Alert
from planner.monitor.settings import AlertTargets
from planner.present import format as fmt
from planner.present.monitor.diagnosis import Tone
from planner.present.monitor.events import FaultView, alert_object
from planner.present.monitor.headline import Headline

_LAST_DELIVERY_SECONDS: Final = 1.0
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
    """Buttons for a machine without cards, which the tab connects; another one that failed is tried again, or left."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.again = push_button("&Try again", "Connect to this machine again", "primary")
        self.another = push_button("A&nother machine…", "Change the address, or name another machine")
        self.here = push_button("This &machine", "Show the GPUs of this machine again")
        self.demo = push_button(
            "Show a &demo", "Replay a made-up recording of two GPUs in training, 15 minutes long.", "primary"
        )
        self.replay = push_button(
            "Open a recordin&g…", "Replay a recording, or a log of nvidia-smi, dmon, nvtop, DCGM or amd-smi."
        )
        self.doctor = push_button(
            "Chec&k this machine", "Check everything that readings depend on, from the GPU to the driver."
        )
        in_row(
            *(self.again, self.another, self.here, self.demo, self.replay, self.doctor),
            STRETCH,
            owner=self,
            margins=(0, theme.spacing.tiny, 0, theme.spacing.small),
            spacing=theme.spacing.small,
        )

    def show_buttons(self, *, is_remote: bool, is_cut_off: bool) -> None:
        """Show the buttons for this machine or for another one, which can only be checked there."""
        self.again.setVisible(is_cut_off)
        for button in (self.another, self.here):
            button.setVisible(is_remote)
        for button in (self.demo, self.doctor):
            button.setVisible(not is_remote)


_TONES: Final = {"error": "", "warning": "warning", "note": "notice"}


class FaultList(QWidget):
    """List of faults: errors and warnings as banners, notes in a collapsible section.

    On a machine without cards the headline says what is missing, and all faults are in the section.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._faults: Sequence[FaultView] = ()
        notes, make = QWidget(), partial(_FaultBanner, theme)
        self._section = Section(theme, "", notes)
        self._urgent = WidgetPool(in_column(self._section, owner=self, spacing=theme.spacing.tiny), make)
        self._notes = WidgetPool(in_column(owner=notes, spacing=theme.spacing.tiny), make)
        self.show_faults((), are_folded=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the text of each fault, the most severe first."""
        return tuple(fault.as_text for fault in self._faults)

    def show_faults(self, faults: Sequence[FaultView], *, are_folded: bool) -> None:
        """Show `faults`, which must be sorted with the most severe first; `are_folded` puts all into the section."""
        self._faults = faults
        urgent = [fault for fault in faults if fault.severity != "note" and not are_folded]
        notes = [fault for fault in faults if fault not in urgent]
        for pool, shown in ((self._urgent, urgent), (self._notes, notes)):
            for banner, fault in zip(pool.show(len(shown)), shown, strict=True):
                banner.show_fault(fault)
        self._section.set_title("Details" if are_folded else fmt.plural(len(notes), "note"))
        self._section.set_summary("; ".join(fault.title for fault in notes))
        self._section.setVisible(bool(notes))
        self.setVisible(bool(faults))


class _FaultBanner(QFrame):
    """Banner of one fault: its title and start, with the advice below."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "banner")
        self.text = ""
        self._title = make_label(font=theme.font(bold=True), wrap=True)
        self._advice = make_label(role="muted", wrap=True)
        layout = in_column(owner=self, margins=(theme.spacing.medium, theme.spacing.tiny), spacing=0)
        for label in (self._title, self._advice):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layout.addWidget(label)

    def show_fault(self, fault: FaultView) -> None:
        if fault.as_text == self.text:
            return
        self.text = fault.as_text
        set_style_role(self, _TONES[fault.severity], "tone")
        self._title.setText(f"{fault.title}, {fault.since}")
        self._advice.setText(fault.advice)
        self.setAccessibleName(self.text)


class UnfinishedBanner(QFrame):
    """Offers to open interrupted recordings, one after the other.

    `opened` carries the path of one to open, `offer_ended` follows each choice with the path.
    """

    opened = Signal(object)
    offer_ended = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "banner")
        set_style_role(self, "notice", "tone")
        self._paths: tuple[Path, ...] = ()
        self._message = ElidedLabel()
        self.open = QPushButton("Open &it")
        self.open.setToolTip("Open the unfinished recording")
        self.dismiss = IconButton(theme, "close", "Dismiss this message and keep the file")
        in_row(
            (self._message, 1), self.open, self.dismiss, owner=self, margins=(theme.spacing.medium, theme.spacing.tiny)
        )
        self.open.clicked.connect(self._open_and_end)
        self.dismiss.clicked.connect(self._end_offer)
        self.hide()

    def show_offers(self, paths: tuple[Path, ...]) -> None:
        """Offer the first of the interrupted recordings at `paths`; without one, hide the banner."""
        self._paths = paths
        self.setVisible(bool(paths))
        if paths:
            self._message.setText(" ".join(unfinished_message(paths[0])))

    def _open_and_end(self) -> None:
        self.opened.emit(self._paths[0])
        self._end_offer()

    def _end_offer(self) -> None:
        path, *others = self._paths
        self.show_offers(tuple(others))
        self.offer_ended.emit(path)


class AlertNotifier(QObject):
    """Shows each alert in the window's banner and on the desktop, marks it on the timeline, and delivers it.

    `delivery_failed` carries what failed, as a sentence.
    """

    delivery_failed = Signal(str)

    def __init__(self, feed: Feed, workspace: Workspace, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._feed, self._workspace, self._theme = feed, workspace, theme
        self._delivery: AlertDelivery | None = None
        self._targets = AlertTargets()
        feed.alerted.connect(self._show_alert)
        self.delivery_failed.connect(self._show_failure)

    def close(self) -> None:
        """Hide the icon in the system tray, and wait a moment for alerts that are being delivered."""
        self._close_delivery(_LAST_DELIVERY_SECONDS)
        if "_tray_icon" in self.__dict__ and self._tray_icon is not None:
            self._tray_icon.hide()

    @cached_property
    def _tray_icon(self) -> QSystemTrayIcon | None:
        if not QSystemTrayIcon.isSystemTrayAvailable():
            return None
        tray = QSystemTrayIcon(self._theme.icon("monitor"), self)
        tray.setToolTip("GPU Planner: alerts")
        tray.show()
        return tray

    @Slot(object)
    def _show_alert(self, alert: Alert) -> None:
        latest = self._feed.live_latest
        told = alert_object(alert, latest.inventory.machine, latest.wall_seconds or time())
        self._feed.mark_live(alert.at_seconds, told["title"])
        self._workspace.noticed.emit(told["title"], told["advice"])
        if self._tray_icon is not None and QSystemTrayIcon.supportsMessages():
            self._tray_icon.showMessage(told["title"], told["advice"], self._theme.icon("monitor"))
        self._deliver(told)

    def _deliver(self, told: Mapping[str, object]) -> None:
        targets = self._workspace.settings.current.monitor.alert_targets
        if targets != self._targets:
            self._close_delivery(0.0)
            self._targets = targets
        if targets != AlertTargets():
            self._delivery = self._delivery or AlertDelivery(targets, self.delivery_failed.emit)
            self._delivery.send(told)

    @Slot(str)
    def _show_failure(self, sentence: str) -> None:
        self._workspace.noticed.emit(sentence, "Check where alerts go in the Monitor tab's settings.")

    def _close_delivery(self, seconds: float) -> None:
        delivery, self._delivery = self._delivery, None
        if delivery is not None:
            delivery.close(seconds)
