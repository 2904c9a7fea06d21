"""The time span of the plots while little is known yet."""

from typing import Final

from planner.gui.monitor.plots.time_view import TimeView
from planner.monitor.history import History

# Few and far between, so that the axis seldom moves.
_STEPS_SECONDS: Final = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0)


class FirstSpan:
    """Begins with a minute, which grows in steps to the usual span: ten minutes would be empty for nine of them.

    It ends as soon as somebody zooms, pans or chooses a span.
    """

    def __init__(self, view: TimeView) -> None:
        self._view = view
        self._usual: float | None = None
        self._shown: float | None = None

    def begin(self, usual: float | None) -> None:
        """Show what is usual, in seconds, once so much is known; none is all there is."""
        self._usual, self._shown = usual, usual
        self._view.set_span(usual)

    def choose(self, seconds: float | None) -> None:
        """Show just this."""
        self._usual = None
        self._view.set_span(seconds)

    def fit(self, history: History) -> None:
        """Show no more than a step beyond what is known."""
        start, end, usual = history.start, history.end, self._usual
        if start is None or end is None or usual is None:
            return
        if not self._view.follow or self._view.span != self._shown:
            self._usual = None
            return
        fitting = next((step for step in _STEPS_SECONDS if step >= end - start), usual)
        if min(fitting, usual) != self._shown:
            self._shown = min(fitting, usual)
            self._view.set_span(self._shown)
