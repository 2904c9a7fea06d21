"""Parser of search texts: `rtx at least 24 GiB under 1,000 USD` is a name and two bounds, `power < 300` a third."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.errors import SpecError
from planner.numbers import AMOUNT, parse_number
from planner.units import GB, GIB

_MONEY: Final = "buy"
"""Column of an amount of money of no other kind; tables without it have one column of prices, `price`."""
_UNITS: Final[dict[str, tuple[str, float]]] = {
    "gib": ("memory", GIB),
    "gb": ("memory", GB),
    "tib": ("memory", 1024 * GIB),
    "tb": ("memory", 1000 * GB),
    "gb/s": ("bandwidth", GB),
    "tb/s": ("bandwidth", 1000 * GB),
    "tflops": ("bf16", 1e12),
    "pflops": ("bf16", 1e15),
    "w": ("power", 1),
    "watt": ("power", 1),
    "watts": ("power", 1),
    "kw": ("power", 1000),
    "$": (_MONEY, 1),
    "usd": (_MONEY, 1),
    "dollar": (_MONEY, 1),
    "dollars": (_MONEY, 1),
    "usd/h": ("rent", 1),
    "$/h": ("rent", 1),
}
"""Units that may follow a number: the column that they refer to, and their size in base units."""
_PRICE_NAMES: Final = {
    **{name: name for name in ("street", "used", "rent")},
    **{f"{name} price": name for name in ("street", "used")},
    **{"rented": "rent", "launch": "price", "launch price": "price", "price": _MONEY},
}
_RATE_NAMES: Final = {name: name for name in ("fp32", "bf16", "fp16", "fp8", "int8", "fp4")}
_NAMES: Final = {
    **_PRICE_NAMES,
    **_RATE_NAMES,
    **{name: name for name in ("memory", "bandwidth", "power", "year", "cards")},
    **{"vram": "memory", "tdp": "power", "gpus": "cards"},
}
"""Names of figures that may stand before a bound, and the column of each."""
_FILLERS: Final = frozenset(
    (
        *("a", "an", "and", "card", "cards", "for", "gpu", "gpus"),
        *("machine", "machines", "memory", "of", "system", "systems", "vram", "with"),
    )
)
_MORE: Final = "at least|from|since|over|above|more than|>=|>|≥"
_LESS: Final = "at most|up to|under|below|less than|within|until|<=|<|≤"
_PRICE_WORDS: Final = ("at most", "under", "below", "less than", "over", "above", "more than")
_AMOUNT: Final = r"(?P<dollar>\$\s*)?(?P<number>\d(?:[\d.,]*\d)?k?)"
_UNIT: Final = "|".join(map(re.escape, _UNITS))
_BOUND: Final = re.compile(
    rf"(?:\b(?P<name>{'|'.join(sorted(_NAMES, key=len, reverse=True))})\s*)?"
    rf"(?:(?P<more>{_MORE})|(?P<less>{_LESS}))\s*{_AMOUNT}"
    rf"(?:\s*(?P<unit>{_UNIT})(?![\w/]))?(?P<hourly>\s*(?:/\s*h|an hour|per hour)\b)?",
    re.IGNORECASE,
)
_SIZE: Final = re.compile(r"(?<![\w.])(?P<number>\d(?:[\d.,]*\d)?)\s*(?P<unit>gib|gb)(?![\w/])", re.IGNORECASE)
_COUNT: Final = re.compile(r"(?<![\w.,$])(?P<number>\d+)(?:\s*[-x×]\s*|\s+)(?:gpus?|cards?)\b", re.IGNORECASE)
"""A number of cards, such as `8-GPU` or `8 cards`."""
_FIRST_YEAR: Final = 1990
_LAST_YEAR: Final = 2099


@dataclass(frozen=True, slots=True)
class SearchBound:
    """A bound on the column `key`, in its unit; `words` is the bound's text, `rest` the search text without it."""

    key: str
    low: float | None
    high: float | None
    words: str
    rest: str


@dataclass(frozen=True, slots=True)
class ParsedSearch:
    """A parsed search: bounds, and words that the name must contain."""

    bounds: tuple[SearchBound, ...]
    words: str


