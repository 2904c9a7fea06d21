"""What a fleet, its idle cards and its tokens cost."""

import datetime
from dataclasses import replace

import pytest
from fleet_kit import FakePrometheus, dcgm_fleet, serving
from servers import GAUGES, GROWTH

from planner.fleet.cards import FleetCard, Work, read_cards
from planner.fleet.connection import FleetConnection
from planner.fleet.costs import FleetPrices
from planner.fleet.fleet import Fleet, read_fleet
from planner.fleet.serving import read_servers
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Reading
from planner.plan.catalog import load_catalog
from planner.plan.prices import prices_by_card

TODAY = datetime.date(2026, 11, 28)


@pytest.fixture(scope="module")
def prices() -> FleetPrices:
    return FleetPrices(load_catalog(), TODAY)


def fleet_of(cards: int, **more: object) -> Fleet:
    found = read_cards(dcgm_fleet(cards, use=lambda _: 50.0)).cards.values()
    return Fleet("f", 1_000.0, 15.0, tuple(found), **more)


def test_tokens_cost_the_rent_of_the_cards_that_name_the_pod(prices):
    fleet = fleet_of(4, servers=read_servers(GAUGES, GROWTH, 300.0))
    cards = fleet.cards
    rent = prices.usd_per_hour(cards[0].device)[0]
    (on_host,) = prices.serving(fleet)
    assert (on_host.cards, on_host.usd_per_hour) == (4, pytest.approx(4 * rent))
    assert on_host.usd_per_million_tokens == pytest.approx(4 * rent / (100 * 3_600) * 1e6)
    named = Fleet("f", 1.0, 15.0, (*cards[1:], replace(cards[0], work=(Work("vllm-0"),))), servers=fleet.servers)
    assert prices.serving(named)[0].cards == 1
    (elsewhere,) = prices.serving(Fleet("f", 1.0, 15.0, (), servers=fleet.servers))
    assert (elsewhere.cards, elsewhere.usd_per_hour, elsewhere.usd_per_million_tokens) == (0, None, None)


def test_idle_cards_cost_their_rent_and_all_cards_their_power(prices):
    watch_polls = FakePrometheus(dcgm_fleet(4, use=lambda place: 0.0 if place < 2 else 100.0))
    with serving(watch_polls) as url:
        fleet = read_fleet([FleetConnection(url=url)], {})
    costs = prices.costs(fleet, 0.2)
    rent, day = prices.usd_per_hour(fleet.cards[0].device)
    assert [idle.card.device.index for idle in costs.idle] == [0, 1]
    assert costs.idle_usd_per_day == pytest.approx(2 * 24 * rent)
    assert costs.is_idle_priced
    assert (costs.power_watts, costs.power_cards, costs.priced) == (70 * 2 + 670 * 2, 4, 4)
    assert costs.kwh_per_day == pytest.approx(1.48 * 24)
    assert costs.electricity_usd_per_day == pytest.approx(1.48 * 24 * 0.2)
    # Of the last day all is held, and its power and use were always those of now.
    assert costs.kwh_last_day == pytest.approx(1.48 * 24)
    assert costs.last_day_held_fraction == 1.0
    assert costs.electricity_usd_last_day == pytest.approx(1.48 * 24 * 0.2)
    assert costs.idle_usd_last_day == pytest.approx(2 * 24 * rent)
    assert costs.rent_usd_per_hour == pytest.approx(4 * rent)
    offers = prices_by_card(load_catalog(), TODAY)["h100-sxm5-80gb"].rented["on-demand"].current
    assert costs.price_date == day == sorted(offer.day for offer in offers if offer.day)[0]
    unpriced = prices.costs(fleet)
    assert (unpriced.electricity_usd_per_day, unpriced.electricity_usd_last_day) == (None, None)


def test_a_card_that_no_catalog_knows_has_no_price_and_an_instance_is_no_card(prices):
    unknown = Device("u", "Unheard-of 9000", 0, facts={"memory_total_bytes": Reading(1.0)})
    assert prices.usd_per_hour(unknown) == (None, None)
    instance = Device("m", "NVIDIA H100 80GB HBM3", 0, mig_parent="h")
    assert prices.gpus(instance) == ()
    card = FleetCard("u", "n", "dcgm", unknown, {}, {})
    costs = prices.costs(Fleet("f", 1.0, 15.0, (card,)))
    assert (costs.priced, costs.power_cards, costs.price_date, costs.is_idle_priced) == (0, 0, None, False)
    assert (costs.kwh_last_day, costs.last_day_held_fraction, costs.idle_usd_last_day) == (None, None, None)
