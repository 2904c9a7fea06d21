"""Options of a service and the state of a search."""

from served_traffic import CHAT, plan_on
from small_models import bundled

from planner.plan.serving.answer import OptionInputs, ServingAnswer, ServingOption, ServingWish, find_consequences
from planner.plan.serving.service_simulation import simulate_serving, with_room_for
from planner.serving.deployment import ServingSetup
from planner.serving.result import ServingSimulation
from planner.serving.targets import Goodput, Targets, parse_latency_target
from planner.serving.traffic import ConcurrentClients, SharedPrefixes

OPTION = ServingOption(
    plan=plan_on("l40s", 4),
    replicas=2,
    cards_per_replica=2,
    hardware=None,
    simulation=ServingSimulation(),
    watts=None,
)


def test_an_option_counts_its_cards_and_may_have_no_price():
    assert OPTION.cards == 4
    assert OPTION.usd_per_month is None


def test_an_answer_is_complete_when_all_was_tried():
    begun = ServingAnswer(wish=ServingWish(), done=0, total=2)
    assert (begun.best, begun.complete) == (None, False)
    ended = ServingAnswer(wish=ServingWish(), done=2, total=2, options=(OPTION,))
    assert (ended.best, ended.complete) == (OPTION, True)


TARGETS = Targets(limits=(parse_latency_target("ttft", "p95=400ms"),))


def consequences(plan, traffic=CHAT, targets=TARGETS, stop=lambda: False):
    sized = with_room_for(plan, traffic, 60, 0)
    option = ServingOption(
        plan=sized,
        replicas=plan.count,
        cards_per_replica=1,
        hardware=None,
        simulation=simulate_serving(sized, bundled(), traffic, targets, requests=60, ranges=False),
        watts=None,
    )
    question = OptionInputs(option, bundled(), traffic, targets, ServingSetup(), 60, 0, stop)
    return {each.change: each for each in find_consequences(question)}


def test_the_smallest_increase_that_breaks_a_target_is_found():
    found = consequences(plan_on("l40s", 2), CHAT.at_rate(8))
    assert all(bool(each.broken) is not each.holds for each in found.values())
    prompts = found["longer-prompts"]
    assert (prompts.factor, prompts.holds) == (1.5, True) or prompts.broken == ("p95 time to first token",)
    assert found["fewer-replicas"].factor == 0.5
    assert found["fp8-cache"].cache_factor > 1.9


def test_more_requests_break_goodput_and_throughput():
    tight = Targets(goodput=Goodput(share=0.99, ttft_seconds=0.15))
    found = consequences(plan_on(), CHAT.at_rate(12), tight)
    assert "goodput" in found["more-requests"].broken
    flooded = consequences(plan_on(), CHAT.at_rate(500), Targets())
    assert "throughput" in flooded["more-requests"].broken


def test_a_prefix_cache_that_is_used_may_be_needed():
    assert "no-prefix-cache" in consequences(plan_on(), CHAT.evolve(prefixes=SharedPrefixes(tokens=400)))
    assert "no-prefix-cache" not in consequences(plan_on())


def test_clients_have_no_rate_and_fp8_needs_no_change_to_fp8():
    clients = CHAT.evolve(arrivals=ConcurrentClients(clients=2))
    assert consequences(plan_on(), clients)["more-requests"].holds
    assert "fp8-cache" not in consequences(plan_on(kv_cache="fp8"))
    slots = plan_on("rtx-4090", profile="llama.cpp", weights="Q4_K_M")
    assert "fp8-cache" not in consequences(slots, CHAT.at_rate(0.2))


def test_an_option_whose_cache_cannot_be_narrower_says_nothing_of_it():
    old = consequences(plan_on("rtx-4090", profile="llama.cpp", weights="Q4_K_M", kv_cache="q8_0"), CHAT.at_rate(0.2))
    assert "fp8-cache" not in old


def test_nothing_is_said_of_what_was_stopped_or_has_no_service():
    assert not consequences(plan_on(), stop=lambda: True)["longer-prompts"].holds
    assert consequences(plan_on("gtx-1080-ti")) == {}