def parse_search(text: str, units: Mapping[str, float]) -> ParsedSearch:
    """Parse a search text; `units` holds the columns that can be bounded, with the base units per unit of each.

    A size by itself, `24 GB`, is a memory size as sold. GB is 10⁹ bytes and GiB 2³⁰; sellers mean either, so `24 GB`
    matches the range between both. A number without a unit is in the unit of the figure that is named before it, as in
    `bandwidth > 1000`, or else after a word such as `under` a price in US dollars, or a year if it could be one.
    `8-GPU` is a number of cards, where there is such a column.
    """
    found = [
        (match, bound)
        for match in filter(_has_number, _BOUND.finditer(text))
        if (bound := _search_bound(match, text, units)) is not None
    ]
    rest = _without_matches(text, [match for match, _ in found])
    sizes = list(filter(_has_number, _SIZE.finditer(rest)))
    rest = _without_matches(rest, sizes)
    counts = list(_COUNT.finditer(rest)) if "cards" in units else []
    bounds = (
        *(bound for _, bound in found),
        *(_memory_bound_as_sold(match, text, units["memory"]) for match in sizes),
        *(_count_bound(match, text) for match in counts),
    )
    words = _without_matches(rest, counts).split()
    return ParsedSearch(bounds, " ".join(word for word in words if not bounds or word.lower() not in _FILLERS))


def _search_bound(match: re.Match[str], text: str, units: Mapping[str, float]) -> SearchBound | None:
    """Return the bound that a match states, or None if its column cannot be bounded."""
    key, scale = _column_and_scale(match, units)
    if key not in units:
        return None
    value = _matched_number(match) * scale / units[key]
    low, high = (value, None) if match["more"] else (None, value)
    words = f"{match[0].strip()} USD" if _is_bare_price(match) else match[0].strip()
    return SearchBound(key, low, high, words, _without_matches(text, [match]))


def _column_and_scale(match: re.Match[str], units: Mapping[str, float]) -> tuple[str, float]:
    """Return the column that a matched name or unit belongs to, empty if none, and the base units per unit."""
    name, unit = (match["name"] or "").lower(), (match["unit"] or ("$" if match["dollar"] else "")).lower()
    if match["hourly"]:
        return "rent", 1
    if unit:
        key, scale = _UNITS[unit]
        # A name before another figure's bound, as in `24 GiB memory under 500 USD`, belongs to what stands before it.
        key = {_MONEY: _PRICE_NAMES, "bf16": _RATE_NAMES}.get(key, {}).get(name, key)
    elif name:
        key = _NAMES[name]
        scale = units.get(key, 1)
    else:
        is_year = _FIRST_YEAR <= _matched_number(match) <= _LAST_YEAR
        key, scale = (_MONEY if _is_bare_price(match) else "year" if is_year else ""), 1
    return ("price" if key == _MONEY and _MONEY not in units else key), scale


def _is_bare_price(match: re.Match[str]) -> bool:
    """Return whether a match is a number without name and unit after a word that usually precedes a price."""
    if match["name"] or match["unit"] or match["dollar"] or match["hourly"]:
        return False
    return (match["more"] or match["less"]).lower() in _PRICE_WORDS


def _count_bound(match: re.Match[str], text: str) -> SearchBound:
    """Return the bound for an exact number of cards."""
    number = _matched_number(match)
    same = re.search(re.escape(match[0]), text)
    return SearchBound("cards", number, number, match[0], _without_matches(text, [same] if same else []))


def _memory_bound_as_sold(match: re.Match[str], text: str, unit: float) -> SearchBound:
    """Return the memory bound for a size as sold, such as 24 GB: from GB up to GiB."""
    number = _matched_number(match)
    low, high = number * _UNITS[match["unit"].lower()][1] / unit, number * GIB / unit
    same = re.search(re.escape(match[0]), text)
    return SearchBound("memory", low, high, match[0], _without_matches(text, [same] if same else []))


def _has_number(match: re.Match[str]) -> bool:
    """Return whether the digits of a match are a number: `1.2.3` is a word of a name."""
    try:
        _matched_number(match)
    except SpecError:
        return False
    return True


def _matched_number(match: re.Match[str]) -> float:
    return float(parse_number(match["number"], AMOUNT))


def _without_matches(text: str, matches: list[re.Match[str]]) -> str:
    """Return `text` without the matched parts."""
    for match in reversed(matches):
        text = f"{text[: match.start()]} {text[match.end() :]}"
    return " ".join(text.split())
