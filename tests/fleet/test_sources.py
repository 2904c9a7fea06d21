"""A Prometheus is asked in a few requests for all cards; exporters are scraped one by one."""

import signal
import time
from threading import Event, main_thread

import pytest
import scrapes
from fleet_kit import FakePrometheus, dcgm_fleet, serving

from planner.errors import NetworkError, PlannerError
from planner.fleet.connection import FleetConnection
from planner.fleet.fleet import read_fleet
from planner.fleet.sources import Poll, ScrapeSource, open_source


def source_of(url: str):
    return open_source([FleetConnection(url=url)], {})


def test_a_poll_has_every_quantity_unless_it_says_otherwise():
    assert Poll(0.0, 15.0, ()).is_whole


def test_all_cards_come_with_one_request_for_values():
    fake = FakePrometheus(dcgm_fleet(40))
    with serving(fake) as url:
        source = source_of(url)
        assert source.names == ((), ())
        poll = source.poll()
        assert len(poll.samples) == 40 * 23
        fake.queries.clear()
        source.poll()
        assert len(fake.queries) == 2
        assert source.server.version() == "2.42.0"
    assert poll.interval_seconds == 15.0


def test_exporters_are_found_again_from_time_to_time(monkeypatch):
    monkeypatch.setattr("planner.fleet.sources._POLLS_PER_DISCOVERY", 2)
    fake = FakePrometheus(dcgm_fleet(1))
    with serving(fake) as url:
        source = source_of(url)
        for _ in range(3):
            source.poll()
    assert sum(query.startswith("count by") for query in fake.queries) == 2


def test_counters_of_which_the_rate_counts_are_asked_for_as_rates():
    samples = dcgm_fleet(1)
    samples.append(("DCGM_FI_DEV_POWER_VIOLATION", samples[0][1], 1e12))
    fake = FakePrometheus(samples)
    fake.growth["DCGM_FI_DEV_POWER_VIOLATION"] = 3e8
    with serving(fake) as url:
        poll = source_of(url).poll()
    assert [(name, value) for name, _, value in poll.rates] == [("DCGM_FI_DEV_POWER_VIOLATION", 3e8)]
    assert any("rate(DCGM_FI_DEV_POWER_VIOLATION{}[60s])" in query for query in fake.queries)


def test_only_metrics_of_cards_tell_when_cards_were_read():
    fake = FakePrometheus(dcgm_fleet(1))
    fake.samples += [("vllm:num_requests_running", {"instance": str(place)}, 1.0) for place in range(9)]
    with serving(fake) as url:
        source_of(url).poll()
    (asked,) = [query for query in fake.queries if "timestamp(" in query]
    assert "vllm" not in asked
    assert "[" not in asked


def test_hosts_are_read_from_node_exporter():
    node = [
        ("node_memory_MemTotal_bytes", {"instance": "10.0.0.0:9100"}, 64.0),
        ("node_memory_MemAvailable_bytes", {"instance": "10.0.0.0:9100"}, 48.0),
        ("node_cpu_seconds_total", {"instance": "10.0.0.0:9100"}, 0.5),
    ]
    with serving(FakePrometheus([*dcgm_fleet(1), *node])) as url:
        fleet = read_fleet([FleetConnection(url=url)], {})
    assert fleet.hosts["10.0.0.0"]["memory_available_bytes"].value == 48
    assert fleet.hosts["10.0.0.0"]["cpu_fraction"].value == 0.5


def test_rare_scrapes_are_said_and_an_unknown_interval_is_the_usual_one():
    fake = FakePrometheus(dcgm_fleet(1), now=time.time())
    fake.scrape_seconds = 60.0
    with serving(fake) as url:
        assert source_of(url).poll().notes == ("GPUs are scraped every 60 s; shorter events are not visible.",)
    fake.extra, fake.scrape_seconds = {}, 15.0

    def answer(path, form, headers):
        if form.get("query", "").startswith("topk"):
            form = {"query": '{__name__=~"none"}'}
        if form.get("query", "").endswith("[600s]"):
            form = {"query": '{__name__=~"none"}[600s]'}
        return fake(path, form, headers)

    with serving(answer) as url:
        assert source_of(url).poll().interval_seconds == 15.0


