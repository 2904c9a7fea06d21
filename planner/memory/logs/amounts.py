"""Numbers as programs print them, turned into bytes with the interval that their digits leave open."""

from fractions import Fraction
from typing import Final, NamedTuple

from planner.units import GB, GIB, KB, KIB, MB, MIB, TIB

NUMBER: Final = r"(?<![\d.,])(-?\d[\d,]{0,18}(?:\.\d{1,12})?)"
"""A printed number, as a group of a regular expression: bounded, and tried only where a number begins, so that no line
of digits takes long."""
UNITS: Final = {
    "B": 1,
    "bytes": 1,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": TIB,
    "PiB": 1024 * TIB,
    "KB": KB,
    "MB": MB,
    "GB": GB,
}
BINARY: Final = {"KB": KIB, "MB": MIB, "GB": GIB}
"""Units of programs that print KB, MB or GB and divide by powers of 1,024."""


class Amount(NamedTuple):
    """Bytes, and the least and the most that would be printed the same."""

    bytes: int
    low: int
    high: int


def rounded(number: str, factor: int, decimals: int = 0) -> Amount:
    """Return `number` units of `factor` bytes that were rounded to their last digit.

    `decimals` are those that the program rounds to where it leaves out zeros at the end.
    """
    plain = number.replace(",", "")
    places = max(decimals, len(plain.partition(".")[2]))
    value, half = Fraction(plain) * factor, Fraction(factor, 2 * 10**places)
    return Amount(round(value), round(value - half), round(value + half))


def floored(number: str, factor: int, parts: int = 1) -> Amount:
    """Return `number` units of which the rest was cut off; a sum of `parts` such numbers lost a rest each."""
    value = int(number.replace(",", "")) * factor
    return Amount(value, value, value + parts * (factor - 1))


def exact(count: int) -> Amount:
    """Return bytes that were printed to the last one."""
    return Amount(count, count, count)
