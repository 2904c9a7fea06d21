"""Time of a step of preference tuning and reinforcement learning, put together from training and inference."""

from typing import Any

import pytest
from small_models import llama

from planner.memory.training.alignment_models import rollout_workload, value_network, value_training
from planner.performance.estimate import estimate_time
from planner.performance.inference.estimate import inference_time
from planner.performance.links import links_of
from planner.performance.result import TimeResult
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.performance.training.estimate import training_time
from planner.workload.alignment import Alignment
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

NETWORK = llama(num_hidden_layers=8)


def settled(count: int = 1, **fields: Any) -> Training:
    plain = {"method": "lora", "sequence_length": 1024, "micro_batch": 4, "activation_checkpointing": "full"}
    workload = with_defaults(Training.model_validate(plain | fields), NETWORK, count)
    assert isinstance(workload, Training)
    return workload


def grpo(**alignment: Any) -> dict[str, Any]:
    return {"alignment": {"method": "grpo", "group": 4} | alignment}


@pytest.fixture(name="card")
def a_card(catalog: Any) -> Any:
    return catalog.hardware.gpu("a100-sxm4-80gb")


def timed(workload: Training, card: Any, count: int = 1, **setting: Any) -> TimeResult:
    return estimate_time(NETWORK, workload, ((card, count),), TimeSetting(**setting))


def seconds(time: TimeResult, name: str) -> float:
    term = time.term(name)
    return term.seconds if term else 0.0


def test_a_step_of_grpo_is_generation_and_training(card: Any) -> None:
    workload = settled(**grpo())
    time = timed(workload, card)
    plain = training_time(NETWORK, workload.replaced(alignment=Alignment()), ((card, 1),), TimeSetting())
    alone = inference_time(NETWORK, rollout_workload(NETWORK, workload, 4), ((card, 1),))
    assert plain.seconds
    assert alone.seconds
    assert time.seconds
    assert seconds(time, "generation") == pytest.approx(alone.seconds)
    assert time.seconds == pytest.approx(plain.seconds + alone.seconds)
    assert sum(term.exposed_seconds for term in time.terms) == pytest.approx(time.seconds)
    # Four completions of one prompt.
    assert (time.samples, time.samples_per_second) == ("prompts", pytest.approx(1 / time.seconds))
    assert time.tokens_per_second == pytest.approx(4 * 1024 / time.seconds)
    assert (time.low_seconds or 0) < time.seconds < (time.high_seconds or 0)
    assert time.bound == "memory bandwidth"
    assert (time.mfu_fraction or 1) < (plain.mfu_fraction or 0)


@pytest.mark.parametrize(
    ("alignment", "passes"),
    [
        ({}, 0),
        ({"reference": "adapter-off"}, 1),
        ({"reference": "kept", "reward": "model"}, 2),
        ({"engine": "same-cards"}, 1),
        ({"engine": "same-cards", "reference": "kept", "reward": "model"}, 3),
    ],
)
def test_each_model_that_scores_reads_all_completions(card: Any, alignment: dict[str, Any], passes: int) -> None:
    one = seconds(timed(settled(**grpo(reference="adapter-off")), card), "scoring")
    assert seconds(timed(settled(**grpo(**alignment)), card), "scoring") == pytest.approx(passes * one)


def test_ppo_trains_and_asks_its_value_model(card: Any) -> None:
    workload = settled(alignment={"method": "ppo", "reference": "none"})
    time = timed(workload, card)
    alone = training_time(value_network(NETWORK), value_training(workload), ((card, 1),), TimeSetting())
    assert seconds(time, "value_model") == pytest.approx(alone.seconds)
    assert time.samples_per_second == pytest.approx(4 / (time.seconds or 1))
    assert seconds(time, "scoring") > 0


def test_dpo_reads_pairs(card: Any) -> None:
    workload = settled(alignment={"method": "dpo"})
    time, before = timed(workload, card), timed(settled(alignment={"method": "dpo", "reference": "precomputed"}), card)
    double = settled(micro_batch=8)
    plain = training_time(NETWORK, double, ((card, 1),), TimeSetting())
    assert before.seconds == pytest.approx(plain.seconds, rel=0.01)
    assert time.seconds == pytest.approx((before.seconds or 0) + seconds(time, "scoring"))
    assert (time.samples, time.samples_per_second) == ("pairs", pytest.approx(4 / (time.seconds or 1)))
    assert time.bound == "compute"


def test_an_engine_with_little_memory_generates_in_rounds(card: Any) -> None:
    def generation(share: float) -> float:
        many = settled(micro_batch=32, gradient_accumulation=32, **grpo(engine="same-cards", engine_memory=share))
        return seconds(timed(many, card), "generation")

    assert generation(0.08) > 1.5 * generation(0.9)


def test_weights_reach_other_cards_over_the_network(card: Any) -> None:
    near = timed(settled(**grpo(engine="same-cards-asleep")), card)
    far = timed(settled(**grpo(engine="other-cards", engine_cards=2)), card)
    size = NETWORK.parameters * 2
    assert seconds(near, "weight_sync") == pytest.approx(2 * size / card.bandwidth_bytes_per_s)
    assert seconds(far, "weight_sync") == pytest.approx(size / links_of(card, TimeSetting()).network_bytes_per_s)
    assert seconds(far, "generation") < seconds(near, "generation")


def test_a_measured_speed_replaces_the_estimate(card: Any, catalog: Any) -> None:
    workload = settled(**grpo())
    measured = MeasuredSpeed(value=60.0, unit="seconds/step")
    assert timed(workload, card, measured=measured).seconds == pytest.approx(60.0)
    other = catalog.hardware.gpu("h100-sxm5-80gb")
    there = TimeSetting(measured=measured)
    carried = estimate_time(NETWORK, workload, ((card, 1),), there, measured_on=other)
    ratio = (timed(workload, card).seconds or 0) / (timed(workload, other).seconds or 1)
    assert carried.seconds == pytest.approx(60.0 * ratio)


@pytest.mark.parametrize("engine", ["same-cards", "none"])
def test_a_card_of_unknown_speed_has_the_reason(catalog: Any, card: Any, engine: str) -> None:
    unknown = card.evolve(bandwidth_bytes_per_s=None)
    assert timed(settled(**grpo(engine=engine)), unknown).unsupported
    old = catalog.hardware.gpu("tesla-v100-sxm2-32gb")
    if engine == "same-cards":
        assert "generation: " in (timed(settled(**grpo(engine=engine)), old).unsupported or "")
    assert estimate_time(NETWORK, settled(**grpo()), ()).unsupported == "No GPU is chosen."