def test_one_scrape_tells_no_interval():
    fake = FakePrometheus(dcgm_fleet(1))

    def answer(path, form, headers):
        if form.get("query", "").endswith("[600s]"):
            form = {"query": '{__name__=~"none"}'}
        return fake(path, form, headers)

    with serving(answer) as url:
        assert source_of(url).poll().interval_seconds == 15.0


def test_cards_that_vanish_between_two_questions_leave_nothing():
    fake = FakePrometheus(dcgm_fleet(1))
    with serving(fake) as url:
        source = source_of(url)
        source.poll()
        fake.samples = []
        poll = source.poll()
    assert poll.samples == []
    assert poll.at == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize(("told", "seen"), [(1e300, 1_000_000.0), (-5.0, 0.0), (float("nan"), 0.0), (7.0, 7.0)])
def test_a_card_was_read_at_a_time_that_there_was(told, seen):
    fake = FakePrometheus(dcgm_fleet(1))
    fake.seen = lambda _labels: told
    with serving(fake) as url:
        assert list(source_of(url).poll().seen.values()) == [seen]


def test_series_without_values_are_none():
    fake = FakePrometheus(dcgm_fleet(1))
    empty = b'{"status":"success","data":{"result":[{"metric":{},"values":[]}]}}'

    def answer(path, form, headers):
        return (200, {}, empty) if form["query"].startswith("{") else fake(path, form, headers)

    with serving(answer) as url:
        assert source_of(url).poll().samples == []


def test_exporters_are_scraped_directly_and_rates_come_from_two_scrapes():
    labels = 'gpu="0",UUID="GPU-1",modelName="NVIDIA T4"'
    counters = [2e9, 5e9, 1e9]

    def answer(path, _form, _headers):
        if path.startswith("/broken"):
            return 503, {}, b"starting"
        text = f"DCGM_FI_DEV_FB_USED{{{labels}}} 1024\nDCGM_FI_DEV_POWER_VIOLATION{{{labels}}} {counters[0]}\n"
        return 200, {}, text.encode()

    times = iter((100.0, 110.0, 120.0))
    with serving(answer) as url:
        connections = [FleetConnection(url=f"{url}/metrics"), FleetConnection(url=f"{url}/broken/metrics")]
        source = ScrapeSource(connections, {}, clock=lambda: next(times))
        first = source.poll()
        counters.pop(0)
        second = source.poll()
        counters.pop(0)
        third = source.poll()
    assert (first.rates, first.interval_seconds) == ([], 15.0)
    assert [value for _, _, value in second.rates] == [3e8]
    assert [value for _, _, value in third.rates] == [1e8]
    assert second.interval_seconds == 10.0
    assert second.notes[0].endswith("is not ready (503).")


def test_an_interruption_does_not_wait_for_a_silent_exporter():
    may_end, ended = Event(), []

    def answer(*_):
        signal.pthread_kill(main_thread().ident, signal.SIGINT)
        may_end.wait(5)
        ended.append(True)
        return 200, {}, b""

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with serving(answer) as url:
            with pytest.raises(KeyboardInterrupt):
                source_of(f"{url}/metrics").poll()
            assert not ended
            may_end.set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_saved_scrapes_are_read_as_a_fleet(tmp_path):
    for name, text in (("a.prom", scrapes.DCGM), ("b.prom", scrapes.ALL_SMI)):
        (tmp_path / name).write_text(text)
    fleet = read_fleet([FleetConnection(url=str(tmp_path / name)) for name in ("a.prom", "b.prom")], {})
    assert {card.host for card in fleet.cards} == {"dgx-2", "node-a"}
    (tmp_path / "bad.prom").write_text("no scrape of\nanything")
    with pytest.raises(PlannerError, match=r"bad.prom is not a scrape of metrics: line 1"):
        read_fleet([FleetConnection(url=str(tmp_path / "bad.prom"))], {})
    with pytest.raises(PlannerError, match="cannot be read"):
        read_fleet([FleetConnection(url=str(tmp_path / "missing.prom"))], {})


def test_a_web_page_is_no_scrape_and_a_prometheus_stands_alone():
    with (
        serving(lambda *_: (200, {}, b"<html><title>Login</title>")) as url,
        pytest.raises(NetworkError, match="web page"),
    ):
        read_fleet([FleetConnection(url=f"{url}/metrics")], {})
    with pytest.raises(PlannerError, match="several addresses must all be of exporters"):
        open_source([FleetConnection(url="http://a"), FleetConnection(url="http://b/metrics")], {})
