"""Verdicts that stay while what they say stays."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.look import SECONDS
from planner.monitor.diagnosis.verdict import Kind, Verdict
from planner.monitor.past import Past

# A verdict at the border of a threshold would change with each look.
_LOOKS: Final = 2
# What says nothing yet gives way at once, and what the driver itself tells is beyond doubt.
_NOTHING_YET: Final = frozenset({Kind.TOO_EARLY, Kind.UNKNOWN})
_TOLD: Final = frozenset({Kind.LOST, Kind.ASLEEP})
# The first reading of the minutes that are looked at comes up to an interval after they begin.
_MOST_OF_THE_WINDOW: Final = 0.9


class Tracker:
    """Keeps the verdicts of all cards from look to look.

    A new kind takes the place of the old one when it was found twice on end, or at once where that leaves no doubt;
    `since` is when the kind was found first.
    """

    def __init__(self) -> None:
        self._standing: dict[str, Verdict] = {}
        self._doubted: dict[str, tuple[Kind, int]] = {}

    def note(self, past: Past, at: float | None = None) -> Mapping[str, Verdict]:
        """Return what stands at a time, by default the last reading, for each card of the inventory."""
        found = diagnose_all(past, at)
        self._standing = {uuid: self._settle(uuid, verdict) for uuid, verdict in found.items()}
        return self._standing

    def _settle(self, uuid: str, verdict: Verdict) -> Verdict:
        standing = self._standing.get(uuid)
        if standing is None or standing.at > verdict.at:
            return verdict
        if standing.kind is verdict.kind:
            self._doubted.pop(uuid, None)
            return replace(verdict, since=standing.since)
        if standing.kind in _NOTHING_YET or verdict.kind in _TOLD:
            self._doubted.pop(uuid, None)
            return _begun_after(verdict, standing)
        kind, looks = self._doubted.get(uuid, (verdict.kind, 0))
        looks = looks + 1 if kind is verdict.kind else 1
        if looks < _LOOKS:
            self._doubted[uuid] = verdict.kind, looks
            return standing
        del self._doubted[uuid]
        return _begun_after(verdict, standing)


def _begun_after(verdict: Verdict, before: Verdict) -> Verdict:
    """Return a verdict that begins no earlier than another kind was found last.

    Where its work began within the minutes that are looked at, that time is known better.
    """
    is_known = verdict.at - verdict.since < _MOST_OF_THE_WINDOW * SECONDS
    return verdict if is_known else replace(verdict, since=max(verdict.since, before.at))
