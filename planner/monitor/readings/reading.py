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
    NO_HELPER = "no-helper"


EXPLANATIONS: Final = {
    Cause.NOT_SUPPORTED: "not reported by this driver",
    Cause.NO_PERMISSION: "readable by administrators only",
    Cause.LOST: "the GPU no longer responds",
    Cause.ASLEEP: "the GPU is asleep",
    Cause.MISSING_SYMBOL: "not supported by this old driver",
    Cause.MIG: "not reported in MIG mode",
    Cause.HIDDEN: "hidden by the operating system or the container",
    Cause.NOT_YET: "needs a second reading",
    Cause.UNREADABLE: "reported by the driver in an unknown format",
    Cause.FAILED: "the driver returned an error",
    Cause.NO_ANSWER: "the driver does not respond",
    Cause.RELEASED: "disconnected from the driver",
    Cause.NO_HELPER: "needs a program that is not installed",
}
"""Displayed text for each cause."""


class Reading(NamedTuple):
    """A value in the unit of its metric, or None with the cause of its absence.

    `is_implausible` marks a value outside the plausible range, which is kept as the driver reported it.
    """

    value: float | None
    cause: Cause | None = None
    is_implausible: bool = False


JsonReading = float | str | list[float]
"""JSON form of a reading: a number, the name of a cause, or a list with one implausible number."""

_NUMBERS: Final = (float, int)
_MISSING_READINGS: Final = {cause.value: Reading(None, cause) for cause in Cause}


def missing(cause: Cause) -> Reading:
    """Return a reading without a value, for the given cause."""
    return _MISSING_READINGS[cause]


def reading_to_json(reading: Reading) -> JsonReading:
    """Return the JSON form of a reading, as used between processes and in recordings."""
    if reading.value is None:
        return str(reading.cause or Cause.NOT_SUPPORTED)
    return [reading.value] if reading.is_implausible else reading.value


def reading_from_json(json_value: JsonReading) -> Reading:
    """Parse the JSON form of a reading; the inverse of `reading_to_json`.

    Raises:
        ValueError: If the value is not the JSON form of a reading.
    """
    if is_number(json_value):
        return Reading(json_value)
    if isinstance(json_value, str) and json_value in _MISSING_READINGS:
        return _MISSING_READINGS[json_value]
    if isinstance(json_value, list) and len(json_value) == 1 and is_number(json_value[0]):
        return Reading(json_value[0], is_implausible=True)
    raise ValueError(f"{json_value!r} is not a reading")


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a JSON value is a number."""
    # A comparison of types is fastest: a day of readings has a hundred million values.
    return type(value) in _NUMBERS
