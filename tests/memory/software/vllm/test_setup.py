"""Limits of vLLM's steps, by class of card."""

import pytest
from small_models import bundled
from vllm_cases import setup

from planner.memory.software.vllm.setup import CardClass, card_setup


@pytest.mark.parametrize(
    ("name", "of_card"),
    [
        ("b200-sxm-180gb", CardClass.LARGEST),
        ("h100-sxm5-80gb", CardClass.LARGE),
        ("a100-sxm4-80gb", CardClass.OTHER),
        ("rtx-4090", CardClass.OTHER),
    ],
)
def test_defaults_follow_the_card(name: str, of_card: CardClass):
    assert card_setup(bundled().hardware.gpu(name)).limits is of_card


def test_limits_of_a_step():
    large = setup()
    assert (large.tokens, large.sequences, large.in_flight, large.utilization) == (8192, 1024, 16_384, 0.92)
    assert setup(version="0.11").utilization == 0.9
    assert setup(length=1, max_num_seqs=3).tokens == 3
    assert setup(max_num_batched_tokens=100).sequences == 100
    assert setup(max_num_batched_tokens=100, max_num_seqs=200).sequences == 200
