"""Memory verdicts as text, with their certainty."""

import pytest
from memory_samples import on_card, result, seen
from small_models import bundled, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.result import CachePool, bytes_by_certainty
from planner.present.format import THIN
from planner.present.memory.verdict import (
    certainty_sentence,
    confidence_sentence,
    detail_sentence,
    fitting_sentence,
    gauge_facts,
    gauge_text,
    memory_answer,
    sure_text,
    verdict_phrase,
)
from planner.present.memory.view import memory_view
from planner.units import GIB, MIB
from planner.workload.workload import Inference

POOL = CachePool(bytes=9 * GIB, tokens=9_000, sequences=9.0, utilization=0.9, reserved_bytes=round(21.6 * GIB))
CASES = [
    (
        on_card(24 * GIB, "fits"),
        1,
        "Fits on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 24.0 usable, 8.00 GiB free.",
        "Fits, 8.00 GiB free",
    ),
    (
        on_card(16 * GIB + 512 * MIB, "tight"),
        4,
        "Tight on 4 × RTX 4090: each needs 16.0 GiB (15.5 – 17.0) of 16.5 usable, 512 MiB free.",
        "Tight, 512 MiB free",
    ),
    (
        on_card(16 * GIB, "tight", fit_probability=0.66, low_bytes=15 * GIB),
        1,
        "Tight on 1 × RTX 4090: needs 16.0 GiB (15.0 – 17.0) of 16.0 usable, 0 B free, 66 % sure it fits.",
        "Tight, 66 % sure it fits",
    ),
    (
        on_card(12 * GIB, "does-not-fit"),
        1,
        "Does not fit on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 12.0 usable, 4.00 GiB short.",
        "Does not fit, 4.00 GiB short",
    ),
    (
        on_card(15 * GIB, "does-not-fit", fit_probability=0.35),
        1,
        "Probably does not fit on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 15.0 usable, 1.00 GiB short.",
        "Probably does not fit, 1.00 GiB short",
    ),
    (
        on_card(12 * GIB, "does-not-fit", fit_probability=0.04),
        1,
        "Does not fit on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 12.0 usable, 4.00 GiB short.",
        "Does not fit, 4.00 GiB short",
    ),
    (
        on_card(24 * GIB, "fits", cache_pool=POOL),
        1,
        "Fits on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 24.0 usable; "
        "the engine reserves 21.6 GiB (90 %) unless limited.",
        "Fits, reserves 21.6 GiB",
    ),
    (
        on_card(12 * GIB, "does-not-fit", cache_pool=POOL),
        1,
        "Does not fit on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 12.0 usable, 4.00 GiB short.",
        "Does not fit, 4.00 GiB short",
    ),
    (
        on_card(24 * GIB, "fits", other_processes_bytes=GIB),
        1,
        "Fits on 1 × RTX 4090: needs 16.0 GiB (15.5 – 17.0) of 24.0 usable, 1.00 GiB of it used by other programs, "
        "7.00 GiB free.",
        "Fits, 7.00 GiB free",
    ),
    (
        result(),
        1,
        "Needs 16.0 GiB (15.5 – 17.0); the usable memory of RTX 4090 is unknown.",
        "Needs 16.0 GiB",
    ),
    (
        result(unsupported=("bitsandbytes needs CUDA", "no flash attention")),
        1,
        "Not supported on RTX 4090: bitsandbytes needs CUDA; no flash attention.",
        "Not supported",
    ),
]


@pytest.mark.parametrize(
    ("verdict", "probability", "words"),
    [
        ("fits", 1.0, "over 99 % sure"),
        ("fits", 0.98, "98 % sure"),
        ("tight", 0.772, "77 % sure it fits"),
        ("does-not-fit", 0.4, "60 % sure"),
        ("does-not-fit", 0.001, "over 99 % sure"),
    ],
)
def test_how_sure_a_verdict_is_never_reaches_certainty(verdict, probability, words):
    assert seen(sure_text(verdict, probability)) == words


