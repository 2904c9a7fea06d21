"""Byte units, the parser of sizes such as `24 GiB`, and exact integer division. `present` formats bytes for display."""

import re
from fractions import Fraction
from typing import Final

from planner.errors import SpecError

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
TIB: Final = 2**40
KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
TB: Final = 10**12

_FACTORS: Final = {
    "b": 1,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": TIB,
    "kb": KB,
    "mb": MB,
    "gb": GB,
    "tb": TB,
}
# Thirty digits are far beyond any memory, and short enough for Python to turn into a number at once.
_QUANTITY: Final = re.compile(r"(?P<number>\d[\d,]{0,29}(?:\.\d{1,30})?)\s*(?P<unit>[a-z]+)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Return the bytes that a size states, such as `"24 GiB"`, `"80GB"`, `"512 MiB"` or `"1024"` (bytes).

    GiB is 2³⁰ and GB is 10⁹, always.

    Raises:
        SpecError: If `text` is not a number with one of the units B, KiB, MiB, GiB, TiB, KB, MB, GB, TB.
    """
    match = _QUANTITY.fullmatch(text.strip())
    factor = _FACTORS.get((match["unit"] or "b").lower()) if match else None
    if match is None or factor is None:
        raise SpecError("bytes", f"{text[:60]!r} is not a size", hint="Write a size such as 24 GiB, 80 GB or 512 MiB.")
    return round(Fraction(match["number"].replace(",", "")) * factor)


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the exact quotient of two integers, rounded up."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is at least `value`."""
    return ceil_div(value, multiple) * multiple
