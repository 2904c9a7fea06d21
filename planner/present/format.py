"""Number, size, date and text formatting, the same in every view and locale.

Views show three significant figures, tooltips and exports the exact value. Units follow a thin space, ranges have an
en dash, negative numbers a true minus sign. Unknown values are spelled out.
"""

import re
from typing import TYPE_CHECKING, Final

from planner.units import GIB, KIB, MIB

if TYPE_CHECKING:
    from planner.memory.result import Symbol

THIN: Final = "\u2009"
UNKNOWN: Final = "unknown"
NOT_PUBLISHED: Final = "not published"
NOT_SUPPORTED: Final = "not supported"
NO_DATE: Final = "no date"
USD: Final = "USD"
NO_FIGURES: Final = frozenset((UNKNOWN, NOT_PUBLISHED, NOT_SUPPORTED))
"""Texts that stand for a missing figure; the window shows them in a paler color."""
_MINUS: Final = "\u2212"
_DATE_HYPHEN: Final = re.compile(r"(?<=\d{4})-(?=\d\d-\d\d\b)|(?<=\d{4}-\d\d)-(?=\d\d\b)")
_DASH: Final = "\u2013"
_MOST_FIGURES: Final = 6
_LEAST_SHARE: Final = 0.0001
_CENTS_BELOW: Final = 100
_HALF_A_CENT: Final = 0.005
_TIMES: Final = (
    ("days", 86_400.0, 172_800.0),
    ("h", 3_600.0, 5_400.0),
    ("min", 60.0, 120.0),
    ("s", 1.0, 0.9995),
    ("ms", 1e-3, 0.9995e-3),
)
"""Units of time: the name, the seconds in one unit, and the seconds from which it is used."""
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SHORT_MONTH: Final = 3  # letters of its name


def integer(value: int) -> str:
    """Return `value` with thousands separators: `8,030,261,248`."""
    return f"{value:,}".replace("-", _MINUS)


def significant(value: float, digits: int = 3) -> str:
    """Return `value` with `digits` significant figures, whole numbers never shortened: `0.531`, `17.4`, `1,008`."""
    if value == 0:
        return "0"
    # The exponent is read after rounding, so that 9.996 becomes 10.0 and not 10.00.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:,.{max(0, digits - 1 - exponent)}f}".replace("-", _MINUS)


def rounded(value: float) -> str:
    """Return an uncertain number in three significant figures, a large one with zeros: `0.531`, `6,610`, `47,800`."""
    return significant(float(f"{value:.3g}"))


def plain(value: float, digits: int = 3) -> str:
    """Return `value` with `digits` significant figures and without trailing zeros: `24`, `1.5`, `82.6`."""
    text = significant(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float | None, unit: str, unknown: str = UNKNOWN) -> str:
    """Return `value` with its unit, such as `450 W`, or `unknown`."""
    return unknown if value is None else f"{plain(value)}{THIN}{unit}"


def size(value: int | None, unknown: str = UNKNOWN) -> str:
    """Return a size in bytes as GiB, or below one GiB as MiB, and so on: `17.4 GiB`, `523 MiB`."""
    if value is None:
        return unknown
    unit, factor = _binary_unit(value)
    return f"{significant(value / factor)}{THIN}{unit}"


def exact_bytes(value: int | None, unknown: str = UNKNOWN) -> str:
    """Return the exact number of bytes: `18,683,123,456 B`."""
    return unknown if value is None else f"{integer(value)}{THIN}B"


def gib(value: int) -> str:
    """Return a size in bytes as GiB with two decimals and without the unit, for aligned columns."""
    text = f"{value / GIB:,.2f}"
    return "< 0.01" if value > 0 and text == "0.00" else text.replace("-", _MINUS)


def table_unit(total: int) -> str:
    """Return the unit for a column of sizes that add up to `total` bytes: GiB, or MiB below one GiB."""
    return "GiB" if total >= GIB else "MiB"


def table_size(value: int, total: int) -> str:
    """Return a size in bytes in the `table_unit` of `total`, without the unit, for aligned columns."""
    if table_unit(total) == "GiB":
        return gib(value)
    text = f"{value / MIB:,.1f}"
    return "< 0.1" if value > 0 and text == "0.0" else text


def size_range(low: int, high: int) -> str:
    """Return a range of sizes in the unit of the larger: `16.9 – 18.3 GiB`; one size if they round to the same."""
    unit, factor = _binary_unit(high)
    first, last = significant(low / factor), significant(high / factor)
    ends = last if first == last else f"{first} {_DASH} {last}"
    return f"{ends}{THIN}{unit}"


