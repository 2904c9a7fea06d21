"""The checks of the doctor as text."""

from collections.abc import Iterable
from typing import Final

from planner.monitor.doctor import Check

_MARKS: Final = {"works": "✓", "partly": "!", "fails": "✗", "note": "·"}


def check_lines(checks: Iterable[Check]) -> str:
    """Return a line a check, and beneath what to do where something is to be done."""
    return "\n".join(map(_check, checks))


def _check(check: Check) -> str:
    advice = f"\n    {check.advice}" if check.advice else ""
    return f"{_MARKS[check.outcome]} {check.subject}: {check.found}{advice}"
