"""Uncertainty of inference times."""

from known_engines import ENGINES

from planner.performance.inference.spread import is_decoding_measured, request_spread_factor


def test_cards_of_families_that_were_not_measured_spread_wider():
    assert is_decoding_measured(ENGINES["llama.cpp"], "Ada")
    assert not is_decoding_measured(ENGINES["vllm"], "Radeon")
    assert (
        request_spread_factor("decode", ENGINES["llama.cpp"], "Ada")
        < request_spread_factor("prefill", ENGINES["llama.cpp"], "Ada")
        < request_spread_factor("decode", ENGINES["vllm"], "TPU")
    )
