"""Formulas with their numbers put in."""

import pytest

from planner.memory.result import Symbol
from planner.present.format import substitute_symbols, symbol_value


def _symbols(**values):
    return tuple(Symbol(name=name, value=value, meaning="", origin="model") for name, value in values.items())


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("2 × L × h", "2 × 32 × 4,096"),
        ("16h + 4L", "16 × 4,096 + 4 × 32"),
        ("L × (h + 1)h", "32 × (4,096 + 1) × 4,096"),
        ("h²", "4,096²"),
        ("max(L, hL)", "max(32, hL)"),
        ("n_kv × d", "8 × d"),
        ("L × q / 8", "32 × 4.5 / 8"),
        ("as stored in w", "as stored in bf16"),
    ],
)
def test_each_symbol_is_replaced_and_nothing_else(formula, shown):
    assert substitute_symbols(formula, _symbols(L=32, h=4096, n_kv=8, q=4.5, w="bf16")) == shown


def test_longer_names_win_over_their_beginnings():
    assert substitute_symbols("P_t + P", _symbols(P=1, P_t=2)) == "2 + 1"


def test_a_formula_without_symbols_stays():
    assert substitute_symbols("one GiB", ()) == "one GiB"


def test_values():
    assert symbol_value(8_030_261_248) == "8,030,261,248"
    assert symbol_value(4.1270000) == "4.127"
    assert symbol_value("bf16") == "bf16"
