"""Renting and owning the cards of a recommendation: prices, machines, places and the network between them."""

import pytest
from recommended_hardware import LARGE, TODAY, TUNING, recommended

from planner.cost.terms import BuyTerms, CostTerms, DailyHours, Service
from planner.plan.cost import evaluate_cost
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.acquisition import _uncertain_deviations, circuit_watts, ownership_obstacle
from planner.plan.recommend.variants import apply_option
from planner.workload.workload import Inference, Training


def test_renting_and_owning_can_be_asked_for_alone(catalog):
    rented = recommended(TUNING, catalog, having=["rent"], counts=[1])
    owned = recommended(TUNING, catalog, having=["own"], counts=[1])
    assert {option.having for option in rented.options} == {"rent"}
    assert all(option.offer and option.mode == "on-demand" for option in rented.options)
    assert "no offer to rent it is known" in {one.reason for one in rented.left_out}
    assert {option.having for option in owned.options} == {"own"}
    assert all(option.offer is None for option in owned.options)


def test_other_ways_to_rent_are_looked_at_on_request(catalog):
    modes = ["on-demand", "spot", "reserved-1y", "reserved-3y"]
    ways = {option.mode for option in recommended(TUNING, catalog, having=["rent"], counts=[1], modes=modes).options}
    assert ways == set(modes)


def test_a_desk_has_one_machine_on_one_circuit(catalog):
    at_home = LARGE.evolve(cost=CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(place="desk")))
    usual, german = (
        recommended(at_home.evolve(cost=at_home.cost.evolve(region=region)), catalog, having=["own"])
        for region in ("US", "DE")
    )
    for home, watts in ((usual, 1_800), (german, 3_680)):
        assert home.options
        assert all(option.machines == 1 and option.cards <= 2 for option in home.options)
        assert all(option.power_watts * 1.8 <= watts for option in home.options)  # with the rest of the machine
    assert {one.reason: one.count for one in usual.left_out}["over the power of one circuit"] > 0
    assert len(german.options) > len(usual.options)
    more_room = at_home.evolve(cost=at_home.cost.evolve(buy=BuyTerms(place="desk", gpus_per_server=4)))
    assert max(option.cards for option in recommended(more_room, catalog, having=["own"]).options) == 4


def test_several_machines_that_exchange_data_need_a_network(catalog):
    plan = TUNING.evolve(workload=Training(activation_checkpointing="full"))
    both = recommended(plan, catalog, counts=[8, 16], vendors=["NVIDIA"])
    assert "no offer to rent it is known" not in {one.reason for one in both.left_out}
    for option in both.options:
        several = option.count > option.cards_per_machine
        assert (option.network_bytes_per_s is not None) == several
        assert (option.network_usd is not None) == (several and option.having == "own")
    h100 = next(one for one in both.options if (one.gpu, one.count, one.having) == ("h100-sxm5-80gb", 16, "own"))
    assert (h100.machines, h100.network_bytes_per_s) == (2, 50e9)  # 400 Gbit/s
    assert 0 < h100.network_usd < h100.usd


def test_copies_of_a_service_need_no_network_and_are_all_counted(catalog):
    busy = TUNING.evolve(
        workload=Inference(profile="vllm", batch=16), cost=CostTerms(job=Service(requests_per_day=3_000_000))
    )
    many = recommended(busy, catalog, counts=[1], having=["own"], vendors=["NVIDIA"])
    option = next(one for one in many.options if one.gpu == "a100-pcie-80gb")
    assert option.copies > 8
    assert option.machines == -(-option.copies // 8)
    assert option.power_watts == 300 * option.copies
    assert option.network_bytes_per_s is None


def test_prices_of_long_ago_are_not_called_the_cheapest(catalog):
    old = [one for one in recommended(TUNING, catalog, having=["own"], counts=[1]).options if not one.comparable]
    assert old
    assert all("the newest known price is" in one.remarks[0] for one in old)
    assert "rtx-4090" not in {one.gpu for one in old}


def test_prices_of_the_plans_own_cards_are_not_those_of_others(catalog):
    mine = TUNING.evolve(gpu="rtx-4090", cost=TUNING.cost.evolve(buy=BuyTerms(card_price_usd=1.0)))
    prices = {
        has_price: {one.gpu: one.usd for one in recommended(plan, catalog, having=["own"], counts=[1]).options}
        for has_price, plan in ((True, mine), (False, TUNING.evolve(gpu="rtx-4090")))
    }
    assert prices[True]["rtx-4090"] < prices[False]["rtx-4090"]
    assert prices[True]["l40s"] == prices[False]["l40s"]


def test_only_as_many_cards_as_there_are_are_owned_already(catalog):
    mine = TUNING.evolve(gpu="rtx-4090", cost=TUNING.cost.evolve(buy=BuyTerms(owned=True)))
    used, bought = (
        {(one.gpu, one.count): one.usd for one in recommended(plan, catalog, having=["own"], counts=[1, 2]).options}
        for plan in (mine, TUNING)
    )
    assert used["rtx-4090", 1] < 5  # electricity of eight hours and a half
    assert used["rtx-4090", 2] == bought["rtx-4090", 2]
    assert used["rtx-3090", 1] == bought["rtx-3090", 1]


def test_a_network_is_paid_by_its_owner_only(catalog):
    plan = TUNING.evolve(workload=Training(activation_checkpointing="full"))
    options = recommended(plan, catalog, counts=[16], vendors=["NVIDIA"]).options
    rented = next(one for one in options if one.having == "rent" and one.network_bytes_per_s)
    assert rented.network_usd is None
    assert rented.machines * rented.cards_per_machine >= 16


def test_what_is_bought_has_a_purchase_price_and_costs_as_much_as_in_the_cost_tab(catalog):
    plan = TUNING.evolve(gpu="rtx-4090", cost=CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(place="desk")))
    options = recommended(plan, catalog, having=["own"], counts=[1]).options
    mine = next(one for one in options if one.gpu == "rtx-4090")
    assert (mine.purchase_usd, mine.upfront_usd) == (1_800, 1_800 * 1.64)
    own = evaluate_cost(evaluate(plan, catalog), catalog, TODAY).estimate.result.own
    assert mine.usd == pytest.approx(own.usd_per_period)
    assert mine.low_usd < mine.usd < mine.high_usd
    cheap = recommended(plan, catalog, having=["own"], counts=[1], max_price_usd=700)
    assert cheap.options
    assert max(one.purchase_usd for one in cheap.options) <= 700
    assert "over the highest purchase price" in {one.reason for one in cheap.left_out}


