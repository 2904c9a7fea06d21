"""Deployments: the capacity of the cache from the memory estimate, and why there may be none."""

import pytest
from served_traffic import CHAT, deployed, plan_on
from small_models import bundled

from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice
from planner.plan.serving.service_simulation import deploy_plan
from planner.serving.deployment import Disaggregation, ServingSetup


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
    assert reason(plan) in ("no memory is left for the KV cache", "the model does not fit on these cards")


def test_a_measured_spread_is_narrower():
    measured, other = deployed(plan_on("h100-sxm5-80gb")), deployed(plan_on("l40s"))
    assert measured.errors.decoding < other.errors.decoding == pytest.approx(1.6)
