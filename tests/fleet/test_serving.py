"""Inference servers tell their rates, percentiles and cache."""

from fleet_kit import FakePrometheus, dcgm_fleet, serving
from servers import GAUGES, GROWTH

from planner.fleet.connection import FleetConnection
from planner.fleet.fleet import FleetWatch, read_fleet
from planner.fleet.serving import read_servers
from planner.fleet.sources import open_source


def test_a_server_tells_its_rates_percentiles_and_cache():
    (server,) = read_servers(GAUGES, GROWTH, 300.0)
    assert (server.instance, server.pod, server.run.engine) == ("10.0.0.0:8000", "vllm-0", "vllm")
    assert (server.running, server.waiting, server.cache_usage_fraction) == (7.0, 1.0, 0.5)
    assert (server.output_tokens_per_s, server.input_tokens_per_s) == (100.0, 300.0)
    assert server.run.cache_tokens == 16_000
    assert [(one.percent, one.value) for one in server.run.first_token.percentiles][:1] == [(50.0, 0.1)]
    assert server.run.notes == ()


def test_a_single_scrape_has_no_rates():
    (server,) = read_servers([*GAUGES, *GROWTH], (), 0.0)
    assert server.output_tokens_per_s is None
    assert server.run.notes


def test_servers_come_with_the_fleet_of_a_prometheus():
    samples = [(one.name, one.labels, one.value) for one in (*GAUGES, *GROWTH)]
    with serving(FakePrometheus([*dcgm_fleet(2), *samples])) as url:
        fleet = read_fleet([FleetConnection(url=url)], {})
    assert fleet.servers[0].output_tokens_per_s == 100.0


def test_a_watch_without_servers_has_none():
    with serving(FakePrometheus(dcgm_fleet(1))) as url:
        assert FleetWatch(open_source([FleetConnection(url=url)], {})).poll().servers == ()
