"""A term's formula in words: `8.03 B parameters × 2 bytes` for `P × w`."""

import re
from typing import Final

from planner.memory.result import Symbol, Term
from planner.present import format as fmt

_LISTED_PARTS: Final = 2
_LARGE_NUMBER: Final = 1_000_000
_BYTES_OF: Final = re.compile(r"bytes(?: of|:) (?:the |a |one )?")
# Where the noun ends with which a symbol's meaning begins: `tokens for which logits are computed`.
_NOUN_END: Final = re.compile(
    r"[;:,(]| (?:of|for|that|in|per|on|at|with|inside|once|before|cached|decoded|alive|held|shared|summed|counted)\b"
)
_GROUP_OF_FACTORS: Final = re.compile(r"(?<!/ )(?<!\w)\(([^()+−]*)\)")
_OPERATOR: Final = re.compile("[×/+−]")
_BITS_TO_BYTES: Final = " / 8"


def formula_in_words(term: Term) -> str:
    """Return how many bytes `term` has, in words: its largest parts, or else its formula with numbers and nouns."""
    parts = [(part.name, part.bytes) for part in term.parts]
    if len(parts) < _LISTED_PARTS:
        parts = _summands(term)
    return _parts_text(parts, term.bytes) if len(parts) >= _LISTED_PARTS else _product_text(term)


def _summands(term: Term) -> list[tuple[str, int]]:
    """Return the names and sizes that the formula adds, if it only adds and subtracts sizes."""
    sizes = {symbol.name: symbol for symbol in term.symbols if _BYTES_OF.match(symbol.meaning)}
    words = term.formula.split(" ")
    if not all(word in sizes for word in words[::2]) or not {"+", "−"}.issuperset(words[1::2]):
        return []
    added = [sizes[name] for name, sign in zip(words[::2], ("+", *words[1::2]), strict=True) if sign == "+"]
    return [(_BYTES_OF.sub("", symbol.meaning, count=1), int(symbol.value)) for symbol in added]


def _parts_text(parts: list[tuple[str, int]], total_bytes: int) -> str:
    """Return the largest parts: `feed-forward blocks 2.00 GiB + norms 1.66 GiB + 1 more`."""
    largest = sorted(parts, key=lambda part: -part[1])
    said = [_amount_text(*part) for part in largest[:_LISTED_PARTS]]
    if len(largest) > _LISTED_PARTS:
        said.append(f"{fmt.integer(len(largest) - _LISTED_PARTS)} more")
    freed = sum(size for _, size in parts) - total_bytes
    return " + ".join(said) + (f" − {fmt.size(freed)} already freed" if freed > 0 else "")


def _product_text(term: Term) -> str:
    formula = term.formula
    if not _OPERATOR.search(formula) and len(formula.split()) > 1:
        return fmt.substitute_symbols(formula, term.symbols)  # a formula that is words already
    while (simpler := _GROUP_OF_FACTORS.sub(r"\1", formula)) != formula:
        formula = simpler
    in_bits = any(symbol.meaning.startswith("bits ") for symbol in term.symbols)
    return fmt.replace_symbols(
        formula.replace(_BITS_TO_BYTES, "") if in_bits else formula,
        {symbol.name: _symbol_text(symbol) for symbol in term.symbols},
    )


def _symbol_text(symbol: Symbol) -> str:
    """Return a symbol's value with its noun: `8.03 B parameters`, `width 4,096`, `CUDA graphs 512 MiB`."""
    value = symbol.value
    if isinstance(value, str):
        return value
    if isinstance(value, int) and _BYTES_OF.match(symbol.meaning):
        return _amount_text(_BYTES_OF.sub("", symbol.meaning, count=1), value)
    noun = _NOUN_END.split(symbol.meaning.removeprefix("number of ").removeprefix("its "), maxsplit=1)[0]
    if noun == "share":
        return fmt.percent(value)
    if noun == "bytes" and value >= _LARGE_NUMBER:
        return fmt.size(round(value))
    number = fmt.parameters(round(value)) if value >= _LARGE_NUMBER else fmt.plain(value, 4)
    if not noun.endswith("s"):
        return f"{noun} {number}".strip()
    return f"{number} {noun.removesuffix('s') if value == 1 else noun}"


def _amount_text(name: str, size_bytes: int) -> str:
    """Return a name without its explanations, and its size: `device context 426 MiB`."""
    return f"{re.split(r'[;(]', name, maxsplit=1)[0].strip()} {fmt.size(size_bytes)}"
