"""A single reading: a value, or the cause of its absence."""

from enum import StrEnum
from typing import Final, NamedTuple, TypeGuard


class Cause(StrEnum):
    """Cause of a missing value; the values are names in files and in JSON."""

    NOT_SUPPORTED = "not-supported"
    NO_PERMISSION = "no-permission"
    LOST = "lost"
    ASLEEP = "asleep"
    MISSING_SYMBOL = "missing-symbol"
    MIG = "mig"
    HIDDEN = "hidden"
    NOT_YET = "not-yet"
    UNREADABLE = "unreadable"
    FAILED = "failed"
    NO_ANSWER = "no-answer"
    RELEASED = "released"


EXPLANATIONS: Final = {
    Cause.NOT_SUPPORTED: "not reported by this GPU or driver",
    Cause.NO_PERMISSION: "readable by administrators only",
    Cause.LOST: "the card no longer responds",
    Cause.ASLEEP: "the card is asleep",
    Cause.MISSING_SYMBOL: "not supported by this old driver",
    Cause.MIG: "not reported in MIG mode",
    Cause.HIDDEN: "hidden by the operating system or the container",
    Cause.NOT_YET: "needs a second reading",
    Cause.UNREADABLE: "reported by the driver in an unknown format",
    Cause.FAILED: "the driver returned an error",
    Cause.NO_ANSWER: "the driver does not respond",
    Cause.RELEASED: "the driver was released",
}
"""Causes as they are shown to people."""


class Reading(NamedTuple):
    """A value in its metric's unit, or None and the cause.

    `is_implausible` marks a value outside the plausible range; it is kept as the driver reported it.
    """

    value: float | None
    cause: Cause | None = None
    is_implausible: bool = False


JsonReading = float | str | list[float]
"""JSON form of a reading: a number, the cause's name, or a list of one implausible number."""

_NUMBERS: Final = (float, int)
_CAUSES: Final = {cause.value: Reading(None, cause) for cause in Cause}


def missing(cause: Cause) -> Reading:
    """Return a reading without a value."""
    return _CAUSES[cause]


def reading_to_json(reading: Reading) -> JsonReading:
    """Return the JSON form of a reading, as used between processes and in recordings."""
    if reading.value is None:
        return str(reading.cause or Cause.NOT_SUPPORTED)
    return [reading.value] if reading.is_implausible else reading.value


def reading_from_json(plain: JsonReading) -> Reading:
    """Return the reading that `reading_to_json` wrote.

    Raises:
        ValueError: If the value has none of its forms.
    """
    if is_number(plain):
        return Reading(plain)
    if isinstance(plain, str) and plain in _CAUSES:
        return _CAUSES[plain]
    if isinstance(plain, list) and len(plain) == 1 and is_number(plain[0]):
        return Reading(plain[0], is_implausible=True)
    raise ValueError(f"{plain!r} is not a reading")


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a JSON value is a number."""
    # By its type alone: JSON knows no others, and a day of cards has a hundred million.
    return type(value) in _NUMBERS
