"""What servers do wrong is named, in words that say what to do, and nothing that was read before is lost."""

import json
import ssl
import threading
import time
from pathlib import Path

import pytest
from fleet_kit import FakePrometheus, dcgm_fleet, serving

from planner.errors import NetworkError, PlannerError
from planner.fleet.connection import FleetConnection
from planner.fleet.fleet import FleetWatch, read_fleet
from planner.fleet.sources import open_source

DATA = Path(__file__).parent / "data"
HTML = b"<!DOCTYPE html><html><head><title>Sign in - Grafana</title></head></html>"
ERROR = {"status": "error", "errorType": "bad_data"}


def page(status: int, content: bytes | dict[str, object], **headers: str):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return lambda *_: (status, headers, body)


CASES = {
    "401": (page(401, b"Unauthorized"), r"wants a sign-in \(401\)", "token may be wrong"),
    "403": (page(403, ERROR | {"error": "no tenant"}), r"refuses access \(403\): no tenant", "ask for access"),
    "404": (page(404, b"404 page not found"), "has no Prometheus API at this address", "/select/0/prometheus"),
    "429": (page(429, b"slow down"), "too many requests", "less often"),
    "500 without JSON": (page(500, b"oops\nmore"), "status 500 and no JSON: oops$", "Check the address"),
    "502": (page(502, HTML), "cannot reach the Prometheus behind it", "behind the proxy"),
    "503": (page(503, ERROR | {"error": "TSDB not ready"}), r"is not ready \(503\): TSDB not ready", "starting"),
    "504": (page(504, b""), "in time", "shorter"),
    "a web page": (
        page(200, HTML),
        "web page (“Sign in - Grafana”) instead of data".replace("(", r"\(").replace(")", r"\)"),
        "sign in",
    ),
    "a web page without a title": (page(200, b"<html>"), "a web page instead of data", "prefix"),
    "nothing": (page(200, b""), "no JSON: nothing", "Check the address"),
    "JSON of another kind": (page(200, b"[1]"), r"no JSON: \[1\]", "must be that of a Prometheus"),
    "no result": (page(200, {"status": "success", "data": {}}), "answered without a result", "another API"),
    "no data": (page(200, {"status": "success"}), r"refuses the query \(200\): no reason stated", "log"),
    "half an answer": (
        page(200, b'{"status":"success","data":{"result":[{"metric":{"__name__":"a"},"value":[1,"2"]},{"metr'),
        "ends in series 2",
        "cut long answers",
    ),
    "half of the end": (page(200, b'{"status":"success","data":{"result":[]'), "no JSON", "Check"),
    "series of another kind": (
        page(200, b'{"status":"success","data":{"result":[{"metric":{},"value":[1,"x"]}]}}'),
        "has a fault in series 1",
        "",
    ),
    "a number of 400 digits": (
        page(200, b'{"status":"success","data":{"result":[{"metric":{},"value":[1,1' + b"0" * 400 + b"]}]}}"),
        "has a fault in series 1",
        "",
    ),
    "labels that are none": (
        page(200, b'{"status":"success","data":{"result":[{"metric":["a"],"value":[1,"2"]}]}}'),
        "has a fault in series 1",
        "",
    ),
    **{
        f"a series {name}": (
            page(200, b'{"data":{"result":[{"metric":{"a":"b"},"value":[1,"2"]},%b]}}' % one),
            "has a fault in series 2",
            "cut",
        )
        for name, one in {
            "without text": b'{"metric":{"a":[]},"value":[1,"2"]}',
            "without labels": b'{"metric":["a"],"value":[1,"2"]}',
            "at no time": b'{"metric":{},"value":["1","2"]}',
            "beyond the calendar": b'{"metric":{},"values":[[1,"2"],[1e11,"2"]]}',
            "before the calendar": b'{"metric":{},"values":[[-1,"2"]]}',
            "at NaN": b'{"metric":{},"values":[[NaN,"2"]]}',
        }.items()
    },
    "too many points": (
        page(400, ERROR | {"error": "exceeded maximum resolution of 11,000 points per timeseries."}),
        "refuses the query .400.: exceeded maximum resolution",
        "larger step",
    ),
    "too many samples": (
        page(422, ERROR | {"error": "query processing would load too many samples into memory"}),
        "too many samples",
        "fewer GPUs",
    ),
    "timeout of the query": (page(422, ERROR | {"error": "query timed out in expression"}), "timed out", "shorter"),
    "a wrong query": (page(400, ERROR | {"error": "parse error"}), "refuses the query .400.: parse error", "log"),
    "a redirect to another host": (
        page(302, b"", Location="https://login.example.org/"),
        "redirects to https://login.example.org, which is not followed",
        "sign-in",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_fault_of_a_server_is_named_with_what_to_do(name):
    answer, words, hint = CASES[name]
    with serving(answer) as url, pytest.raises(PlannerError, match=words) as caught:
        read_fleet([FleetConnection(url=url)], {})
    assert hint in caught.value.hint
    assert "127.0.0.1" in caught.value.message


def test_a_fleet_without_cards_is_named_with_the_exporters_that_are_known():
    with serving(FakePrometheus([])) as url, pytest.raises(PlannerError, match="has no metrics of GPUs") as caught:
        read_fleet([FleetConnection(url=url)], {})
    assert "dcgm-exporter" in caught.value.hint


def test_a_certificate_of_no_known_authority_is_refused_and_an_own_one_trusted():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "here.pem")
    with serving(FakePrometheus(dcgm_fleet(2)), context) as url:
        with pytest.raises(NetworkError, match=r"no known authority signed$") as caught:
            read_fleet([FleetConnection(url=url)], {})
        assert caught.value.hint == "Give the file of its authority, if it is yours."
        assert len(read_fleet([FleetConnection(url=url, ca_file=DATA / "here.pem")], {}).cards) == 2


def watch_of(url: str, **more: object) -> FleetWatch:
    return FleetWatch(open_source([FleetConnection(url=url, **more)], {"GPU_PLANNER_FLEET_SECRET": "s3cret"}))


def test_what_was_read_stays_while_the_server_fails():
    fake = FakePrometheus(dcgm_fleet(3))
    broken = threading.Event()

    def answer(path, form, headers):
        return (503, {}, b"down") if broken.is_set() else fake(path, form, headers)

    with serving(answer) as url:
        watch = watch_of(url)
        before = watch.poll()
        broken.set()
        with pytest.raises(NetworkError, match="is not ready"):
            watch.poll()
        assert watch.fleet is before
        broken.clear()
        assert len(watch.poll().cards) == 3


def test_a_cancelled_poll_ends_at_once():
    over = threading.Event()

    def answer(path, form, headers):
        over.wait(10)
        return 200, {}, b""

    with serving(answer) as url:
        source = open_source([FleetConnection(url=url)], {}, lambda: True)
        with pytest.raises(NetworkError, match="was cancelled"):
            source.poll()
        over.set()


def test_partial_answers_and_warnings_are_notes():
    fake = FakePrometheus(dcgm_fleet(1), now=time.time())
    fake.extra = {"isPartial": True, "warnings": ["store 3 was not reached"]}
    with serving(fake) as url:
        notes = watch_of(url).poll().notes
    assert "the answer is partial: a part of the data was not reached" in notes
    assert "store 3 was not reached" in notes


@pytest.mark.parametrize(("shift", "words"), [(3_600, "3,600 s ahead of"), (-3_600, "s behind"), (0, "")])
def test_a_clock_that_differs_is_named_and_the_servers_times_are_used(shift, words):
    fake = FakePrometheus(dcgm_fleet(1), now=time.time() + shift)
    with serving(fake) as url:
        fleet = watch_of(url).poll()
    assert fleet.at_seconds == fake.now
    assert any(words in note for note in fleet.notes) if words else not fleet.notes


def test_a_card_that_is_not_scraped_is_silent_and_never_zero():
    fake = FakePrometheus(dcgm_fleet(2))
    late = dcgm_fleet(2)[-1][1]["UUID"]
    fake.seen = lambda labels: fake.now - (40 if labels["UUID"] == late else 0)
    with serving(fake) as url:
        watch = watch_of(url)
        silent = watch.poll().cards[1]
        assert (silent.is_silent, silent.seen_seconds, silent.use) == (True, fake.now - 40, None)
        fake.samples = dcgm_fleet(1)
        fake.now += 60
        gone = watch.poll().cards
        assert [card.is_silent for card in gone] == [False, True]
        assert gone[1].seen_seconds == silent.seen_seconds
        assert watch.diagnose().verdicts.keys() == {gone[0].key}
        fake.now += 86_500
        assert len(watch.poll().cards) == 1


def test_a_counter_that_fell_is_said_and_counts_as_no_energy_lost():
    fake = FakePrometheus(dcgm_fleet(2))
    with serving(fake) as url:
        watch = watch_of(url)
        assert "anew" not in " ".join(watch.poll().notes)
        fake.samples = [(name, labels, 5.0 if "ENERGY" in name else value) for name, labels, value in fake.samples]
        assert "2 GPUs began to count anew: their machine or driver was restarted." in watch.poll().notes


def test_secrets_and_tenants_are_headers_and_the_prefix_is_kept():
    fake = FakePrometheus(dcgm_fleet(1))
    seen = []

    def answer(path, form, headers):
        seen.append((path, headers.get("authorization"), headers.get("x-scope-orgid")))
        return fake(path, form, headers)

    with serving(answer) as url:
        watch_of(f"{url}/prometheus/", sign_in="bearer", tenant="team-a").poll()
        assert set(seen) == {("/prometheus/api/v1/query", "Bearer s3cret", "team-a")}
        seen.clear()
        watch_of(f"{url}/api/v1", sign_in="basic", user="me").poll()
        assert set(seen) == {("/api/v1/query", "Basic bWU6czNjcmV0", None)}
