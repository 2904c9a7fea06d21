"""Deployments: the capacity of the cache from the memory estimate, and why there may be none."""

import pytest
from served_traffic import CHAT, deployed, plan_on
from small_models import bundled

from planner.performance.inference.request import prompt_time
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice
from planner.plan.serving.service_simulation import deploy_plan
from planner.serving.deployment import Disaggregation, ServingSetup, _obstacle
from planner.serving.simulate import simulate_traffic
from planner.serving.traffic import FixedLength, SharedPrefixes


def reason(plan, **setup):
    found = deploy_plan(plan, bundled(), CHAT, ServingSetup(**setup), requests=5, seed=0)
    assert isinstance(found, str)
    return found


def test_the_cache_has_the_capacity_of_the_memory_estimate():
    plan = plan_on("l40s", 2, context_length=768, prompt_length=500)
    found = deployed(plan)
    pool = evaluate(plan, bundled()).memory.cache_pool
    assert pool is not None
    assert found.cache_tokens == pool.tokens // 16 * 16
    assert (found.replicas, found.cards_per_replica, found.expert_ranks) == (2, 1, 1)


def test_slots_have_no_pool():
    found = deployed(plan_on("rtx-4090", profile="llama.cpp", weights="Q4_K_M"))
    assert found.cache_tokens is None
    assert found.scheduling.slot_tokens == 768


def test_a_transfer_takes_the_cards_own_link_unless_another_is_given():
    split = Disaggregation(prefill_replicas=1, decode_replicas=1)
    usual = deployed(plan_on("h100-sxm5-80gb", 2), disaggregation=split)
    named = deployed(plan_on("h100-sxm5-80gb", 2), disaggregation=split.evolve(link_bytes_per_s=1e9))
    assert usual.transfer_bytes_per_s > 1e11
    assert named.transfer_bytes_per_s == 1e9


def test_the_reason_is_said_where_nothing_can_be_simulated():
    assert "does not answer token by token" in reason(
        plan_on(model=ModelChoice(id="google-bert/bert-base-uncased"), profile="hf")
    )
    assert "needs compute capability" in reason(plan_on("gtx-1080-ti"))
    assert "does not fit" in reason(plan_on("l40s", model=ModelChoice(id="meta-llama/Llama-3.1-70B")))
    assert "is unknown" in reason(plan_on("a10g"))
    split = Disaggregation(prefill_replicas=1, decode_replicas=2)
    assert "are not the 2 of the plan" in reason(plan_on("l40s", 2), disaggregation=split)
    two = split.evolve(decode_replicas=1)
    assert "one batch after the other" in reason(plan_on("l40s", 2, profile="hf"), disaggregation=two)
    shared = plan_on("h100-sxm5-80gb", 2, weights="fp8", parallel={"data": 2, "expert": 2, "sharing": "manual"}).evolve(
        model={"id": "Qwen/Qwen3-30B-A3B-Instruct-2507"}
    )
    assert "share experts" in reason(shared, disaggregation=two)


def test_a_cache_without_room_is_a_reason():
    plan = plan_on("l40s", context_length=768, prompt_length=500, engine={"memory_utilization": 0.3})
    assert reason(plan) in ("no memory is left for the KV cache", "the model does not fit on these GPUs")


@pytest.mark.parametrize(("tokens", "said"), [(0, "no memory is left for the KV cache"), (1, "")])
def test_a_cache_has_room_for_a_token_or_none(tokens, said):
    evaluation = evaluate(plan_on("l40s", context_length=768, prompt_length=500), bundled())
    memory = evaluation.memory
    left = memory.replaced(cache_pool=memory.cache_pool.evolve(tokens=tokens))
    assert _obstacle(evaluation.architecture, left) == said


def test_a_measured_spread_is_narrower():
    measured, other = deployed(plan_on("h100-sxm5-80gb")), deployed(plan_on("l40s"))
    assert measured.errors.decoding < other.errors.decoding == pytest.approx(1.6)


def test_ram_holds_blocks_and_brings_them_back_faster_than_a_prompt_is_read():
    """By hand: Llama 3.1 8B keeps 131,072 bytes of a token, so that 16 GiB hold 131,072 tokens, 8,192 blocks of 16.

    vLLM's blog of 2026-01-08 has 2 to 22 times faster first tokens from RAM, by the length of the prompt (H100).
    """
    found = deployed(plan_on("h100-sxm5-80gb", cache_in_ram_bytes=16 * 2**30))
    assert found.ram_blocks == pytest.approx(8_192, abs=2)
    brought = 16 * 131_072 / found.served.split.links.host_bytes_per_s
    assert found.ram_token_seconds == pytest.approx((brought + 3.3e-6) / 16, rel=1e-3)
    for tokens in (1_000, 10_000, 90_000):
        assert 2 < prompt_time(found.served, 1, tokens).seconds / (tokens * found.ram_token_seconds) < 22
    bare = deployed(plan_on("h100-sxm5-80gb", cache_in_ram_bytes=16 * 2**30), prefix_cache=False)
    assert bare.ram_blocks == deployed(plan_on("h100-sxm5-80gb")).ram_blocks == 0


def test_a_service_with_a_cache_in_ram_brings_back_what_does_not_fit_on_the_card():
    prompt_chunks = SharedPrefixes(tokens=2_000, prefixes=40, share=1.0)
    traffic = CHAT.evolve(input=FixedLength(tokens=2_100), prefixes=prompt_chunks)
    fields = {"context_length": 2_200, "prompt_length": 2_100, "engine": {"memory_utilization": 0.48}}
    plain = simulate_traffic(deployed(plan_on("l40s", **fields)), traffic, requests=200, ranges=False)
    held = deployed(plan_on("l40s", cache_in_ram_bytes=2**36, **fields))
    kept = simulate_traffic(held, traffic, requests=200, ranges=False)
    assert plain.cache.ram_hit_fraction == 0
    assert kept.cache.ram_hit_fraction > 0.1
    assert kept.cache.prefix_hit_fraction > plain.cache.prefix_hit_fraction


def test_drafts_of_replicas_that_share_experts_are_refused():
    model = ModelChoice(id="mistralai/Mixtral-8x7B-v0.1")
    shared = {"parallel": {"data": 4, "expert": 4}, "speculation": {"method": "ngram"}}
    assert "share experts are not simulated" in reason(plan_on("h200-sxm-141gb", 4, model=model, **shared))


def test_a_service_with_drafts_answers_sooner_and_says_what_a_check_yields():
    drafted = deployed(plan_on("h100-sxm5-80gb", speculation={"method": "eagle3"}))
    plain = deployed(plan_on("h100-sxm5-80gb"))
    fast, slow = (simulate_traffic(each, CHAT, requests=100, ranges=False) for each in (drafted, plain))
    assert fast.latencies[1].mean_seconds < 0.6 * slow.latencies[1].mean_seconds
    assert any("yields 2.69 tokens on average" in note for note in fast.notes)
