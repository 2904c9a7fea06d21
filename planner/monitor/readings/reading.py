"""One value read from the machine, or why there is none."""

from enum import StrEnum
from typing import Final, NamedTuple, TypeGuard


class Cause(StrEnum):
    """Why a value is not known; the values are names in files and in JSON."""

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
    Cause.NOT_SUPPORTED: "this card or driver does not tell it",
    Cause.NO_PERMISSION: "only an administrator may read it",
    Cause.LOST: "the card does not answer any more",
    Cause.ASLEEP: "the card sleeps and was not woken",
    Cause.MISSING_SYMBOL: "this driver is too old to tell it",
    Cause.MIG: "a card in MIG mode does not tell it",
    Cause.HIDDEN: "the operating system or the container hides it",
    Cause.NOT_YET: "it needs a second look",
    Cause.UNREADABLE: "the driver tells it in a form that cannot be read",
    Cause.FAILED: "the driver failed to answer",
    Cause.NO_ANSWER: "the driver does not answer",
    Cause.RELEASED: "the driver was let go",
}
"""The causes as people read them."""


class Reading(NamedTuple):
    """A value in its metric's unit, or None and the cause.

    `is_implausible` marks a value that cannot be true; it is kept as the driver told it.
    """

    value: float | None
    cause: Cause | None = None
    is_implausible: bool = False


Plain = float | str | list[float]
"""A reading in JSON: a number, the cause's name, or a list of one number that is implausible."""

_NUMBERS: Final = (float, int)
_CAUSES: Final = {cause.value: Reading(None, cause) for cause in Cause}


def missing(cause: Cause) -> Reading:
    """Return a reading without a value."""
    return _CAUSES[cause]


def to_plain(reading: Reading) -> Plain:
    """Return `reading` as it is written between processes and into recordings."""
    if reading.value is None:
        return str(reading.cause or Cause.NOT_SUPPORTED)
    return [reading.value] if reading.is_implausible else reading.value


def from_plain(plain: Plain) -> Reading:
    """Return the reading that `to_plain` wrote.

    Raises:
        ValueError: If it is none.
    """
    if is_number(plain):
        return Reading(plain)
    if isinstance(plain, str) and plain in _CAUSES:
        return _CAUSES[plain]
    if isinstance(plain, list) and len(plain) == 1 and is_number(plain[0]):
        return Reading(plain[0], is_implausible=True)
    raise ValueError(f"{plain!r} is not a reading")


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value from JSON is a number."""
    # By its type alone: JSON knows no others, and a day of cards has a hundred million.
    return type(value) in _NUMBERS
