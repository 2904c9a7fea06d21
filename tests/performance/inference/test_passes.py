"""Passes over the network, with the arithmetic."""

import pytest
from timed_requests import served

from planner.performance.inference.passes import PassTime
from planner.performance.inference.request import prompt_time
from planner.performance.kernels.delta_net import DeltaNetShape, delta_net_seconds

DELTA_NETS = "Qwen/Qwen3-Next-80B-A3B-Instruct"


def test_passes_add_up():
    assert PassTime(1.0, 2.0).followed_by(PassTime(3.0)).repeated(2) == PassTime(8.0, 4.0)


@pytest.mark.parametrize(
    ("card", "engine", "fused"),
    [
        ("h200-sxm-141gb", "vllm", True),
        ("rtx-pro-6000-blackwell-server", "vllm", False),
        ("h200-sxm-141gb", "tensorrt-llm", False),
    ],
)
def test_delta_nets_take_prompts_through_their_states(card, engine, fused):
    run = served(card, engine, "bf16", DELTA_NETS, tensor=2)
    plain = run._replace(work=run.work._replace(delta_nets=()))
    speed = run.speed
    assert speed.fuses_delta_nets == fused
    # Four prompts of 1,024 tokens in one pass, with half of the 32 heads on each card.
    shape = DeltaNetShape(sequences=4, tokens=1_024, heads=16, width=128)
    each = delta_net_seconds(shape, speed.bytes_per_s, speed.attention_ops_per_s, fused=fused)
    added = prompt_time(run, 4, 1_024).compute - prompt_time(plain, 4, 1_024).compute
    assert added == pytest.approx(36 * each)


def test_a_long_prompt_goes_through_the_states_once():
    run = served("h200-sxm-141gb", "vllm", "bf16", DELTA_NETS)
    plain = run._replace(work=run.work._replace(delta_nets=()))
    # 32,768 tokens in four passes of 8,192, each with its own launch.
    added = prompt_time(run, 1, 32_768).compute - prompt_time(plain, 1, 32_768).compute
    assert added == pytest.approx(36 * (4 * 18e-6 + 512 * 2.6e-6))
