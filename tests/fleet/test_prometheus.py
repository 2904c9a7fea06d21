"""Queries: their steps, limits, labels, and the version of the server."""

import pytest
from fleet_kit import FakePrometheus, dcgm_fleet, serving

from planner.errors import PlannerError
from planner.fleet.connection import FleetConnection
from planner.fleet.prometheus import MOST_POINTS, Prometheus, names_selector, range_step, rate_seconds


def test_a_server_without_buildinfo_has_no_version():
    with serving(lambda *_: (404, {}, b"not here")) as url:
        assert Prometheus(FleetConnection(url=url), {}).version() == ""
    with serving(lambda *_: (500, {}, b'{"data":{"version":"1"}}')) as url:
        assert Prometheus(FleetConnection(url=url), {}).version() == ""


def test_steps_are_round_and_keep_the_limit_of_points():
    assert range_step(3_600, 900, 15) == 15
    assert range_step(86_400, 900, 15) == 120
    assert range_step(60, 900, 0.5) == 1
    assert range_step(604_800, 100_000, 15) == 60
    assert 400 * 86_400 / range_step(400 * 86_400, 10**6, 15) < MOST_POINTS
    assert range_step(3e9, 10, 15) == 300_067_200
    assert (rate_seconds(15), rate_seconds(30), rate_seconds(15, 600)) == (60, 120, 600)


def test_labels_in_queries_are_quoted():
    assert names_selector(("b", "a"), {"x": 'q"\\\n'}) == '{__name__=~"a|b",x="q\\"\\\\\\n"}'


def test_a_range_ends_at_multiples_of_the_step_and_the_limit_is_named():
    fake = FakePrometheus(dcgm_fleet(1))
    with serving(fake) as url:
        server = Prometheus(FleetConnection(url=url), {})
        series = server.query_range(names_selector(("DCGM_FI_DEV_GPU_UTIL",)), 61.0, 119.0, 15).series
        assert [at for at, _ in series[0].values] == [60, 75, 90, 105, 120]
        with pytest.raises(PlannerError, match="11,000 points"):
            server.query_range(names_selector(("DCGM_FI_DEV_GPU_UTIL",)), 0, 20_000, 1)
