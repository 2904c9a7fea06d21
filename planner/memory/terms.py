"""Constructors of memory terms and their formula symbols: bytes, formula, source, bounds and certainty."""

from collections.abc import Callable
from functools import partial
from typing import Final

from planner.memory.phases import DeferredTerm
from planner.memory.result import Symbol, Term, TermCertainty, TermName, TermPart

_LEAST_SHARE: Final = 1 - 0.01
"""Least share of a checked formula that traces of PyTorch 2.13 and transformers 5.23 show (tests/memory)."""
_MOST_SHARE: Final = 1 + 0.05
"""Most that a checked formula may be off, for other library versions; benchmarks/accuracy.py measures its coverage."""


model_symbol = partial(Symbol, origin="model")
"""Returns a formula symbol (name, value, meaning) whose value comes from the model."""
workload_symbol = partial(Symbol, origin="workload")
"""Returns a formula symbol whose value comes from the workload."""
format_symbol = partial(Symbol, origin="format")
"""Returns a formula symbol whose value comes from a number format."""
library_symbol = partial(Symbol, origin="library")
"""Returns a formula symbol whose value is set by a library's behavior."""
card_symbol = partial(Symbol, origin="card")
"""Returns a formula symbol whose value comes from the card."""
traced_symbol = partial(Symbol, origin="trace")
"""Returns a formula symbol whose value was counted in a trace."""


def term(
    name: TermName,
    size_bytes: int,
    formula: str,
    symbols: tuple[Symbol, ...],
    source: str,
    *,
    certainty: TermCertainty = "exact",
    low_bytes: int | None = None,
    high_bytes: int | None = None,
    parts: tuple[TermPart, ...] = (),
) -> Term:
    """Return a memory term; without bounds its amount is exact."""
    return Term(
        name=name,
        bytes=size_bytes,
        formula=formula,
        symbols=symbols,
        source=source,
        certainty=certainty,
        low_bytes=size_bytes if low_bytes is None else low_bytes,
        high_bytes=size_bytes if high_bytes is None else high_bytes,
        parts=parts,
    )


def measured_term(
    name: TermName,
    size_bytes: int,
    formula: str,
    symbols: tuple[Symbol, ...],
    source: str,
    parts: tuple[TermPart, ...] = (),
) -> Term:
    """Return a memory term with a formula checked against traces of whole networks, and with the bounds seen there."""
    low, high = checked_bounds_bytes(size_bytes)
    return term(
        name,
        size_bytes,
        formula,
        symbols,
        source,
        certainty="measured",
        low_bytes=low,
        high_bytes=high,
        parts=parts,
    )


def deferred_measured_term(name: TermName, size_bytes: int, write: Callable[[], Term]) -> DeferredTerm:
    """Return the memory term that `write` makes with `measured_term`, written on demand."""
    return DeferredTerm(name, size_bytes, *checked_bounds_bytes(size_bytes), write)


def checked_bounds_bytes(size_bytes: int) -> tuple[int, int]:
    """Return the bounds, 1 % below and 5 % above, of `size_bytes` by a formula checked against traces."""
    return int(size_bytes * _LEAST_SHARE), int(size_bytes * _MOST_SHARE)