def sizes_apart(first: int, second: int) -> tuple[str, str]:
    """Return two sizes in one unit, with as many figures as tell them apart: `16.36 GiB` and `16.42 GiB`."""
    unit, factor = _binary_unit(max(first, second))
    larger, apart, digits = max(first, second) / factor, abs(first - second) / factor, 3
    while digits < _MOST_FIGURES and apart < 10 ** -_decimals(larger, digits):
        digits += 1
    here, there = (f"{significant(value / factor, digits)}{THIN}{unit}" for value in (first, second))
    return here, there


def _decimals(value: float, digits: int) -> int:
    """Return the number of decimals of `value` with `digits` significant figures."""
    return len(significant(value, digits).partition(".")[2])


def size_with_range(value: int, low: int, high: int) -> str:
    """Return a size with its range, `17.4 GiB (16.9 – 18.3)`, or without one if it is empty."""
    if low == high:
        return size(value)
    ends = size_range(low, high)
    number, _, unit = ends.rpartition(THIN)
    return f"{size(value)} ({number if size(value).endswith(f'{THIN}{unit}') else ends})"


def size_difference(value: int) -> str:
    """Return a difference of sizes with its sign: `+1.20 GiB`, `−3.10 GiB`."""
    return f"+{size(value)}" if value > 0 else size(value)


def parameters(value: int | None, unknown: str = UNKNOWN) -> str:
    """Return a parameter count in billions, below one in millions, and so on: `8.03 B`, `110 M`."""
    if value is None:
        return unknown
    for letter, factor, least in (("B", 1e9, 0.9995e9), ("M", 1e6, 1e5)):
        if value >= least:
            return f"{significant(value / factor)}{THIN}{letter}"
    return integer(value)


def rate(ops_per_s: float | None, dtype: str = "", unknown: str = NOT_PUBLISHED) -> str:
    """Return an arithmetic rate: `165 TFLOPS`, for int8 `661 TOPS`."""
    return quantity(None if ops_per_s is None else ops_per_s / 1e12, rate_unit(dtype), unknown)


def rate_unit(dtype: str) -> str:
    """Return the unit for arithmetic rates of `dtype`."""
    return "TOPS" if dtype.startswith("int") else "TFLOPS"


def operations(count: int) -> str:
    """Return a number of floating-point operations: `3.42 TFLOP`, `512 FLOP`."""
    for letter, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if count >= factor:
            return f"{significant(count / factor)}{THIN}{letter}FLOP"
    return f"{integer(count)}{THIN}FLOP"


def bandwidth(bytes_per_s: float | None, unknown: str = NOT_PUBLISHED) -> str:
    """Return a bandwidth in GB/s: `1,008 GB/s`."""
    return quantity(None if bytes_per_s is None else bytes_per_s / 1e9, "GB/s", unknown)


def power(watts: float | None, unknown: str = NOT_PUBLISHED) -> str:
    """Return a power in watts: `450 W`."""
    return quantity(watts, "W", unknown)


def money(usd: float | None, unknown: str = NOT_PUBLISHED) -> str:
    """Return an amount in US dollars: `$1,599`, below a hundred with cents, `$2.39`."""
    if usd is None:
        return unknown
    sign = _MINUS if usd <= -_HALF_A_CENT else ""
    return f"{sign}${abs(usd):,.2f}" if abs(usd) < _CENTS_BELOW else f"{sign}${abs(usd):,.0f}"


def rounded_money(usd: float) -> str:
    """Return an uncertain amount in US dollars, in three significant figures: `$106,000`, `$2,790`, `$31.40`."""
    return money(float(f"{usd:.3g}"))


def unbroken(text: str) -> str:
    """Return `text` with no line break between a number and its unit, in a date, nor between the ends of a range."""
    unbroken_units = _DATE_HYPHEN.sub("\N{NON-BREAKING HYPHEN}", text.replace(THIN, "\N{NARROW NO-BREAK SPACE}"))
    return unbroken_units.replace(" – ", "\N{NO-BREAK SPACE}–\N{NO-BREAK SPACE}")


def percent(fraction: float) -> str:
    """Return a fraction as a whole percentage, `30 %`; a positive one that rounds to zero is `< 1 %`."""
    number = "< 1" if 0 < fraction < 0.005 else f"{fraction * 100:.0f}".replace("-", _MINUS)
    return f"{number}{THIN}%"


def precise_percent(fraction: float) -> str:
    """Return a fraction as a percentage with two significant figures, for errors: `0.31 %`, `12 %`, `< 0.01 %`."""
    if 0 < fraction < _LEAST_SHARE:
        return f"< {_LEAST_SHARE * 100}{THIN}%"
    return f"{significant(fraction * 100, 2)}{THIN}%"


def signed_percent(fraction: float) -> str:
    """Return a signed relative difference: `+0.31 %`, `−12 %`; a negligible one has no sign."""
    sign = "" if abs(fraction) < _LEAST_SHARE else "+" if fraction > 0 else _MINUS
    return f"{sign}{precise_percent(abs(fraction))}"


