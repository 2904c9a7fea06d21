"""Frozen models and the value model beside the policy, and generation by the trainer or by an engine."""

from typing import Any

import pytest
from aligned_training import NETWORK, WEIGHTS, asked, bytes_of, estimated, grpo, usable

from planner.memory.estimate import estimate_memory, fits_on, resolve_workload
from planner.memory.inference.timeline import inference_timeline
from planner.memory.software import serving_memory
from planner.memory.training.alignment_models import engine_share, own_generation, rollout_workload, value_network
from planner.memory.weights import weight_bytes
from planner.units import GIB
from planner.workload.training import Training


@pytest.mark.parametrize(
    ("method", "reference", "copies"),
    [("full", "kept", 1), ("full", "none", 0), ("lora", "adapter-off", 0), ("lora", "kept", 1)],
)
def test_a_reference_takes_as_much_as_the_weights_unless_adapters_are_turned_off(
    method: str, reference: str, copies: int
) -> None:
    memory = estimated(method=method, **grpo(reference=reference))
    assert bytes_of(memory, "step", "other_models") == copies * WEIGHTS * 2
    assert bytes_of(memory, "forward", "other_models") == copies * WEIGHTS * 2


def test_a_reward_model_counts_by_its_parameters() -> None:
    same, larger = (
        bytes_of(estimated(**grpo(reward="model", reward_parameters=size)), "score", "other_models")
        for size in (None, 3 * WEIGHTS)
    )
    assert (same, larger) == (WEIGHTS * 2, WEIGHTS * 6)


def test_ppo_trains_a_value_model_beside_the_policy() -> None:
    memory = estimated(alignment={"method": "ppo", "reference": "none"})
    own = value_network(NETWORK).parameters * 2
    assert own == (WEIGHTS - 32_000 * 4096 + 4096) * 2
    assert bytes_of(memory, "score", "other_models") == 3 * own
    # Its gradients exist before the policy's, and its activations with those of the policy.
    assert bytes_of(memory, "backward", "other_models") == 4 * own
    assert 3 * own < bytes_of(memory, "loss", "other_models") < 4 * own
    assert bytes_of(memory, "step", "other_models") >= 4 * own


def test_the_value_model_has_adapters_as_the_policy_or_is_trained_in_full() -> None:
    own = value_network(NETWORK).parameters * 2
    adapted, full = (
        bytes_of(estimated(method="lora", alignment={"method": "ppo", "value": value}), "score", "other_models")
        for value in ("as-policy", "full")
    )
    assert own < adapted < 1.1 * own
    assert full == 3 * own


def test_the_trainer_generates_all_completions_of_a_step_beside_its_states() -> None:
    memory = estimated(**grpo(completion_length=512))
    training = ["forward", "loss", "backward", "step"]
    assert [phase.name for phase in memory.phases] == ["load", "generate", *training]
    scored = estimated(**grpo(completion_length=512, reference="kept"))
    assert [phase.name for phase in scored.phases] == ["load", "generate", "score", *training]
    workload = resolve_workload(NETWORK, asked(**grpo(completion_length=512)), 1).workload
    assert isinstance(workload, Training)
    rollout = rollout_workload(NETWORK, workload, 4)
    assert (rollout.batch, rollout.prompt_length, rollout.context_length) == (4, 512, 1024)
    alone = inference_timeline(NETWORK, rollout).peak()
    states = WEIGHTS * 2 * 3
    expected = states + sum(term.bytes for term in alone.terms if term.name != "weights")
    assert bytes_of(memory, "generate") - bytes_of(memory, "generate", "framework_overhead") == expected
    assert sum(term.bytes for term in own_generation(NETWORK, workload)) == expected - states


def test_an_engine_takes_its_share_of_the_card_throughout_unless_it_sleeps(catalog: Any) -> None:
    gpu = catalog.hardware.gpu("a100-sxm4-80gb")
    awake, asleep = (
        estimate_memory(NETWORK, asked(**grpo(engine=engine, engine_memory=0.5)), gpu, usable(80))
        for engine in ("same-cards", "same-cards-asleep")
    )
    for memory in (awake, asleep):
        assert bytes_of(memory, "generate", "engine") == 40 * GIB
        assert any("vLLM takes 50 % of the GPU" in note for note in memory.notes)
    assert bytes_of(awake, "backward", "engine") == bytes_of(awake, "sync", "engine") == 40 * GIB
    tables = bytes_of(asleep, "backward", "engine")
    assert 0 < tables < GIB
    assert bytes_of(asleep, "sync", "engine") == weight_bytes(NETWORK, "bf16") + tables
    assert [phase.name for phase in awake.phases][-1] == "sync"
    fits = list(
        fits_on(NETWORK, asked(**grpo(engine="same-cards", engine_memory=0.5)), [(gpu, usable(80)), (gpu, usable(40))])
    )
    assert fits[0].total_bytes == awake.total_bytes
    assert fits[0].total_bytes - fits[1].total_bytes == 20 * GIB


def test_an_engine_without_a_card_holds_what_its_completions_need(catalog: Any) -> None:
    memory = estimated(**grpo(engine="same-cards"))
    workload = resolve_workload(NETWORK, asked(**grpo(engine="same-cards")), 1).workload
    assert isinstance(workload, Training)
    alone = serving_memory("vllm").timeline(NETWORK, rollout_workload(NETWORK, workload, 4)).peak().total
    assert bytes_of(memory, "generate", "engine") == alone
    assert "vLLM holds what the 4 completions of a step need." in memory.notes


def test_an_engine_that_does_not_start_leaves_no_verdict(catalog: Any) -> None:
    starved, gpu = asked(**grpo(engine="same-cards", engine_memory=0.02)), catalog.hardware.gpu("a100-sxm4-80gb")
    small = estimate_memory(NETWORK, starved, gpu, usable(80))
    assert any("does not start with 2 %" in note for note in small.notes)
    assert (small.verdict, small.fit_probability) == (None, None)
    assert "does not start with 2 %" in small.unsupported[0]
    fits, misses = fits_on(NETWORK, starved, [(gpu, usable(80)), (gpu, usable(1))])
    assert (fits.verdict, fits.unsupported) == (None, small.unsupported)
    assert (misses.verdict, misses.unsupported) == ("does-not-fit", ())
    assert bytes_of(small, "generate", "engine") > weight_bytes(NETWORK, "bf16")


def test_unsloth_shares_the_weights_of_trainer_and_engine() -> None:
    workload = resolve_workload(NETWORK, asked(method="lora", **grpo(engine="same-cards")), 1).workload
    assert isinstance(workload, Training)
    own, shared = (engine_share(NETWORK, workload, None, shares_weights=shares) for shares in (False, True))
    assert own.generating.bytes - shared.generating.bytes == weight_bytes(NETWORK, "bf16")
    memory = estimated(method="lora", profile="unsloth", **grpo(engine="same-cards"))
    assert bytes_of(memory, "generate", "engine") == shared.generating.bytes


def test_a_quantized_model_generates_from_its_own_format() -> None:
    workload = resolve_workload(NETWORK, asked(method="qlora", compute="amp-bf16", **grpo()), 1).workload
    assert isinstance(workload, Training)
    assert rollout_workload(NETWORK, workload, 1).weights == "nf4"
    exact = resolve_workload(NETWORK, asked(compute="fp32", **grpo()), 1).workload
    assert isinstance(exact, Training)
    rollout = rollout_workload(NETWORK, exact, 1)
    assert (rollout.weights, rollout.kv_cache, rollout.profile) == ("fp32", "fp32", "hf")
