"""The time that all plots show, and the one that the pointer is at."""

from typing import Final

from PySide6.QtCore import QObject, Signal

NARROWEST_SECONDS: Final = 2.0
_FIRST_SPAN: Final = 600.0


class TimeView(QObject):
    """A span of time within what is known, which follows the latest reading or stands still.

    `moved` is emitted when the span is another, `follow_changed` when it begins or ceases to follow, and
    `cursor_moved` with the time under the pointer or none.
    """

    moved = Signal()
    follow_changed = Signal(bool)
    cursor_moved = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._first, self._last = 0.0, _FIRST_SPAN
        self._end = _FIRST_SPAN
        self._span = _FIRST_SPAN
        self._shows_all = False
        self._follow = True
        self.cursor: float | None = None

    @property
    def start(self) -> float:
        """Return the time at the left end."""
        return self._end - self._span

    @property
    def end(self) -> float:
        """Return the time at the right end."""
        return self._end

    @property
    def span(self) -> float:
        """Return how many seconds are shown."""
        return self._span

    @property
    def follow(self) -> bool:
        """Return whether the latest reading stays at the right end."""
        return self._follow

    def set_follow(self, follow: bool) -> None:
        """Follow the latest reading, or stand still."""
        if follow != self._follow:
            self._follow = follow
            self.follow_changed.emit(follow)
            self._settle()

    def set_known(self, first: float, last: float) -> None:
        """Say what is known: from the first reading to the last."""
        self._first, self._last = first, last
        if self._follow:
            self._settle()

    def set_span(self, seconds: float | None) -> None:
        """Show the latest seconds, or all there is, and follow."""
        self._shows_all = seconds is None
        span = seconds or self._whole
        self._place(self._last - span, span)
        self.set_follow(True)

    def show(self, start: float, end: float) -> None:
        """Show a time and stand still."""
        self.set_follow(False)
        self._place(start, end - start)

    def zoom(self, factor: float, at: float) -> None:
        """Show `factor` times as many seconds; the time `at` stays in its place, or the latest reading if followed."""
        self._shows_all = False
        span = min(max(self._span * factor, NARROWEST_SECONDS), self._whole)
        if self._follow:
            self._place(self._last - span, span)
        else:
            self._place(at - (at - self.start) * span / self._span, span)

    def pan(self, seconds: float) -> None:
        """Show what is so much later, or earlier, and stand still."""
        self.set_follow(False)
        self._place(self.start + seconds, self._span)

    def point_at(self, time: float | None) -> None:
        """Move the cursor; none takes it away."""
        if time != self.cursor:
            self.cursor = time
            self.cursor_moved.emit(time)

    @property
    def _whole(self) -> float:
        # A history of seconds is shown on an axis of a minute.
        return max(self._last - self._first, 60.0)

    def _settle(self) -> None:
        span = self._whole if self._shows_all else self._span
        start = self._last - span if self._follow else self.start
        self._place(start, span)

    def _place(self, start: float, span: float) -> None:
        """Move to a span, which keeps within what is known."""
        earliest = min(self._first, self._last - span)
        start = min(max(start, earliest), self._last - span)
        if (start + span, span) != (self._end, self._span):
            self._end, self._span = start + span, span
            self.moved.emit()
