"""Numbers, sizes, dates and formulas as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.memory.result import Symbol
from planner.numbers import BYTES, parse_number
from planner.present import format as fmt
from planner.present.format import THIN, substitute_symbols, symbol_value
from planner.units import GIB, KIB, MIB


def seen(text):
    """Return `text` with its thin spaces as plain ones, which can be told apart in a test."""
    return text.replace(THIN, " ")


def _symbols(**values):
    return tuple(Symbol(name=name, value=value, meaning="", origin="model") for name, value in values.items())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.5314, "0.531"),
        (5.306, "5.31"),
        (9.996, "10.0"),
        (17.44, "17.4"),
        (99.96, "100"),
        (165.2, "165"),
        (999.6, "1,000"),
        (1008.0, "1,008"),
        (-3.1, "−3.10"),
    ],
)
def test_three_figures_and_whole_numbers_in_full(value, text):
    assert seen(fmt.significant(value)) == text


@pytest.mark.parametrize(("value", "text"), [(24.0, "24"), (1.5, "1.5"), (82.58, "82.6"), (100.0, "100"), (0, "0")])
def test_plain_numbers_have_no_zeros_at_the_end(value, text):
    assert seen(fmt.plain(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "0 B"),
        (1023, "1,023 B"),
        (512 * KIB, "512 KiB"),
        (523 * MIB, "523 MiB"),
        (int(17.4 * GIB), "17.4 GiB"),
        (-int(3.1 * GIB), "−3.10 GiB"),
        (1500 * GIB, "1,500 GiB"),
    ],
)
def test_sizes_choose_their_unit(value, text):
    assert seen(fmt.size(value)) == text


@given(st.integers(0, 2**50))
def test_sizes_read_back_to_three_figures(value):
    read = parse_number(fmt.size(value).replace(THIN, " "), BYTES)
    assert abs(read - value) <= max(1, value * 0.0051)


@given(st.integers(0, 2**60))
def test_exact_bytes_read_back_exactly(value):
    assert parse_number(fmt.exact_bytes(value).replace(THIN, " "), BYTES) == value


def test_exact_bytes():
    assert seen(fmt.exact_bytes(18_683_123_456)) == "18,683,123,456 B"
    assert seen(fmt.exact_bytes(None, "not published")) == "not published"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.00"), (1, "< 0.01"), (GIB, "1.00"), (-GIB, "−1.00"), (1234 * GIB, "1,234.00")]
)
def test_gib_columns_align_at_the_point(value, text):
    assert seen(fmt.gib(value)) == text


def test_ranges_share_the_unit_of_the_higher_end():
    assert seen(fmt.size_range(int(16.9 * GIB), int(18.3 * GIB))) == "16.9 – 18.3 GiB"
    assert seen(fmt.size_range(900 * MIB, 2 * GIB)) == "0.879 – 2.00 GiB"
    assert seen(fmt.size_range(GIB, GIB)) == "1.00 GiB"


def test_differences_are_signed():
    assert seen(fmt.size_difference(int(1.2 * GIB))) == "+1.20 GiB"
    assert seen(fmt.size_difference(-int(3.1 * GIB))) == "−3.10 GiB"
    assert seen(fmt.size_difference(0)) == "0 B"


def test_parameters():
    assert seen(fmt.parameters(8_030_261_248)) == "8.03 B"
    assert seen(fmt.parameters(66_362_880)) == "66.4 M"
    assert seen(fmt.parameters(150_000)) == "0.150 M"
    assert seen(fmt.parameters(13_200)) == "13,200"
    assert seen(fmt.parameters(None)) == "unknown"
    assert fmt.integer(8_030_261_248) == "8,030,261,248"


def test_operations():
    assert fmt.operations(3_420_000_000_000) == "3.42\u2009TFLOP"
    assert fmt.operations(512) == "512\u2009FLOP"


def test_rates_bandwidth_power_and_money():
    assert seen(fmt.rate(165.2e12, "bf16")) == "165 TFLOPS"
    assert seen(fmt.rate(660.6e12, "int8")) == "661 TOPS"
    assert seen(fmt.rate(None)) == "not published"
    assert seen(fmt.bandwidth(1008e9)) == "1,008 GB/s"
    assert seen(fmt.bandwidth(None)) == "not published"
    assert seen(fmt.power(450)) == "450 W"
    assert seen(fmt.power(None)) == "not published"
    assert seen(fmt.money(1599)) == "$1,599"
    assert seen(fmt.money(2.39)) == "$2.39"
    assert seen(fmt.money(None)) == "not published"


@pytest.mark.parametrize(
    ("value", "text"), [(0.3, "30 %"), (0.004, "< 1 %"), (0, "0 %"), (1, "100 %"), (-0.05, "−5 %")]
)
def test_percent(value, text):
    assert seen(fmt.percent(value)) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0031, "+0.31 %"), (-0.12, "−12 %"), (-6e-7, "< 0.01 %"), (0, "0 %"), (1e-4, "+0.010 %")]
)
def test_how_far_something_is_off(value, text):
    assert seen(fmt.signed_percent(value)) == text


def test_dates():
    assert fmt.date("2022-10-12") == "12 October 2022"
    assert fmt.date("2022-10") == "October 2022"
    assert fmt.date("2022") == "2022"
    assert fmt.date(None) == "unknown"
    assert fmt.short_date("2022-10-12") == fmt.short_date("2022-10") == "Oct 2022"
    assert fmt.short_date("2022") == "2022"
    assert fmt.short_date(None) == "unknown"


def test_words():
    assert [fmt.yes_no(value) for value in (True, False, None)] == ["yes", "no", "unknown"]
    assert fmt.count_of(2, "RTX 4090") == "2 × RTX 4090"
    assert [fmt.plural(number, "card") for number in (1, 2)] == ["1 card", "2 cards"]
    assert fmt.listing(()) == ""
    assert fmt.listing(("a",)) == "a"
    assert fmt.listing(("a", "b", "c"), "or") == "a, b or c"


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((4 * GIB, 3 * GIB, 6 * GIB), "4.00 GiB (3.00 – 6.00)"),
        ((GIB - 1, GIB - 2 * MIB, 2 * GIB), "1,024 MiB (0.998 – 2.00 GiB)"),
        ((GIB, GIB, GIB), "1.00 GiB"),
    ],
)
def test_a_size_with_its_range_names_the_unit_once(sizes, text):
    assert fmt.size_with_range(*sizes).replace(fmt.THIN, " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (3e-6, "3.00 µs"),
        (0.0123, "12.3 ms"),
        (0.99951, "1.00 s"),
        (1.24, "1.24 s"),
        (119.0, "119 s"),
        (1_110.0, "18.5 min"),
        (11_520.0, "3.20 h"),
        (1_080_000.0, "12.5 days"),
    ],
)
def test_durations(seconds, text):
    assert seen(fmt.duration(seconds)) == text


def test_durations_and_numbers_with_their_ranges():
    assert seen(fmt.duration_with_range(1.24, 1.08, 1.42)) == "1.24 s (1.08 – 1.42)"
    assert seen(fmt.duration_with_range(1.24, None, None)) == "1.24 s"
    assert seen(fmt.duration_with_range(7_200.0, 3_600.0, None)) == "2.00 h (1.00 – 2.00)"
    assert fmt.number_range(6_610, 5_800, 7_500) == "6,610 (5,800 – 7,500)"
    assert fmt.number_range(3, None, None) == "3.00"
    assert fmt.number_range(47_845, 39_871, 57_414) == "47,800 (39,900 – 57,400)"


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


def test_next_to_nothing_has_no_sign():
    assert fmt.money(-0.001) == "$0.00"
    assert fmt.money(-0.01) == "−$0.01"
    assert fmt.sentence("where") == "Where."
    assert fmt.sentence("adamw, sgd, …") == "Adamw, sgd, …"
    assert fmt.sentence("vLLM: run") == "vLLM: run."
    assert fmt.sentence("llama.cpp: slots") == "llama.cpp: slots."


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (16 * GIB, 15 * GIB, ("16.0 GiB", "15.0 GiB")),
        (16 * GIB + 65 * MIB, 16 * GIB, ("16.06 GiB", "16.00 GiB")),
        (GIB, GIB + 1, ("1.00000 GiB", "1.00000 GiB")),
    ],
)
def test_two_sizes_have_as_many_figures_as_tell_them_apart(first, second, texts):
    assert tuple(text.replace(fmt.THIN, " ") for text in fmt.sizes_apart(first, second)) == texts


def test_a_number_stays_on_the_line_of_its_unit():
    assert fmt.unbroken(f"2 GPUs, 16.4{THIN}GiB") == "2 GPUs, 16.4\u202fGiB"
    assert fmt.unbroken("needs 7.77 – 11.3") == "needs 7.77\u00a0–\u00a011.3"
    assert fmt.unbroken("2026-09-20, a 3-way 20-20") == "2026\u201109\u201120, a 3-way 20-20"
