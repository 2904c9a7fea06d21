"""Speculative decoding: tokens that a check yields, and the usual settings."""

import pytest

from planner.errors import SpecError
from planner.workload.speculation import Speculation
from planner.workload.workload import Inference


@pytest.mark.parametrize(
    ("share", "tokens", "expected"),
    [(0.75, 7, 3.6), (0.8, 5, 3.69), (0.5, 1, 1.5), (0.0, 3, 1.0), (1.0, 4, 5.0)],
)
def test_a_check_yields_the_accepted_tokens_and_one_more(share, tokens, expected):
    """By hand (1 − α^(k+1)) ÷ (1 − α); 0.75 and 7 are of Leviathan et al. 2023, table 2: 3.4 times as fast."""
    found = Speculation(method="eagle", acceptance=share, tokens=tokens)
    assert found.expected_tokens == pytest.approx(expected, abs=5e-3)


def test_unset_settings_have_published_values():
    """DeepSeek-V3's own layer: 85 to 90 % of second tokens, so that a check yields 1.85; it says 1.8 times as fast."""
    own = Speculation(method="mtp")
    assert (own.with_defaults().tokens, own.with_defaults().acceptance) == (1, 0.85)
    assert own.expected_tokens == pytest.approx(1.85)
    assert Speculation(method="eagle3").with_defaults().tokens == 3


@pytest.mark.parametrize(
    ("method", "low", "high"),
    [("model", 2.8, 2.9), ("eagle", 2.25, 2.39), ("eagle3", 2.24, 2.79), ("ngram", 1.16, 2.03)],
)
def test_a_check_of_three_tokens_yields_what_was_published(method, low, high):
    """vLLM's tests, SpecDecode-Bench/simulator@2fdccbd, vllm#20780 and vLLM's blog of 2026-03-13: tokens of a check."""
    assert low <= Speculation(method=method).expected_tokens <= high
    assert Speculation(method=method, acceptance=0.5, tokens=2).expected_tokens == 1.75


def test_nothing_is_drafted_by_default_and_a_named_model_drafts():
    assert (Speculation().drafted, Speculation().expected_tokens, Speculation().with_defaults()) == (
        0,
        1,
        Speculation(),
    )
    assert Speculation(model="a/b").method == "model"


def test_a_program_without_drafts_refuses_them():
    with pytest.raises(SpecError, match="Transformers has no draft of the kind mtp"):
        Inference(profile="hf", speculation={"method": "mtp"})
    with pytest.raises(SpecError, match="TensorRT-LLM has no draft of the kind eagle; choose model or mtp"):
        Inference(profile="tensorrt-llm", speculation={"method": "eagle"})
    with pytest.raises(SpecError, match="no model that drafts is named"):
        Inference(profile="vllm", speculation={"method": "model"})
