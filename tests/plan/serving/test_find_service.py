"""The search for the hardware of a service."""

from datetime import date
from functools import partial

import pytest
from served_traffic import CHAT, plan_on
from small_models import bundled

from planner.errors import SpecError
from planner.plan.serving import find_service
from planner.plan.serving.answer import ServingAnswer, ServingWish
from planner.plan.serving.find_service import plan_serving
from planner.plan.serving.service_simulation import simulate_serving
from planner.serving.deployment import ServingSetup
from planner.serving.targets import Targets, parse_latency_target
from planner.serving.traffic import (
    CommonPrefix,
    ConcurrentClients,
    Sessions,
    SharedPrefixes,
    Traffic,
    TrafficTrace,
)
from planner.workload.training import Training

TODAY = date(2026, 11, 22)
TARGETS = Targets(limits=(parse_latency_target("ttft", "p95=1s"), parse_latency_target("tpot", "p95=60ms")))
TRACE = TrafficTrace(
    arrival_seconds=tuple(number / 4 for number in range(40)), input_tokens=(300,) * 40, output_tokens=(20,) * 40
)


def searched(plan=None, traffic=CHAT, targets=TARGETS, stop=lambda: False, setup=None, **wish):
    limits = ServingWish(**{"gpus": ("l40s", "h100-sxm5-80gb"), "cards_per_replica": (1,), **wish})
    return list(
        plan_serving(plan or plan_on(), bundled(), traffic, targets, TODAY, limits, setup, requests=60, stop=stop)
    )


def test_the_cheapest_cards_that_hold_the_targets_are_found():
    answers = searched()
    last = answers[-1]
    assert last.complete
    assert not answers[0].complete
    assert answers[0].best is None
    best = last.best
    assert best.simulation.holds
    assert best.usd_per_month == min(option.usd_per_month for option in last.options)
    assert best.cards == best.replicas * best.cards_per_replica == best.plan.count
    again = simulate_serving(best.plan, bundled(), CHAT, TARGETS, requests=300, ranges=False)
    assert (again.replicas, again.holds) == (best.replicas, True)


def test_a_service_is_paid_for_day_and_night_of_each_month(monkeypatch):
    demands, own = [], find_service.own_options

    def noted(market, capable):
        demands.extend(cards.demand for cards in capable.values())
        return own(market, capable)

    monkeypatch.setattr(find_service, "own_options", noted)
    searched(gpus=("l40s",))
    assert {(demand.period, demand.periods_per_year, demand.always_on) for demand in demands} == {("month", 12.0, True)}


def test_more_requests_need_more_replicas():
    quick = Targets(limits=(parse_latency_target("ttft", "p95=120ms"),))
    rates = (1, 50, 75, 100)
    found = [searched(traffic=CHAT.at_rate(rate), targets=quick, gpus=("l40s",))[-1].best.replicas for rate in rates]
    assert found == sorted(set(found))
    assert found[0] == 1


def test_the_number_of_replicas_is_found_with_the_share_of_one_before_all_are_simulated(monkeypatch):
    whole, option = [], find_service._option

    def noted(question, configuration, replicas):
        whole.append(replicas)
        return option(question, configuration, replicas)

    monkeypatch.setattr(find_service, "_option", noted)
    quick = Targets(limits=(parse_latency_target("ttft", "p95=100ms"),))
    assert searched(traffic=CHAT.at_rate(100), targets=quick, gpus=("l40s",))[-1].best.replicas == 12
    assert whole == [12]


def test_the_option_that_costs_least_comes_first_whichever_is_tried_first():
    quick = Targets(limits=(parse_latency_target("ttft", "p95=100ms"),))
    answers = searched(traffic=CHAT.at_rate(100), targets=quick, gpus=("h100-sxm5-80gb", "instinct-mi300x"))
    assert next(each.best.plan.gpu for each in answers if each.best) == "h100-sxm5-80gb"
    cheapest, other = answers[-1].options
    assert (cheapest.plan.gpu, other.plan.gpu) == ("instinct-mi300x", "h100-sxm5-80gb")
    assert cheapest.usd_per_month < other.usd_per_month