def test_fewer_bits_are_tried_in_llama_cpp_too(catalog):
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
        workload=Inference(),
        cost=CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(place="desk")),
    )
    found = recommended(plan, catalog, having=["own"], counts=[1], quantize=True, max_price_usd=700)
    with_llama_cpp = [one for one in found.options if one.changes == ("Q4_K_M in llama.cpp",)]
    assert with_llama_cpp
    applied = apply_option(with_llama_cpp[0], plan, catalog)
    assert (applied.workload.weights, applied.workload.profile) == ("Q4_K_M", "llama.cpp")


def obstacle(catalog, gpu: str, cards: int = 1, place: str = "lab") -> str | None:
    return ownership_obstacle(catalog.hardware.gpu(gpu), cards, place, catalog.hardware.systems)


@pytest.mark.parametrize(
    ("gpu", "cards", "place", "reason"),
    [
        ("rtx-4090", 2, "desk", None),
        ("rtx-4090", 8, "lab", None),
        ("rtx-pro-6000-blackwell-ws", 2, "desk", None),
        ("rtx-4090", 1, "data-centre", "its driver is not licensed for data centers"),
        ("rtx-4090", 1, "colocation", "its driver is not licensed for data centers"),
        ("rtx-a6000", 1, "data-centre", None),
        ("h100-sxm5-80gb", 8, "desk", "cannot be placed at a desk"),
        ("instinct-mi300x", 8, "desk", "cannot be placed at a desk"),
        ("l40s", 1, "desk", "cannot be placed at a desk"),
        ("h100-sxm5-80gb", 1, "lab", "only sold in whole servers"),
        ("h100-sxm5-80gb", 16, "lab", None),
        ("instinct-mi300x", 4, "data-centre", "only sold in whole servers"),
        ("gb200-186gb", 6, "data-centre", "only sold in whole servers"),
        ("gb200-186gb", 8, "data-centre", None),
        ("gb200-186gb", 72, "data-centre", None),
        ("l40s", 1, "data-centre", None),
        ("jetson-agx-orin-64gb", 1, "desk", None),
        ("jetson-agx-orin-64gb", 8, "lab", "a whole computer, which cannot be combined with others"),
        ("apple-m3-ultra", 2, "desk", "a whole computer, which cannot be combined with others"),
        ("rtx-4090-laptop-gpu", 2, "lab", "a whole computer, which cannot be combined with others"),
        ("tpu-v5e", 1, "data-centre", "not for sale"),
        ("trainium2", 16, "lab", "not for sale"),
        ("rubin-288gb", 72, "data-centre", "not for sale"),
    ],
)
def test_a_card_can_be_had_and_placed_or_the_reason_is_said(catalog, gpu, cards, place, reason):
    assert obstacle(catalog, gpu, cards, place) == reason


@pytest.mark.parametrize(
    ("region", "watts"), [("US", 15 * 120), ("US-WA", 15 * 120), ("JP", 15 * 100), ("GB", 13 * 230), ("DE", 16 * 230)]
)
def test_a_circuit_is_that_of_the_region(catalog, region, watts):
    limit = circuit_watts(region, catalog.cost)
    assert limit.value == watts
    assert limit.source


def test_every_circuit_of_the_catalog_is_used(catalog):
    known = {constant.value for constant in catalog.cost.constants if constant.kind == "circuit"}
    assert known == {circuit_watts(region, catalog.cost).value for region in ("US", "CA", "MX", "JP", "GB", "FR")}


def test_only_uncertain_figures_deviate() -> None:
    assert _uncertain_deviations({"price": 1.0, "time": -1.0}, ("time",)) == {"time": -1.0}
