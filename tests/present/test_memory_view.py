"""The answer of the estimator as sentences, a bar, a breakdown and phases."""

import pytest

from planner.memory.result import MemoryResult, Phase, Symbol, Term, TermPart, TermShare
from planner.present.format import THIN
from planner.present.memory.verdict import VERDICT_TITLES, verdict_phrase
from planner.present.memory.view import memory_view
from planner.present.names import PHASE_MOMENTS, PHASE_TITLES, TERM_TITLES, term_in_sentence
from planner.units import GIB, MIB


def seen(text):
    return text.replace(THIN, " ")


def _term(name, size, **changes):
    symbol = Symbol(name="P", value=8, meaning="parameters", origin="model")
    fields = {
        "name": name,
        "bytes": size,
        "formula": "2 × P",
        "symbols": (symbol,),
        "source": "counted",
        "certainty": "exact",
        "low_bytes": size,
        "high_bytes": size,
    }
    return Term(**{**fields, **changes})


def _result(**changes):
    overhead = _term("framework_overhead", GIB, certainty="measured", low_bytes=GIB // 2, high_bytes=2 * GIB)
    terms = (overhead, _term("logits", 0), _term("kv_cache", 3 * GIB), _term("weights", 12 * GIB))
    shares = tuple(TermShare(name=term.name, bytes=term.bytes) for term in terms)
    fields = {
        "total_bytes": 16 * GIB,
        "low_bytes": 15 * GIB + GIB // 2,
        "high_bytes": 17 * GIB,
        "allocated_bytes": 15 * GIB,
        "reserved_bytes": 15 * GIB,
        "peak_phase": "decode",
        "terms": terms,
        "phases": (
            Phase(name="load", bytes=13 * GIB, shares=(), explanation="weights arrive"),
            Phase(name="decode", bytes=16 * GIB, shares=shares, explanation="The cache is full."),
        ),
    }
    return MemoryResult(**{**fields, **changes})


def _on_card(capacity, verdict, **changes):
    held = changes.get("other_processes_bytes", 0)
    free = capacity - held - 16 * GIB
    return _result(capacity_bytes=capacity, verdict=verdict, free_bytes=free, **changes)


CASES = [
    (
        _on_card(24 * GIB, "fits"),
        1,
        "Fits on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 24.0 usable, 8.00 GiB free.",
        "Fits, 8.00 GiB free",
    ),
    (
        _on_card(16 * GIB + 512 * MIB, "tight"),
        4,
        "Tight on 4 × RTX 4090: each needs 16.0 GiB (15.5 – 17.0) of 16.5 usable, 512 MiB free.",
        "Tight, 512 MiB free",
    ),
    (
        _on_card(16 * GIB, "tight", fit_probability=0.26, low_bytes=15 * GIB),
        1,
        "Tight on 1 × RTX 4090 with a probability of about 1 in 4: needs 16.0 GiB (15.0 – 17.0) of 16.0 usable, "
        "0 B free.",
        "Tight, about 1 in 4",
    ),
    (
        _on_card(12 * GIB, "does-not-fit"),
        1,
        "Does not fit on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 12.0 usable, 4.00 GiB too much.",
        "Does not fit, 4.00 GiB too much",
    ),
    (
        _on_card(24 * GIB, "fits", other_processes_bytes=GIB),
        1,
        "Fits on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 24.0 usable, 1.00 GiB of it used by other programs, "
        "7.00 GiB free.",
        "Fits, 7.00 GiB free",
    ),
    (
        _result(),
        1,
        "Needs 16.0 GiB (15.5 – 17.0); the usable memory of RTX 4090 is not known.",
        "Needs 16.0 GiB",
    ),
    (
        _result(unsupported=("bitsandbytes needs CUDA", "no flash attention")),
        1,
        "Not supported on RTX 4090: bitsandbytes needs CUDA; no flash attention.",
        "Not supported",
    ),
]


@pytest.mark.parametrize(("memory", "count", "sentence", "phrase"), CASES)
def test_the_answer_is_a_sentence(memory, count, sentence, phrase):
    assert seen(memory_view(memory, "RTX 4090", count).answer) == sentence
    assert seen(verdict_phrase(memory)) == phrase


def test_without_a_card_the_smallest_ones_that_fit_are_named():
    assert seen(memory_view(_result()).answer) == "Needs 16.0 GiB (15.5 – 17.0)."
    view = memory_view(_result(), smallest=("RTX 3090", "RX 7900 XTX"))
    assert seen(view.answer) == ("Needs 16.0 GiB (15.5 – 17.0). The smallest cards that fit: RTX 3090 and RX 7900 XTX.")


def test_a_certain_total_shows_no_range_and_each_unit_once():
    exact = _result(low_bytes=16 * GIB, high_bytes=16 * GIB)
    assert seen(memory_view(exact).answer) == "Needs 16.0 GiB."
    small = _on_card(512 * MIB, "does-not-fit", low_bytes=900 * MIB)
    assert "(0.879 – 17.0) of 512 MiB usable" in seen(memory_view(small, "GT 710").answer)


def test_the_reason_names_phase_and_biggest_term():
    assert seen(memory_view(_result()).reason) == (
        "The peak is while the answer is generated; its largest part: weights (12.0 GiB, 75 %). The cache is full."
    )
    empty = _result(terms=(_term("weights", 0),))
    assert memory_view(empty).reason == ""


def test_the_bar_shows_terms_in_a_fixed_order_then_what_is_free_and_what_others_hold():
    view = memory_view(_on_card(24 * GIB, "fits", other_processes_bytes=GIB), "RTX 4090")
    assert [(piece.name, piece.start_bytes // GIB, piece.bytes // GIB) for piece in view.segments] == [
        ("weights", 0, 12),
        ("kv_cache", 12, 3),
        ("framework_overhead", 15, 1),
        ("free", 16, 7),
        ("other_processes", 23, 1),
    ]
    assert sum(piece.share for piece in view.segments) == pytest.approx(1)
    assert seen(view.segments[0].text) == "Weights 12.0 GiB"
    assert seen(view.segments[0].tooltip) == "Weights: 12,884,901,888 B"


def test_the_bar_runs_past_the_edge_of_a_card_that_is_too_small():
    view = memory_view(_on_card(12 * GIB, "does-not-fit", at_least_cards=2), "RTX 3060")
    overflow = view.segments[-1]
    assert (overflow.kind, overflow.start_bytes, overflow.bytes) == ("overflow", 12 * GIB, 4 * GIB)
    assert overflow.share == pytest.approx(0.25)
    assert "at least 2 cards" in view.notes[0]


def test_the_bar_without_a_card_is_the_total():
    view = memory_view(_result())
    assert view.bar_bytes == view.total_bytes
    assert {piece.kind for piece in view.segments} == {"term"}


def test_a_term_opens_into_its_formula_numbers_symbols_and_parts():
    part = TermPart(name="scales", bytes=GIB, formula="P / 64", source="QLoRA")
    memory = _result(terms=(_term("weights", 12 * GIB, parts=(part,)),))
    (row,) = memory_view(memory).terms
    assert (row.title, row.gib, seen(row.share_text), row.certainty) == ("Weights", "12.00", "75 %", "counted exactly")
    assert (row.how, row.numbers_put_in, row.source) == ("2 × P", "2 × 8", "counted")
    assert (row.symbols[0].name, row.symbols[0].value, row.symbols[0].origin) == ("P", "8", "model")
    assert (row.parts[0].title, seen(row.parts[0].text), row.parts[0].numbers_put_in) == (
        "scales",
        "1.00 GiB",
        "8 / 64",
    )
    assert seen(row.range_text) == "12.0 GiB"


def test_terms_without_bytes_are_left_out():
    assert [row.name for row in memory_view(_result()).terms] == ["weights", "kv_cache", "framework_overhead"]


def test_phases_are_relative_to_the_peak():
    load, decode = memory_view(_result()).phases
    assert (load.title, load.is_peak, load.share) == ("Load", False, pytest.approx(13 / 16))
    assert (decode.title, decode.is_peak, seen(decode.text)) == ("Decode", True, "16.0 GiB")


def test_text_and_table_for_the_clipboard():
    view = memory_view(_on_card(24 * GIB, "fits", notes=("dropout is off",)), "RTX 4090")
    text = seen(view.as_text())
    assert text.startswith("Fits on 1 × RTX 4090")
    assert "Weights                    12.00 GiB   75 %  2 × P" in text
    assert text.endswith("- dropout is off")
    header, first, *_ = view.csv_rows()
    assert len(header) == len(first)
    assert first[:3] == ("weights", "12884901888", "12.000000")


def test_every_term_phase_and_verdict_has_a_word():
    from typing import get_args

    from planner.memory.result import PhaseName, TermName, Verdict

    assert set(TERM_TITLES) == set(get_args(TermName))
    assert set(PHASE_TITLES) == set(PHASE_MOMENTS) == set(get_args(PhaseName))
    assert set(VERDICT_TITLES) == set(get_args(Verdict))
    assert (term_in_sentence("kv_cache"), term_in_sentence("logits")) == ("KV cache", "logits and loss")


@pytest.mark.parametrize(("sizes", "how"), [((3, 5), "sum of its 2 parts"), ((8,), "bucket 1")])
def test_symbols_that_are_just_the_parts_give_way_to_their_names(sizes, how):
    parts = tuple(TermPart(f"bucket {place}", size * GIB, f"{size}", "a book") for place, size in enumerate(sizes, 1))
    symbols = tuple(
        Symbol(f"B{place}", part.bytes, f"bytes: {part.name}", "library") for place, part in enumerate(parts)
    )
    formula = " + ".join(symbol.name for symbol in symbols)
    term = _term("communication", 8 * GIB, formula=formula, symbols=symbols, parts=parts)
    (row,) = (row for row in memory_view(_result(terms=(term, *_result().terms))).terms if row.name == "communication")
    assert (row.how, row.symbols) == (how, ())
    assert [part.title for part in row.parts] == [part.name for part in parts]
