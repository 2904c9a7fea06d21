"""A term's formula in words."""

import pytest
from memory_samples import seen

from planner.memory.result import Symbol, Term, TermPart
from planner.present.memory.formula_words import formula_in_words
from planner.units import GIB, MIB


def term(formula, *symbols, parts=(), size=4 * GIB):
    written = tuple(Symbol(name, value, meaning, "model") for name, value, meaning in symbols)
    named = tuple(TermPart(name, held, "", "a book") for name, held in parts)
    return Term(
        name="weights",
        bytes=size,
        formula=formula,
        symbols=written,
        source="a book",
        certainty="exact",
        low_bytes=size,
        high_bytes=size,
        parts=named,
    )


def said(written):
    return seen(formula_in_words(written))


PARAMETERS = ("P", 8_030_261_248, "number of parameters; tied parameters count once")
WIDTH = ("w", 2, "bytes per parameter in BF16")
CARDS = ("N", 8, "cards that share this memory, rounded up")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (term("P × w", PARAMETERS, WIDTH), "8.03 B parameters × 2 bytes"),
        (term("(P × w) / N", PARAMETERS, WIDTH, CARDS), "8.03 B parameters × 2 bytes / 8 cards"),
        (
            term("((P × w) / N) × f", PARAMETERS, WIDTH, CARDS, ("f", 0.81, "share of the gradients reduced so far")),
            "8.03 B parameters × 2 bytes / 8 cards × 81 %",
        ),
        (
            term(
                "B × n × c / 8", ("B", 1, "sequences"), ("n", 63_000, "tokens cached"), ("c", 4.5, "bits per element")
            ),
            "1 sequence × 63,000 tokens × 4.5 bits",
        ),
        (
            term("(T + 2 × n) × h", ("T", 8192, "tokens: 4 × 2,048"), ("n", 4, "sequences"), ("h", 96, "width of it")),
            "(8,192 tokens + 2 × 4 sequences) × width 96",
        ),
        (term("p × g", ("p", 512, "pages"), ("g", 2 * MIB, "bytes per page of a group")), "512 pages × 2.00 MiB"),
        (
            term(
                "G",
                ("G", 512 * MIB, "bytes of the graph, laid out"),
            ),
            "graph, laid out 512 MiB",
        ),
        (
            term("sum of n traced allocations", ("n", 148, "allocations alive at the peak")),
            "sum of 148 traced allocations",
        ),
        (term("n × k", ("n", 3, "tokens"), ("k", "auto", "copies")), "3 tokens × auto"),
        (term("P / (w × N)", PARAMETERS, WIDTH, CARDS), "8.03 B parameters / (2 bytes × 8 cards)"),
    ],
)
def test_numbers_and_nouns_replace_symbols(written, words):
    assert said(written) == words


def test_of_many_parts_the_two_largest_are_named():
    parts = (("context (lazy)", GIB), ("slack", 2 * GIB), ("workspace", GIB // 2), ("rest", GIB // 2))
    assert said(term("C + W", parts=parts)) == "slack 2.00 GiB + context 1.00 GiB + 2 more"


def test_what_is_freed_before_the_peak_is_subtracted():
    assert (
        said(term("A + B − M", parts=(("a", 3 * GIB), ("b", 2 * GIB))))
        == "a 3.00 GiB + b 2.00 GiB − 1.00 GiB already freed"
    )


def test_a_sum_of_sizes_names_the_largest_and_what_is_freed():
    sizes = (("N", GIB, "bytes of norms"), ("C", 3 * GIB, "bytes of checkpoints"), ("M", GIB // 2, "bytes: freed"))
    summed = term("N + C − M", *sizes, size=7 * GIB // 2)
    assert said(summed) == "checkpoints 3.00 GiB + norms 1.00 GiB − 512 MiB already freed"