def test_cards_whose_speed_was_never_measured_exclude_no_dearer_ones_that_were():
    last = searched(gpus=("rtx-pro-6000-blackwell-ws", "h100-sxm5-80gb"))[-1]
    measured, guessed = last.options
    assert (measured.plan.gpu, measured.hardware.basis != "unmeasured") == ("h100-sxm5-80gb", True)
    assert guessed.hardware.basis == "unmeasured"
    assert guessed.usd_per_month < measured.usd_per_month


def test_of_cheaper_options_whose_speed_was_never_measured_the_three_cheapest_are_looked_for(monkeypatch):
    tried, share_holds = [], find_service._share_holds

    def noted(inputs, configuration, replicas):
        tried.append(configuration.plan.gpu)
        return share_holds(inputs, configuration, replicas)

    monkeypatch.setattr(find_service, "_share_holds", noted)
    cheapest = ["rtx-5090", "rtx-pro-5000-blackwell-48gb", "rtx-pro-6000-blackwell-ws"]
    last = searched(gpus=("rtx-pro-6000-blackwell-server", *cheapest, "h100-sxm5-80gb"))[-1]
    assert [option.plan.gpu for option in last.options] == tried == ["h100-sxm5-80gb", *cheapest]
    assert {each.reason: each.count for each in last.left_out} == {"cannot beat the best option": 1}
    (dearer,) = searched(gpus=("rtx-pro-6000-blackwell-server",))[-1].options
    assert last.options[-1].usd_per_month < dearer.usd_per_month < last.best.usd_per_month


def test_the_nearest_is_simulated_as_a_whole_only_while_nothing_meets_the_targets(monkeypatch):
    whole, option = [], find_service._option

    def noted(inputs, configuration, replicas):
        whole.append(configuration.plan.gpu)
        return option(inputs, configuration, replicas)

    monkeypatch.setattr(find_service, "_option", noted)
    quick = Targets(limits=(parse_latency_target("tpot", "mean=10ms"),))
    gpus = ("l40s", "h100-sxm5-80gb", "rtx-pro-5000-blackwell-48gb")
    last = searched(traffic=CHAT.at_rate(0.5), targets=quick, gpus=gpus, most_cards=1)[-1]
    assert [option.plan.gpu for option in last.options] == ["h100-sxm5-80gb"]
    assert {each.reason: each.count for each in last.left_out} == {"misses its targets even with the most GPUs": 2}
    assert whole == ["l40s", "h100-sxm5-80gb"]


def test_fewest_cards_or_watts_instead_of_dollars():
    busy = CHAT.at_rate(60)
    cards = searched(traffic=busy, objective="cards")[-1].best
    watts = searched(traffic=busy, objective="watts")[-1].best
    assert cards.plan.gpu == "h100-sxm5-80gb"
    assert watts.watts <= cards.watts


def test_what_would_break_the_best_option():
    best = searched(traffic=CHAT.at_rate(20), gpus=("l40s",))[-1].best
    found = {each.change: each for each in best.consequences}
    assert {"longer-prompts", "longer-answers", "more-requests", "fp8-cache"} <= found.keys()
    if best.replicas > 1:
        assert not found["fewer-replicas"].holds
        assert found["fewer-replicas"].broken
    assert found["fp8-cache"].cache_factor == pytest.approx(2.0, abs=0.1)


def test_nothing_holds_impossible_targets_but_the_nearest_is_named():
    impossible = Targets(limits=(parse_latency_target("ttft", "p95=1ms"),))
    last = searched(targets=impossible, most_cards=2, gpus=("l40s", "h100-sxm5-80gb", "rtx-3090", "l4"))[-1]
    assert last.options == ()
    assert last.nearest is not None
    assert not last.nearest.simulation.holds
    (missed,) = last.nearest.simulation.targets
    assert find_service._worst_miss(last.nearest) == pytest.approx(missed.seconds / 0.001)
    assert "misses its targets even with the most GPUs" in {each.reason for each in last.left_out}


