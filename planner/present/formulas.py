"""Formulas with their numbers put in."""

import re

from planner.memory.result import Symbol
from planner.present import format as fmt


def symbol_value(value: float | str) -> str:
    """Return a symbol's value as it is written into a formula."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return fmt.integer(value)
    return f"{value:,.6g}"


def put_in(formula: str, symbols: tuple[Symbol, ...]) -> str:
    """Return `formula` with each symbol replaced by its value: `2 × L × h` becomes `2 × 32 × 4,096`.

    A symbol right behind a number or a bracket (`16h`) is a product, and gets its sign.
    """
    values = {symbol.name: symbol_value(symbol.value) for symbol in symbols}
    if not values:
        return formula
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    # A name must not be part of a longer one; an exponent (h²) may follow it.
    pattern = re.compile(rf"(?P<product>[\d)])?(?<![^\W\d])(?P<name>{names})(?![^\W²³])")
    return pattern.sub(lambda match: _replaced(match, values), formula)


def _replaced(match: re.Match[str], values: dict[str, str]) -> str:
    product = match["product"]
    return f"{product} × {values[match['name']]}" if product else values[match["name"]]