def test_the_gauge_says_needed_usable_and_how_sure():
    memory = on_card(24 * GIB, "fits", fit_probability=0.98, other_processes_bytes=GIB)
    assert seen(gauge_text(memory)) == "16.0 of 24.0 GiB · 98 % sure"
    assert [seen(fact) for fact in gauge_facts(memory, "RTX 4090")] == [
        "on 1 × RTX 4090",
        "7.00 GiB free",
        "needs 15.5 – 17.0 GiB",
        "1.00 GiB used by other programs",
    ]
    small = on_card(512 * MIB, "does-not-fit", low_bytes=16 * GIB, high_bytes=16 * GIB)
    assert seen(gauge_text(small)) == "16.0 GiB of 512 MiB"
    assert [seen(fact) for fact in gauge_facts(small, "GT 710", 2)] == ["on each of 2 × GT 710", "15.5 GiB short"]


def test_beside_its_verdict_a_card_says_what_the_plan_needs_of_it_and_how_surely_it_fits():
    fits = on_card(24 * GIB, "fits", fit_probability=0.98)
    assert seen(detail_sentence(fits, "RTX 4090", 1)).endswith(" usable; 98 % sure.")
    assert seen(detail_sentence(fits, "RTX 4090", 2)).startswith("Each needs ")
    assert detail_sentence(result(), "RTX 4090", 1) == memory_answer(result(), "RTX 4090")


def test_without_a_verdict_there_is_no_gauge():
    assert gauge_text(result()) == ""
    assert gauge_facts(result(), "RTX 4090") == ()


def test_exact_measured_and_assumed_bytes_are_stated_separately():
    card = bundled().hardware.gpu("rtx-4090")
    result = estimate_memory(small_llama(), Inference(), card, bundled().hardware.usable_memory(card))
    said = certainty_sentence(result).replace(THIN, " ")
    assert said.startswith("Of the peak: ")
    assert confidence_sentence(result).replace(THIN, " ") == "Over 99 % sure."
    assert all(
        part in said for part in (" counted exactly, ", " from formulas checked against real runs and ", " assumed.")
    )
    unlikely = on_card(12 * GIB, "does-not-fit", fit_probability=0.35)
    assert confidence_sentence(unlikely).replace(THIN, " ") == "65 % sure."
    assert confidence_sentence(on_card(12 * GIB, "tight", fit_probability=0.6)) == ""
    exact = tuple(term for term in result.terms if term.certainty == "exact")
    bare = result.evolve(terms=exact, certain_bytes=bytes_by_certainty(exact), fit_probability=None)
    assert certainty_sentence(bare).replace(THIN, " ").endswith(" counted exactly.")
    assert "," not in certainty_sentence(bare)
    assert certainty_sentence(bare.evolve(terms=(), certain_bytes=bytes_by_certainty(()))) == ""


@pytest.mark.parametrize(("memory", "count", "sentence", "phrase"), CASES)
def test_the_verdict_is_one_sentence(memory, count, sentence, phrase):
    assert seen(memory_view(memory, "RTX 4090", count).answer) == sentence
    assert seen(verdict_phrase(memory)) == phrase


def test_without_a_card_the_smallest_fitting_cards_are_named():
    assert seen(memory_view(result()).answer) == "Needs 16.0 GiB (15.5 – 17.0)."
    view = memory_view(result(), smallest=("RTX 3090", "RX 7900 XTX"))
    assert seen(view.answer) == ("Needs 16.0 GiB (15.5 – 17.0). The smallest GPUs that fit: RTX 3090 and RX 7900 XTX.")


def test_a_certain_total_shows_no_range_and_each_unit_once():
    exact = result(low_bytes=16 * GIB, high_bytes=16 * GIB)
    assert seen(memory_view(exact).answer) == "Needs 16.0 GiB."
    small = on_card(512 * MIB, "does-not-fit", low_bytes=900 * MIB)
    assert "(0.879 – 17.0) of 512 MiB usable" in seen(memory_view(small, "GT 710").answer)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((12, 2), "Fits on 12 of 59 GPUs, tightly on 2 more. Cheapest: X."),
        ((12, 0), "Fits on 12 of 59 GPUs. Cheapest: X."),
        ((0, 2), "Fits only tightly, on 2 of 59 GPUs. Cheapest: X."),
    ],
)
def test_a_tight_fit_is_counted_apart(counts, said):
    assert fitting_sentence(*counts, "59 GPUs", "X") == said


def test_no_card_that_fits_is_said_without_a_cheapest():
    assert fitting_sentence(0, 0, "59 GPUs") == "Does not fit on any of 59 GPUs."
