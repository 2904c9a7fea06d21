"""The parser of typed numbers, such as `128k`, `1,500`, `1,5`, `2 GiB` and `$1,200`, for window and command line.

A number is understood as people mean it or refused; nothing of it is ever left out. `NumberKind` says which suffixes
and units a field takes, and `number_kind` finds the kind of a declared field.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import inf
from types import UnionType
from typing import Annotated, Final, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from planner.errors import SpecError
from planner.units import GB, GIB, KB, KIB, MB, MIB, SECONDS_PER_DAY, TB, TIB

_DOUBLE_K: Final = r"(?i)(\d+)kk"
_LONGEST: Final = 60
_IN_FULL: Final = 1e15
_MINUS: Final = "\u2212"
_SPACES: Final = r"[\s_'\u2019\u02bc]+"
_NUMBER: Final = (
    r"(?ia)(?P<sign>[-+]?)\s*(?P<dollar>\$?)\s*(?P<digits>[\d.,\s_'\u2019\u02bc]*\d[.,]?)(?:e(?P<power>[-+]?\d{1,2}))?"
    r"\s*(?P<suffix>[a-z]+|%|\$|)\s*(?P<word>[a-z]*|\$)\s*(?P<period>/\s*[a-z]+|)"
)
_GROUPED: Final = r"[1-9]\d{0,2}([,. ])\d{3}(?:\1\d{3})*"
_TWO_NUMBERS: Final = r"(?i)(?!0x)[\d.,]+\s*[a-z]?\s*[x×*]\s*[\d.,]+\s*[a-z]?"
_LENGTH_NAME: Final = r"(?:^|_)(?:length|tokens)$|^n_u?batch$|^block_size$"
_DECIMAL: Final = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_BYTES: Final = {
    **{"": 1, "b": 1, "byte": 1, "bytes": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB},
    **{"kb": KB, "mb": MB, "gb": GB, "tb": TB, "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB},
}
_REQUESTS: Final = ("req", "request", "requests")
_PERIODS: Final = {
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("min", "minute"), 60),
    **dict.fromkeys(("h", "hour"), 3_600),
    **dict.fromkeys(("d", "day"), SECONDS_PER_DAY),
}
"""Seconds of the periods of a rate."""
_NO_PERIOD: Final[dict[str, int | Fraction]] = {"": 1}


class NumberKind(NamedTuple):
    """The numbers that a field takes: the factor of each suffix, and the words that may follow and change nothing.

    A rate also has the factor of each period that may stand after a slash, as in `4/s`. Fields for whole numbers refuse
    other numbers; sizes are rounded to whole bytes.
    """

    noun: str
    example: str
    factors: Mapping[str, int | Fraction]
    words: tuple[str, ...] = ()
    is_whole: bool = False
    is_rounded: bool = False
    is_grouped: bool = True
    periods: Mapping[str, int | Fraction] = _NO_PERIOD


def _periods_in(seconds: int) -> Mapping[str, int | Fraction]:
    """Return how many times each period of a rate is in `seconds`."""
    return _NO_PERIOD | {period: Fraction(seconds, each) for period, each in _PERIODS.items()}


COUNT: Final = NumberKind("whole number", "1,500 or 2k", _DECIMAL, is_whole=True)
"""A number of things, such as cards or sequences: k is 1,000."""
LENGTH: Final = NumberKind(
    "whole number", "4,096 or 128k", {"": 1, "k": KIB, "m": MIB}, ("token", "tokens"), is_whole=True
)
"""A length in tokens: k is 1,024, as in the names of models (128k is 131,072)."""
AMOUNT: Final = NumberKind("number", "1,500 or 1.5", _DECIMAL)
"""An amount of work, such as the tokens or samples of a run: k is 1,000 and M is 1,000,000."""
MONEY: Final = NumberKind("price in US dollars", "1,200 or 0.35", _DECIMAL, ("$", "usd"))
"""An amount of US dollars."""
WATTS: Final = NumberKind("number of watts", "450 or 1.5 kW", {"": 1, "w": 1, "kw": 1000, "k": 1000}, ("watts",))
"""A power in watts."""
HOURS: Final = NumberKind("number of hours", "24 or 1.5", {"": 1, "h": 1}, ("hours",))
"""A duration in hours."""
YEARS: Final = NumberKind(
    "number of years",
    "5 or 18 months",
    {**dict.fromkeys(("", "y", "year", "years"), 1), **dict.fromkeys(("month", "months"), Fraction(1, 12))},
)
"""A time in years."""
PERCENT: Final = NumberKind("percentage", "50 or 12.5", {"": 1, "%": 1})
"""A share as it is displayed, in percent."""
RATE: Final = NumberKind("rate", "4/s, 240/min or 10000/day", _DECIMAL, _REQUESTS, periods=_periods_in(1))
"""Requests per second."""
DAILY_RATE: Final = NumberKind(
    "number of requests", "10,000 or 4/s", _DECIMAL, _REQUESTS, periods=_periods_in(SECONDS_PER_DAY)
)
"""Requests per day."""
FRACTION: Final = NumberKind("number", "0.5 or 50 %", {"": 1, "%": Fraction(1, 100)})
"""A share of 1."""
YEAR: Final = NumberKind("year", "2024", {"": 1}, is_whole=True, is_grouped=False)
"""A year."""
BYTES: Final = NumberKind("size", "24 GiB, 80 GB or 512 MiB", _BYTES, is_rounded=True)
"""A memory size in bytes: GiB is 2³⁰ and GB is 10⁹, always; g alone is GiB, as for `docker` and `free`."""
SIZE: Final = NumberKind("size", "2 GiB or 512 MiB", {**_BYTES, "": GIB}, is_rounded=True)
"""A memory size in bytes, where a number without a unit is in GiB."""
GIBIBYTES: Final = NumberKind(
    "size", "24 or 80 GB", {**{unit: Fraction(size, GIB) for unit, size in _BYTES.items()}, "": 1}
)
"""A memory size in GiB."""
GIGABYTES: Final = NumberKind(
    "size", "500 or 2 TB", {**{unit: Fraction(size, GB) for unit, size in _BYTES.items()}, "": 1, "g": 1, "t": 1000}
)
"""An amount of data in GB, where g and t are GB and TB."""

_KINDS_OF_UNITS: Final[Mapping[str, NumberKind]] = {
    "bytes": BYTES,
    "usd": MONEY,
    "gb": GIGABYTES,
    "watts": WATTS,
    "hours": HOURS,
    "years": YEARS,
    "fraction": FRACTION,
    "rate": FRACTION,
    "share": FRACTION,
    "drift": FRACTION,
    "utilization": FRACTION,
    "requests_per_second": RATE,
    "requests_per_day": DAILY_RATE,
}
"""Kind of a field by its name or the unit in it, such as `usd` in `card_price_usd`."""


def number_kind(name: str, annotation: object) -> NumberKind | None:
    """Return the kind of the numbers in a declared field, by its type and the unit in its name; None for other types.

    Names such as `usd_per_gpu_hour` and `rack_usd_per_server` have their unit before `per`.
    """
    types = set(_types_in(annotation))
    if bool in types or not types & {int, float}:
        return None
    name = name.rpartition(".")[2]
    if re.search(_LENGTH_NAME, name):
        return LENGTH
    unit = name if name in _KINDS_OF_UNITS else re.sub(r"_per_.*", "", name).rpartition("_")[2]
    return _KINDS_OF_UNITS.get(unit, COUNT if int in types else AMOUNT)


def kind_at(model: type[BaseModel], path: str) -> NumberKind | None:
    """Return the kind of the numbers in the field at `path` of `model`, such as `buy.card_price_usd`, or None."""
    name, _, inner = path.partition(".")
    declared = model.model_fields.get(name)
    if declared is None:
        return None
    if not inner:
        return number_kind(name, declared.annotation)
    parts = [part for part in _types_in(declared.annotation) if isinstance(part, type) and issubclass(part, BaseModel)]
    return next((kind for part in parts if (kind := kind_at(part, inner)) is not None), None)


def parse_number(text: str, kind: NumberKind, least: float = -inf, most: float = inf) -> int | float:
    """Return the number that `text` states, in the unit of the field; a whole one is an `int`.

    Raises:
        SpecError: If `text` is no number, is ambiguous, has a suffix that `kind` lacks, or lies outside the bounds.
    """
    hint = f"Type a {kind.noun} {_wanted(kind, least, most)}."
    if not text.strip():
        raise SpecError("number", "it is empty", hint)
    number = _exact_number(text, kind, hint)
    number = Fraction(round(number)) if kind.is_rounded else number
    if kind.is_whole and number.denominator != 1:
        raise SpecError("number", f"{_shown(text)} is not a whole number", hint)
    if not least <= number <= most and not least <= float(number) <= most:
        raise SpecError("number", f"{_shown(text)} is too {'small' if number < least else 'large'}", hint)
    return int(number) if number.denominator == 1 else float(number)


def number_text(number: float, kind: NumberKind) -> str:
    """Return a number as it can be typed: a whole one in full, another with at most ten significant digits."""
    rounded = float(f"{number:.10g}")
    text = f"{int(rounded):,}" if rounded == int(rounded) and abs(rounded) < _IN_FULL else f"{rounded:,.10g}"
    return text if kind.is_grouped else text.replace(",", "")


def _wanted(kind: NumberKind, least: float, most: float) -> str:
    """Return the bounds of a field in words, or an example if it has none or they are in bytes."""
    if least > -inf and most < inf and kind.factors[""] == 1 and kind not in (BYTES, RATE, DAILY_RATE):
        return f"from {number_text(least, kind)} to {number_text(most, kind)}"
    return f"such as {kind.example}"


def _exact_number(text: str, kind: NumberKind, hint: str) -> Fraction:
    plain = _with_ascii_digits(text)
    if re.fullmatch(_TWO_NUMBERS, plain):
        raise SpecError(
            "number", f"{_shown(text)} is two numbers", "Type one of them here, and the other where it belongs."
        )
    match = re.fullmatch(_NUMBER, plain) if len(plain) <= _LONGEST else None
    groups = match.group("suffix", "word", "period") if match else ("", "", "")
    suffix, word, period = [group.lower() for group in groups]
    if suffix in kind.words and not word:
        suffix, word = "", suffix
    marks = (match["dollar"], word) if match else ()
    digits = None
    times = kind.periods.get(period.strip("/ "), 0)
    if match and times and suffix in kind.factors and all(mark in ("", *kind.words) for mark in marks):
        digits = _plain_digits(re.sub(_SPACES, " ", match["digits"]), kind, text)
    if match is None or digits is None:
        doubled = re.fullmatch(_DOUBLE_K, plain)
        hint = f"Write {doubled[1]}M for millions." if doubled and "m" in kind.factors else hint
        raise SpecError("number", f"{_shown(text)} is not a {kind.noun}", hint)
    number = Fraction(digits) * Fraction(10) ** int(match["power"] or 0) * kind.factors[suffix] * times
    return -number if match["sign"] == "-" else number


def _with_ascii_digits(text: str) -> str:
    """Return `text` with ASCII digits and signs, where digits of other scripts and full-width characters stand."""
    return "".join(
        unicodedata.normalize("NFKC", sign) if "\uff01" <= sign <= "\uff5e" else str(unicodedata.decimal(sign, sign))
        for sign in " ".join(text.split()).replace(_MINUS, "-")
    )


def _plain_digits(digits: str, kind: NumberKind, text: str) -> str | None:
    """Return `digits` without separators of thousands and with a point before the decimals, None if they are unclear.

    The last point or comma is before the decimals, unless it occurs twice or is the comma of `1,500`.
    """
    place = max(digits.rfind("."), digits.rfind(","))
    mark = digits[place] if place >= 0 else ""
    is_grouped = re.fullmatch(_GROUPED, digits) is not None
    if kind.is_whole and is_grouped and mark == "." and digits.count(mark) == 1:
        meant = digits.replace(".", "")
        reason = f"{_shown(text)} may be {int(meant):,} or {float(digits):g}, and only the first is a whole number"
        raise SpecError("number", reason, f"Type {meant}.")
    if not mark or digits.count(mark) > 1 or (is_grouped and mark == ","):
        whole, decimals = digits, ""
    else:
        whole, decimals = digits[:place], digits[place + 1 :]
    is_clear = whole.isdigit() or (whole == "" and decimals) or (kind.is_grouped and re.fullmatch(_GROUPED, whole))
    return f"{re.sub('[,. ]', '', whole)}.{decimals}" if is_clear and (decimals.isdigit() or not decimals) else None


def _shown(text: str) -> str:
    shown = text.strip()
    return repr(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…")


def _types_in(annotation: object) -> Iterator[object]:
    """Yield the members of a union of types; other types yield themselves."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _types_in(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _types_in(member)
    else:
        yield annotation
