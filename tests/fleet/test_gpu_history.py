"""The past of a card, from range queries, as the plots draw it."""

from dataclasses import replace

import pytest
from fleet_kit import FakePrometheus, dcgm_fleet, serving

from planner.fleet.connection import FleetConnection
from planner.fleet.fleet import FleetWatch
from planner.fleet.gpu_history import gpu_history
from planner.fleet.sources import open_source


def connection(url: str) -> FleetConnection:
    return FleetConnection(url=url)


def test_a_card_has_its_past_as_the_plots_draw_it():
    samples = dcgm_fleet(3)
    samples.append(("DCGM_FI_DEV_POWER_VIOLATION", samples[23][1], 1e12))
    fake = FakePrometheus(samples)
    fake.growth["DCGM_FI_DEV_POWER_VIOLATION"] = 2e8
    with serving(fake) as url:
        source = open_source([connection(url)], {})
        fleet = FleetWatch(source).poll()
        card = fleet.cards[1]
        history = gpu_history(source, card, fake.now, 3_600.0, 600, 15.0)
        assert history.inventory.devices == (card.device,)
        power = history.series(card.key, "power_watts")
        assert set(power.values) == {76.0}
        assert len(power) == pytest.approx(3_600 / 15, abs=2)
        assert set(history.series(card.key, "power_capped_fraction").values) == {0.2}
        assert history.wall_of(fake.now) == fake.now
        assert all('UUID="GPU-00000002' in query for query in fake.queries[-2:])
        short = gpu_history(source, card, fake.now, 60.0, 600, 15.0).series(card.key, "power_watts")
        assert short.times[0] == fake.now - 70  # the multiple of the step before
        fake.samples = []
        assert not len(gpu_history(source, card, fake.now, 60.0, 600, 15.0).series(card.key, "power_watts"))


def test_a_card_of_an_exporter_without_rates_or_values_asks_only_for_what_there_is():
    fake = FakePrometheus(dcgm_fleet(1))
    with serving(fake) as url:
        source = open_source([connection(url)], {})
        (card,) = FleetWatch(source).poll().cards
        fake.queries.clear()
        gpu_history(source, card, fake.now, 60.0, 600, 15.0)
        assert len(fake.queries) == 1
        fake.queries.clear()
        history = gpu_history(source, replace(card, exporter="amd"), fake.now, 60.0, 600, 15.0)
        assert fake.queries == []
        assert history.end is not None
