"""Byte units and exact integer division. `planner.numbers` parses sizes, and `present` formats them for display."""

from typing import Final

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
TIB: Final = 2**40
KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
TB: Final = 10**12


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the exact quotient of two integers, rounded up."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is at least `value`."""
    return ceil_div(value, multiple) * multiple
