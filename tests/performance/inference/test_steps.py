"""Precomputed times of steps against the passes that they stand for."""

import pytest
from timed_requests import served

from planner.performance.inference.passes import PassBatch, PassTime
from planner.performance.inference.request import cached_bytes, decoding_step_time, prompt_time, served_pass_time
from planner.performance.inference.steps import (
    AS_ESTIMATED,
    StepScale,
    StepTimes,
    expert_exchange_seconds,
    without_experts,
)

H100 = {"engine": "vllm", "weights": "bf16", "gpu": "h100-sxm5-80gb"}


def mixed_pass(run, decoding, context, tokens):
    work = run.work
    rows = decoding + tokens
    batch = PassBatch(
        rows=rows,
        sequences=decoding + 1,
        outputs=decoding + 1,
        cached_bytes=decoding * cached_bytes(run, context),
        attention_flops=work.attention_flops(tokens),
        scores=work.scores(tokens),
        tokens=tokens,
    )
    return served_pass_time(run, batch).seconds


def test_a_decoding_step_is_that_of_the_pass():
    run = served(**H100)
    steps = StepTimes(run, 1_500)
    for sequences in (1, 7, 64, 256):
        found = steps.decoding(sequences)
        for context in (100, 1_500, 4_000):
            seconds = found.seconds + found.per_token * sequences * context
            exact = decoding_step_time(run, sequences, context).seconds
            assert max(seconds, found.least) == pytest.approx(exact, rel=0.002), (sequences, context)


def test_a_step_is_calculated_once_for_a_number_of_sequences():
    steps = StepTimes(served(**H100), 1_500)
    assert steps.decoding(8) is steps.decoding(8)


def test_the_host_limits_small_networks():
    run = served(**{**H100, "model": "Qwen/Qwen3-0.6B"})
    found = StepTimes(run, 1).decoding(1_000)
    assert found.least == pytest.approx(1_000 * 25e-6)
    assert found.least > found.seconds


def test_interpolation_costs_less_than_two_percent():
    run = served(**H100)
    steps = StepTimes(run, 1_500)
    for tokens in (5, 100, 700, 1_000, 3_000, 8_000):
        for decoding in (0, 30, 200):
            attention = steps.attention(0, tokens)
            found = steps.mixed(decoding, decoding * 1_500, tokens, attention)
            assert found == pytest.approx(mixed_pass(run, decoding, 1_500, tokens), rel=0.02), (tokens, decoding)


def test_chunks_of_a_prompt_take_as_long_as_the_prompt():
    run = served(**H100)
    steps = StepTimes(run, 1_500)
    parts = sum(steps.mixed(0, 0, 2_048, steps.attention(begin, begin + 2_048)) for begin in range(0, 8_192, 2_048))
    assert parts == pytest.approx(prompt_time(run, 1, 8_192).seconds, rel=0.12)


def test_an_engine_with_small_passes_takes_several():
    run = served()
    steps = StepTimes(run, 500)
    assert steps.mixed(0, 0, 2_048, 0.0) == pytest.approx(4 * steps.mixed(0, 0, 512, 0.0))


def test_a_step_has_the_rows_of_its_graph():
    run = served(**H100)
    padded_rows = StepTimes(run, 1_000, lambda sequences: 256).decoding(10)
    assert padded_rows.seconds == pytest.approx(StepTimes(run, 1_000).decoding(256).seconds, rel=1e-6)


def test_scales_lengthen_decoding_and_prompts():
    run = served(**H100)
    slow, usual = StepTimes(run, 500, scale=StepScale(1.5, 2.0)), StepTimes(run, 500, scale=AS_ESTIMATED)
    assert slow.decoding(8).seconds == pytest.approx(1.5 * usual.decoding(8).seconds)
    assert slow.mixed(0, 0, 1_000, 0.0) == pytest.approx(2 * usual.mixed(0, 0, 1_000, 0.0))


def test_stages_work_on_parts_of_the_sequences():
    one, two = served(**H100), served(**H100, stages=2)
    whole, split = StepTimes(one, 1_000), StepTimes(two, 1_000)
    assert split.later_stages(1_000, 0.0) == pytest.approx(0.5 * split.mixed(0, 0, 2_000, 0.0) / 1.1, rel=0.08)
    assert whole.later_stages(1_000, 0.0) == 0
    assert split.decoding(64).seconds == pytest.approx(1.1 * decoding_step_time(two, 32, 1).seconds, rel=0.02)


def test_states_are_read_once_for_each_sequence():
    run = served(**{**H100, "model": "state-spaces/mamba-2.8b-hf"})
    steps = StepTimes(run, 1_000)
    assert steps.decoding(64).per_token == pytest.approx(0, abs=1e-12)
    assert steps.decoding(64).seconds == pytest.approx(decoding_step_time(run, 64, 1_000).seconds, rel=0.01)
    assert steps.attention(0, 1_000) == 0
    assert steps.attention(10, 1_000) == 0


def test_measured_kernels_are_split_as_well():
    run = served(engine="tensorrt-llm", weights="bf16", gpu="h100-sxm5-80gb")
    steps = StepTimes(run, 1_000)
    assert steps.mixed(16, 16_000, 1_000, steps.attention(0, 1_000)) > steps.decoding(16).seconds


def test_shared_experts_are_read_in_part():
    run = served(**{**H100, "model": "mistralai/Mixtral-8x7B-v0.1"})
    alone, shared = StepTimes(run, 1_000), StepTimes(run, 1_000, expert_ranks=2)
    assert alone.experts(64) == 0
    experts = sum(kind.bytes for kind in run.work.experts)
    exchange = expert_exchange_seconds(run.split.links, 2, 10_000 * run.work.hidden * 2) * run.work.expert_layers
    read = experts / 2 / (3.35e12 * 0.80)
    products = 2 * run.work.active_expert_parameters * 10_000 / 2 / (989.5e12 * 0.79 * 0.8)
    assert shared.experts(10_000) == pytest.approx(read + products + exchange, rel=0.01)
    dense = without_experts(run.work)
    assert dense.parameters < run.work.parameters
    assert shared.decoding(64).seconds < alone.decoding(64).seconds
    assert PassTime().seconds == 0


def test_shared_experts_are_computed_while_the_host_launches_kernels():
    run = served(**{**H100, "model": "Qwen/Qwen3-30B-A3B"})
    steps = StepTimes(run, 500, expert_ranks=2)
    launched = 48 * 0.72e-3
    alone = steps.mixed(0, 0, 600, 0.0)
    assert alone == pytest.approx(launched, rel=0.01)
    assert steps.mixed(0, 0, 600, 0.0, 1e-3) == alone
    assert steps.mixed(0, 0, 600, 0.0, 1.0) > 1.0
    assert steps.mixed(0, 0, 400, 0.0) < alone
