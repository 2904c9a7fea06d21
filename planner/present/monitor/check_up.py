"""The checks of the doctor as text."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from planner.monitor.doctor import Check
from planner.present import format as fmt

_MARKS: Final = {"works": "✓", "partly": "!", "fails": "✗", "note": "·"}


def check_lines(checks: Iterable[Check]) -> str:
    """Return a line a check, and beneath what to do where something is to be done; what is alike is told once."""
    alike = (list(group) for _, group in groupby(checks, key=lambda check: check[1:]))
    return "\n".join(map(_line, alike))


def _line(alike: list[Check]) -> str:
    first, *others = alike
    more = f" and {fmt.integer(len(others))} more like it" if others else ""
    advice = f"\n    {first.advice}" if first.advice else ""
    return f"{_MARKS[first.outcome]} {first.subject}{more}: {first.found}{advice}"
