"""Factors between units, and exact integer division. `planner.numbers` parses sizes, and `present` formats them."""

from typing import Final

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
TIB: Final = 2**40
KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
TB: Final = 10**12
SECONDS_PER_HOUR: Final = 3_600
SECONDS_PER_DAY: Final = 86_400
HOURS_PER_DAY: Final = 24
MONTHS_PER_YEAR: Final = 12
WATTS_PER_KW: Final = 1_000
JOULES_PER_KWH: Final = 3.6e6
PER_CENT: Final = 100
MILLI: Final = 10**3
MICRO: Final = 10**6
NANO: Final = 10**9
"""Hundredths, thousandths, millionths and billionths in one: a value in such parts is divided by them."""


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the exact quotient of two integers, rounded up."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is at least `value`."""
    return ceil_div(value, multiple) * multiple
