"""The probability of fitting: a split normal distribution between stated ends, never rising with the need."""

from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_cards import usable
from small_models import bundled, llama

from planner.memory.chance import (
    KNOWN_VERSION,
    ByteInterval,
    Margin,
    Spread,
    margin_verdict,
    memory_margin,
    probability_of_fit,
)
from planner.memory.estimate import estimate_memory
from planner.memory.fit import device_shares, judge_bytes
from planner.workload.workload import Inference, Training

CARD = 100


sizes = st.integers(0, 200)


@st.composite
def intervals(draw: st.DrawFn) -> ByteInterval:
    return ByteInterval(*sorted(draw(st.tuples(sizes, sizes, sizes))))


def test_the_margin_is_worst_where_the_most_is_needed_of_the_least():
    assert memory_margin(ByteInterval(5, 10, 30), ByteInterval(80, 90, 95)) == (80 - 30, 90 - 10, 95 - 5)


@pytest.mark.parametrize(
    ("margin", "chance"),
    [
        (Margin(0, 10, 20), 0.95),  # the upper end just fits
        (Margin(-10, 0, 20), 0.5),  # what is expected just fits
        (Margin(-30, -20, 0), 0.05),  # the lower end just fits
        (Margin(-10, 10, 20), NormalDist().cdf(1.6448536269514722 / 2)),
        (Margin(-40, -10, 20), NormalDist().cdf(-1.6448536269514722 / 3)),
        (Margin(100, 200, 300), 1 - 0.05 * 2.718281828459045**-20),  # the whole card left at worst
        (Margin(-40, -20, -5), 0.05 * 2.718281828459045**-1),  # a twentieth of the card too much at best
        (Margin(0, 0, 0), 0.95),
        (Margin(-1, -1, -1), 0.05 * 2.718281828459045**-0.2),
    ],
)
def test_the_chance_by_hand(margin, chance):
    assert probability_of_fit(margin, CARD) == pytest.approx(chance, abs=1e-12)


@given(intervals(), intervals())
def test_the_verdict_is_what_the_chance_says(need, room):
    margin = memory_margin(need, room)
    chance = probability_of_fit(margin, CARD)
    assert 0 <= chance <= 1
    by_chance = "fits" if chance >= 0.95 else "tight" if chance >= 0.5 else "does-not-fit"
    assert margin_verdict(margin) == by_chance
    assert (chance >= 0.5) == (margin.expected >= 0)


@given(intervals(), intervals(), st.tuples(sizes, sizes, sizes))
def test_a_larger_need_is_never_likelier_to_fit(need, room, more):
    grown = ByteInterval(*(size + added for size, added in zip(need, more, strict=True)))
    assert probability_of_fit(memory_margin(grown, room), CARD) <= probability_of_fit(memory_margin(need, room), CARD)


@given(intervals(), intervals(), sizes)
def test_what_others_hold_never_helps(need, room, taken):
    less = ByteInterval(*(size - taken for size in room))
    assert probability_of_fit(memory_margin(need, less), CARD) <= probability_of_fit(memory_margin(need, room), CARD)


def test_a_card_without_memory_has_a_chance_too():
    assert probability_of_fit(Margin(-1, -1, -1), 0) < 0.05


@pytest.mark.parametrize(
    ("field", "workloads"),
    [
        ("batch", [Inference(batch=size, profile="vllm") for size in range(1, 60)]),
        ("batch", [Inference(batch=size, prompt_logits="all") for size in range(1, 40)]),
        ("context", [Inference(context_length=1 + 1000 * step) for step in range(130)]),
        ("micro-batch", [Training(compute="bf16", micro_batch=size) for size in range(1, 40)]),
        ("length", [Training(method="qlora", weights="nf4", sequence_length=64 * step) for step in range(1, 60)]),
    ],
)
def test_more_work_never_raises_the_probability(field, workloads):
    card = bundled().hardware.gpu("h100-sxm5-80gb" if isinstance(workloads[0], Training) else "rtx-4090")
    available = bundled().hardware.usable_memory(card)
    found = [estimate_memory(llama(), workload, card, available) for workload in workloads]
    chances = [result.fit_probability for result in found]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > chances[-1]


def test_the_probability_is_that_of_the_margin():
    fit = judge_bytes(ByteInterval(70, 80, 100), usable(90, 100), 10, ())
    assert fit.fit_probability == probability_of_fit(Margin(90 - 10 - 100, 100 - 10 - 80, 100 - 10 - 70), 100)
    share = device_shares(fit._replace(gpu_id="rtx-4090"), 2)[0]
    assert (share.fit_probability, share.verdict) == (fit.fit_probability, "tight")


def test_a_spread_holds_the_versions_that_may_run():
    counted = ByteInterval(99, 100, 130)
    assert Spread(below=0.07, above=0.16).around(counted) == ByteInterval(93, 100, 130)
    assert Spread(below=0, above=0.5).around(counted) == ByteInterval(99, 100, 150)
    assert Spread(below=0.5, above=0).around(counted, stored=80) == ByteInterval(79, 100, 130)  # 99 % of what is stored
    assert KNOWN_VERSION.around(counted) == counted


def test_the_version_of_transformers_is_not_known_and_that_of_vllm_is():
    def upper_share(**changes):
        result = estimate_memory(bundled().models.model("Qwen/Qwen3-8B"), Inference(**changes))
        overhead = result.term("framework_overhead")
        return (result.high_bytes - overhead.high_bytes) / (result.total_bytes - overhead.bytes)

    assert upper_share() == pytest.approx(1.16, abs=0.01)
    assert upper_share(profile="vllm") < 1.12
