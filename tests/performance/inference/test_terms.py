"""Terms of a request's time: formulas, symbols and sources."""

import pytest
from timed_requests import CHAT, timed


def test_terms_have_formula_symbols_and_source():
    found = timed(count=2, parallel={"pipeline": 2}, **CHAT)
    names = {term.name for term in found.terms}
    assert names >= {"prefill", "weights_read", "decode_compute", "cache_read", "elementwise", "host"}
    assert "pipeline_transfers" in names
    assert all(term.formula and term.source for term in found.terms)
    assert found.term("weights_read").symbols[0].name == "T"
    assert "Pipeline stages run one after the other" in found.notes[0]


def test_the_prefill_term_states_the_seconds_of_attention():
    found = timed("a100-sxm4-80gb", model="google-bert/bert-large-uncased", batch=8, prompt_length=384)
    attention = {one.name: one.value for one in found.term("prefill").symbols}["attention"]
    assert attention == pytest.approx(8 * 24 * 4 * 1024 * 384**2 / (312e12 * 0.6), abs=1e-6)