def test_configurations_are_left_out_with_their_reasons():
    last = searched(gpus=(), vendors=("NVIDIA", "Apple"), having=("own",), cards_per_replica=(1, 3), most_cards=8)[-1]
    reasons = {each.reason for each in last.left_out}
    assert {"not-supported", "does-not-fit", "cannot beat the best option"} <= reasons
    over = searched(budget_usd=1.0)[-1]
    assert over.options == ()
    assert "over the budget" in {each.reason for each in over.left_out}
    slots = plan_on("rtx-4090", profile="llama.cpp", weights="Q4_K_M")
    many = searched(slots, cards_per_replica=(64,), gpus=("rtx-4090",))[-1]
    assert many.options == ()
    assert searched(cards_per_replica=(64,), most_cards=48)[-1].options == ()
    assert "its software cannot share the model between so many GPUs" in {each.reason for each in many.left_out}
    assert searched(traffic=CHAT.at_rate(5_000), most_cards=1)[-1].best is None


def test_several_cards_share_a_large_model():
    large = plan_on(model={"id": "Qwen/Qwen2.5-32B"})
    best = searched(large, CHAT.at_rate(1), gpus=("l40s",), cards_per_replica=(1, 2, 4))[-1].best
    assert best.cards_per_replica == 2  # its 64 GiB are more than the 48 of one card
    assert (best.plan.workload.parallel.tensor, best.plan.workload.parallel.sharing) == (2, "manual")


def test_settings_are_tried():
    last = searched(gpus=("l40s",), kv_caches=("fp8", "q8_0"), weights=("fp8",), step_tokens=(512,))[-1]
    changes = {change for option in last.options for change in option.changes}
    assert changes <= {"weights in fp8", "KV cache in fp8", "512 tokens per step"}
    assert changes
    slots = plan_on("rtx-4090", profile="llama.cpp", weights="Q4_K_M")
    assert searched(slots, CHAT.at_rate(0.2), gpus=("rtx-4090",), step_tokens=(512,))[-1].complete


def test_targets_that_surely_hold_need_no_fewer_replicas():
    rate = CHAT.at_rate(30)
    plain, surely = (searched(traffic=rate, gpus=("l40s",), surely=sure)[-1].best for sure in (False, True))
    assert surely.replicas >= plain.replicas


def test_a_plan_without_a_program_is_served_by_vllm():
    assert searched(plan_on(profile=None))[-1].best.plan.workload.profile == "vllm"


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(SpecError, match="this plan trains"):
        searched(plan_on().evolve(workload=Training()))
    at_once = Traffic.of_trace(TRACE.evolve(arrival_seconds=(0.0,) * 40))
    with pytest.raises(SpecError, match="no rate to plan for"):
        searched(traffic=at_once)
    with pytest.raises(SpecError, match="rtx-4091"):
        searched(gpus=("rtx-4091",))
    split = ServingSetup(disaggregation={"prefill_replicas": 1, "decode_replicas": 1})
    with pytest.raises(SpecError, match="finds the number of replicas itself"):
        searched(setup=split)


def _has_at_least(seen, most):
    return len(seen) >= most


def test_a_search_stops_when_it_is_asked_to():
    assert len(searched(stop=lambda: True)) == 1
    limits = ServingWish(gpus=("l40s", "h100-sxm5-80gb"), cards_per_replica=(1,))
    for most in (1, 2, 3):
        seen: list[ServingAnswer] = []
        stop = partial(_has_at_least, seen, most)
        seen.extend(plan_serving(plan_on(), bundled(), CHAT, TARGETS, TODAY, limits, requests=20, stop=stop))
        assert len(seen) == most
        assert seen[-1].best is None or seen[-1].best.consequences == ()


def test_clients_traces_sessions_and_common_beginnings_are_planned_for():
    for traffic in (
        CHAT.evolve(arrivals=ConcurrentClients(clients=6)),
        Traffic.of_trace(TRACE),
        Traffic.of_trace(TRACE.evolve(beginnings=((CommonPrefix(0, 200),),) * 40)),
        CHAT.at_rate(1).evolve(sessions=Sessions(turns=3)),
        CHAT.evolve(prefixes=SharedPrefixes(tokens=300)),
    ):
        assert searched(traffic=traffic, gpus=("l40s",))[-1].best is not None
