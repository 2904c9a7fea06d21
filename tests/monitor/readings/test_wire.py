"""JSON lines of samples and inventories, and errors for invalid lines."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_kit import READINGS

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import BY_NAME
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, Link, Sample, SamplingCost, Xid
from planner.monitor.readings.wire import (
    WIRE_VERSION,
    BadLineError,
    ClockAnswer,
    Hello,
    PendingCall,
    clock_line,
    hello_line,
    inventory_line,
    parse_message,
    pending_call_line,
    read_line,
    sample_line,
)

TIMES = st.floats(0, 1e10)
TEXTS = st.text(max_size=20)
READ = st.dictionaries(st.sampled_from(sorted(BY_NAME)), READINGS, max_size=4)
PROCESSES = st.builds(
    CardProcess,
    pid=st.integers(0, 2**32),
    uuid=TEXTS,
    kind=st.sampled_from(["compute", "graphics", "mps"]),
    memory_bytes=READINGS,
    sm_fraction=READINGS,
    memory_controller_fraction=READINGS,
    host=st.none()
    | st.builds(HostProcess, TEXTS, TEXTS, TEXTS, TIMES, st.none() | TIMES, st.integers(0, 2**50), st.booleans()),
    is_reliable=st.booleans(),
    encoder_fraction=READINGS,
)
LINKS = st.builds(Link, st.integers(0, 17), st.booleans(), st.none() | TIMES, *[st.none() | st.integers(0, 9)] * 3)
SAMPLES = st.builds(
    Sample,
    TIMES,
    TIMES,
    st.dictionaries(TEXTS, READ, max_size=3),
    READ,
    st.tuples(TIMES, TIMES),
    st.none() | st.tuples(PROCESSES),
    st.just(()) | st.tuples(st.builds(Xid, TEXTS, st.integers(0, 200))),
    st.none()
    | st.builds(SamplingCost, TIMES, st.integers(0, 9), TIMES, st.integers(0, 99), TIMES, st.integers(0, 2**40)),
    st.dictionaries(TEXTS, st.tuples(LINKS), max_size=2),
)
DEVICES = st.builds(
    Device,
    TEXTS,
    TEXTS,
    st.integers(0, 99),
    TEXTS,
    st.none() | TEXTS,
    st.none() | st.tuples(st.integers(0, 7), st.integers(0, 7)),
    st.none() | TEXTS,
    st.sampled_from(["running", "lost", "asleep"]),
    READ,
    TEXTS,
    TEXTS,
)
INVENTORIES = st.builds(
    Inventory,
    TEXTS,
    TEXTS,
    TEXTS,
    st.lists(DEVICES, max_size=2).map(tuple),
    st.lists(st.builds(Fault, st.sampled_from(FaultKind), TIMES, st.none() | TEXTS, TEXTS), max_size=2).map(tuple),
)


@settings(max_examples=50)
@given(SAMPLES)
def test_samples_are_unchanged_by_json(sample):
    line = sample_line(sample)
    assert line.count(b"\n") == 1
    assert read_line(line) == sample


@settings(max_examples=50)
@given(INVENTORIES)
def test_inventories_are_unchanged_by_json(inventory):
    assert read_line(inventory_line(inventory)) == inventory


@pytest.mark.parametrize("busy", [None, PendingCall("nvmlInit", "", 12.5)])
def test_pending_calls_are_unchanged_by_json(busy):
    assert read_line(pending_call_line(busy)) == busy


def test_text_that_is_not_utf_8_is_unchanged_by_json():
    host = HostProcess("a", "b", "caf\udce9", 0.0, None, 0, is_own=True)
    sample = Sample(0.0, 0.0, processes=(CardProcess(1, "u", "compute", Reading(1), host=host),))
    assert read_line(sample_line(sample)) == sample


def test_links_and_errors_of_cards_are_read_back():
    sample = Sample(1.0, 2.0, {"u": {}}, xids=(Xid("u", 79),), links={"u": (Link(0, True, 25e9), Link(1, False))})
    assert read_line(sample_line(sample)) == sample


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"Traceback (most recent call last):\n",
        b"[]\n",
        b"1\n",
        b"{}\n",
        b'{"a":1,"b":2}\n',
        b'{"other":1}\n',
        b'{"sample":{}}\n',
        b'{"sample":{"at":1,"wall":"x"}}\n',
        b'{"sample":{"at":1,"wall":2,"devices":{"a":{"b":"c"}},"host":{},"cores":[]}}\n',
        b'{"inventory":{"driver":""}}\n',
        b'{"busy":1}\n',
        b'{"busy":[]}\n',
        b'{"busy":["a","b",1' + b"0" * 400 + b"]}\n",
        b'{"sample":{"at":1,"wal',
        b"\xff\xfe\n",
    ],
)
def test_invalid_lines_are_errors(line):
    with pytest.raises(BadLineError):
        read_line(line)


def test_greetings_clocks_and_the_name_of_a_machine_are_read_back():
    hello, clock = Hello(WIRE_VERSION, "gpu-planner 1", "gpu-box"), ClockAnswer(1.0, 2.0, 3.0)
    assert read_line(hello_line(hello)) == hello
    assert read_line(clock_line(clock)) == clock
    inventory = Inventory("580", machine="gpu-box")
    assert read_line(inventory_line(inventory)) == inventory
    assert b"machine" not in inventory_line(Inventory("580"))


def test_of_a_greeting_of_another_version_only_its_number_must_be_there():
    assert read_line(b'{"hello": {"wire": 7, "news": []}}') == Hello(7, "", "")
    for line in (b'{"hello": {}}', b'{"hello": {"wire": "x"}}', b'{"clock": [1, 2]}', b'{"clock": [1, 2, "x"]}'):
        with pytest.raises(BadLineError):
            read_line(line)


def test_recordings_of_earlier_versions_lack_the_video_engines_of_processes():
    process = CardProcess(1, "u", "compute", Reading(1), encoder_fraction=Reading(0.5))
    line = json.loads(sample_line(Sample(0.0, 0.0, processes=(process,))))
    for name in ("encoder_fraction", "decoder_fraction"):
        del line["sample"]["processes"][0][name]
    (found,) = parse_message(line).processes
    assert found == replace(process, encoder_fraction=missing(Cause.NOT_YET))
    del line["sample"]["processes"][0]["sm_fraction"]
    with pytest.raises(BadLineError, match="sm_fraction"):
        parse_message(line)
