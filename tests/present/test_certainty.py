"""How sure an answer is, in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import bundled, small_llama

from planner.memory.estimate import estimate_memory
from planner.present.format import THIN
from planner.present.memory.verdict import certainty_sentences, odds_text
from planner.workload.workload import Inference


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (1.0, "more than 98 in 100"),
        (0.98, "about 19 in 20"),
        (0.95, "about 19 in 20"),
        (0.76, "about 3 in 4"),
        (0.67, "about 2 in 3"),
        (0.5, "about 1 in 2"),
        (0.05, "about 1 in 20"),
        (0.01, "less than 2 in 100"),
        (0.0, "less than 2 in 100"),
    ],
)
def test_a_chance_is_said_as_people_say_it(probability, words):
    assert odds_text(probability) == words


@given(st.floats(0.015, 0.985))
def test_what_is_said_is_near(probability):
    hits, tries = (int(word) for word in odds_text(probability).split() if word.isdigit())
    assert abs(hits / tries - probability) < 0.09


def test_certain_bytes_and_assumed_ones_are_said_apart_and_what_is_not_there_is_left_out():
    card = bundled().hardware.gpu("rtx-4090")
    result = estimate_memory(small_llama(), Inference(), card, bundled().hardware.usable_memory(card))
    said = certainty_sentences(result).replace(THIN, " ")
    assert said.startswith("Counted exactly ")
    assert " MiB, verified in runs " in said
    assert " MiB, assumed " in said
    assert said.endswith("Probability that it fits: more than 98 in 100.")
    exact = tuple(term for term in result.terms if term.certainty == "exact")
    bare = result.evolve(terms=exact, fit_probability=None)
    assert certainty_sentences(bare).replace(THIN, " ").startswith("Counted exactly ")
    assert "," not in certainty_sentences(bare)
    assert certainty_sentences(bare.evolve(terms=())) == ""
