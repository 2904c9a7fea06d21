"""Speed of gpt-fast."""

from planner.performance.software import gpt_fast, transformers


def test_its_decoding_step_is_compiled() -> None:
    assert gpt_fast.ENGINE is transformers.COMPILED
