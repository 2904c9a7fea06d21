"""Texts of records that people write themselves: one line of them, and days of the calendar."""

import re
from datetime import date
from typing import Annotated, Final
from unicodedata import category

from pydantic import AfterValidator

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DAY_OR_LESS: Final = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?", re.ASCII)
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode's controls, marks of format (some turn a line around), halves of characters, and ends of lines."""
_FIRST: Final = "-01-01"


def _line(text: str) -> str:
    """Refuse what a terminal would act on, and lines that say nothing."""
    if not text.strip():
        raise ValueError(f"{text!r} says nothing")
    unseen = next((each for each in text if category(each) in _UNSEEN), "") if not text.isprintable() else ""
    if unseen:
        raise ValueError(f"holds {unseen!a}, which is no part of a line")
    return text


def _day(text: str) -> str:
    if not _DAY.fullmatch(text) or not _is_day(text):
        raise ValueError(f"{text!r} is no day of the calendar, such as 2026-11-22")
    return text


def _day_or_less(text: str) -> str:
    if not _DAY_OR_LESS.fullmatch(text) or not _is_day(f"{text}{_FIRST[len(text) - 4 :]}"):
        raise ValueError(f"{text!r} is no year, month or day of the calendar, such as 2026, 2026-11 or 2026-11-22")
    return text


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


Line = Annotated[str, AfterValidator(_line)]
"""A text that is not empty and stays on its line."""
Day = Annotated[str, AfterValidator(_day)]
"""A day of the calendar, year first."""
DayOrLess = Annotated[str, AfterValidator(_day_or_less)]
"""A day, a month or a year."""
