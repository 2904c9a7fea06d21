"""The diagnosis of what is shown, asked anew no more often than it can change."""

from collections.abc import Mapping
from time import monotonic
from typing import Final

from planner.gui.monitor.feed import Feed
from planner.gui.monitor.verdict_timeline import VerdictTimeline
from planner.monitor.diagnosis.checklist import agreeing, check
from planner.monitor.diagnosis.verdict import Kind, Verdict
from planner.present.monitor.diagnosis import ChecklistRow, Said, checklist_rows, said

# It looks at minutes: what is asked more often changes no more often.
_EVERY_SECONDS: Final = 2.0
# Of many cards a look takes long: then it comes later, so that it takes no more of a core than this.
_MOST_SHARE: Final = 0.005
_LATEST_SECONDS: Final = 10.0
# After a jump through a recording, what was said before has nothing to do with what is shown.
_JUMP_SECONDS: Final = 30.0


class Diagnoser:
    """Keeps what was said last, until the cards or enough time is another; puts it on the time line."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._said: Mapping[str, Said] = {}
        self.is_under_filled = False
        self.forget()

    def forget(self) -> None:
        """Begin anew, for another source."""
        # The time line of a recording was told as a whole when it was read in.
        self._chronicle = VerdictTimeline(self._feed.history if self._feed.is_live else None)
        self._due = float("-inf")
        self._end = float("-inf")
        self._states: tuple[tuple[str, str], ...] = ()

    def look(self) -> Mapping[str, Said]:
        """Return what is said of each card, by UUID; nothing before there is a reading."""
        shown, now = self._feed.shown, monotonic()
        if shown.end is None:
            return {}
        if not (self._feed.is_live or 0.0 <= shown.end - self._end <= _JUMP_SECONDS):
            self.forget()
        self._end = shown.end
        states = tuple((device.uuid, device.state) for device in shown.inventory.devices)
        if states != self._states or now >= self._due:
            self._states = states
            verdicts = self._chronicle.look(shown, shown.end)
            self.is_under_filled = any(verdict.kind is Kind.UNDER_FILLED for verdict in verdicts.values())
            self._said = {uuid: said(verdict) for uuid, verdict in verdicts.items()}
            wait = (monotonic() - now) / _MOST_SHARE
            self._due = now + min(max(wait, _EVERY_SECONDS), _LATEST_SECONDS)
        return self._said

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Return what stands of each card, by UUID, as of the last look."""
        return self._chronicle.verdicts

    def checklist(self, uuid: str) -> tuple[ChecklistRow, ...]:
        """Return what to optimise next, by what one card of those shown does."""
        shown = self._feed.shown
        checked, verdict = check(shown, uuid, shown.end), self.verdicts.get(uuid)
        return checklist_rows(checked if verdict is None else agreeing(checked, verdict))