def duration(seconds: float | None) -> str:
    """Return a duration in a suitable unit: `12.3 ms`, `1.24 s`, `18.5 min`, `3.20 h`, `12.5 days`."""
    if seconds is None:
        return UNKNOWN
    unit, factor = _time_unit(seconds)
    return f"{significant(seconds / factor)}{THIN}{unit}"


def duration_with_range(seconds: float, low: float | None, high: float | None) -> str:
    """Return a duration with its range in the same unit, `1.24 s (1.08 – 1.42)`, or without one if it is empty."""
    unit, factor = _time_unit(seconds)
    ends = [significant((seconds if end is None else end) / factor) for end in (low, high)]
    middle = significant(seconds / factor)
    text = "" if ends == [middle, middle] else f" ({ends[0]} {_DASH} {ends[1]})"
    return f"{middle}{THIN}{unit}{text}"


def number_range(value: float, low: float | None, high: float | None) -> str:
    """Return an uncertain number with its range, `6,610 (5,800 – 7,500)`, or without one if it is empty."""
    ends = [rounded(value if end is None else end) for end in (low, high)]
    middle = rounded(value)
    return middle if ends == [middle, middle] else f"{middle} ({ends[0]} {_DASH} {ends[1]})"


def date(iso: str | None, unknown: str = UNKNOWN) -> str:
    """Return an ISO day, month or year in long form: `12 October 2022`, `October 2022`, `2022`."""
    if iso is None:
        return unknown
    year, *rest = iso.split("-")
    words = [str(int(day)) for day in rest[1:]] + [_MONTHS[int(month) - 1] for month in rest[:1]]
    return " ".join([*words, year])


def short_date(iso: str | None, unknown: str = UNKNOWN) -> str:
    """Return the month and year, or the year, of an ISO date in short form: `Oct 2022`, `2022`."""
    if iso is None:
        return unknown
    year, *rest = iso.split("-")
    return " ".join([*(_MONTHS[int(month) - 1][:_SHORT_MONTH] for month in rest[:1]), year])


def yes_no(value: bool | None) -> str:
    """Return `yes` or `no`, or `unknown` for None."""
    return UNKNOWN if value is None else "yes" if value else "no"


def count_of(number: int, name: str) -> str:
    """Return a number of equal items: `2 × RTX 4090`."""
    return f"{integer(number)} × {name}"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if needed: `1 GPU`, `2 GPUs`."""
    return f"{integer(number)} {noun}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """Return `text` as a sentence, with a capital letter and a full stop; empty if it is empty."""
    return f"{capitalized(text)}{'' if text.endswith(('.', '…')) else '.'}" if text else ""


def capitalized(text: str) -> str:
    """Return `text` with a capital first letter and the rest unchanged; `vLLM` and `localhost:9090` stay as spelt."""
    name = text.partition(" ")[0].rstrip(".,:;")
    return text if "." in name or ":" in name or name[1:] != name[1:].lower() else f"{text[:1].upper()}{text[1:]}"


def listing(items: tuple[str, ...], last: str = "and") -> str:
    """Return items as an enumeration: `a, b and c`."""
    return f" {last} ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def symbol_value(value: float | str) -> str:
    """Return a symbol's value as text for a formula."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return integer(value)
    return f"{value:,.6g}"


def substitute_symbols(formula: str, symbols: "tuple[Symbol, ...]") -> str:
    """Return `formula` with each symbol replaced by its value: `2 × L × h` becomes `2 × 32 × 4,096`.

    A symbol right after a number or a bracket (`16h`) is a factor, and gets a multiplication sign.
    """
    return replace_symbols(formula, {symbol.name: symbol_value(symbol.value) for symbol in symbols})


def replace_symbols(formula: str, texts: dict[str, str]) -> str:
    """Return `formula` with each symbol replaced by its text in `texts`."""
    if not texts:
        return formula
    names = "|".join(re.escape(name) for name in sorted(texts, key=len, reverse=True))
    # The name must not be part of a longer one; an exponent (h²) may follow it.
    pattern = re.compile(rf"(?P<product>[\d)])?(?<![^\W\d])(?P<name>{names})(?![^\W²³])")
    return pattern.sub(lambda match: _value_for_match(match, texts), formula)


def _value_for_match(match: re.Match[str], values: dict[str, str]) -> str:
    """Return the matched symbol's value, with a multiplication sign if a number stands before it."""
    product = match["product"]
    return f"{product} × {values[match['name']]}" if product else values[match["name"]]


def _time_unit(seconds: float) -> tuple[str, float]:
    """Return the unit for a duration, and the seconds in one unit."""
    for unit, factor, least in _TIMES:
        if seconds >= least:
            return unit, factor
    return "µs", 1e-6


def _binary_unit(value: int) -> tuple[str, int]:
    """Return the unit for a size in bytes, and the bytes in one unit."""
    for unit, factor in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(value) >= factor:
            return unit, factor
    return "B", 1
