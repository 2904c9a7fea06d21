"""Lines of a recording: written, read and validated."""

from dataclasses import replace
from pathlib import Path

import pytest
from recording_kit import CARDS, A, sample, written

from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, SamplingCost, Xid
from planner.monitor.readings.wire import BadLineError, pending_call_line
from planner.monitor.recording.recording import recording_from_bytes
from planner.monitor.recording.records import (
    RecordedMark,
    RecordedPlan,
    RecordingEnd,
    RecordingHeader,
    read_record,
    record_line,
    validate_message,
)


def opened(data):
    return recording_from_bytes(data, Path("a test"))


@pytest.mark.parametrize(
    "record",
    [
        RecordingHeader(1, "p", 2.0),
        RecordedMark(1.0, 2.0, "né"),
        RecordedPlan({"a": [1]}),
        RecordingEnd(3.0),
        Timestamp(1.0, 2.0),
        CARDS,
    ],
)
def test_records_are_unchanged_by_json(record):
    line = record_line(record)
    assert line.endswith(b"\n")
    assert read_record(line) == record


def test_a_complete_sample_is_unchanged_by_json():
    host = HostProcess("python", "ann", "python train.py", 1.0, 0.5, 2**30, is_own=True)
    readings = (Reading(2**30), missing(Cause.NOT_SUPPORTED), Reading(2.0, is_implausible=True))
    one = replace(
        sample(1.5, {"cpu_fraction": 0.25}, a={"power_watts": 100.0}, b={}),
        cores=(0.1, 0.9),
        processes=(
            CardProcess(7, A, "compute", *readings, host),
            CardProcess(8, A, "mps", *readings, is_reliable=False),
        ),
        xids=(Xid(A, 79),),
        cost=SamplingCost(0.01, 40, 0.005, 12, 0.001, 2**24),
    )
    assert read_record(record_line(one)) == one
    assert opened(written([CARDS, one])).last.monotonic_seconds == 1.5


SAMPLE = '{"sample":{"at":1,"wall":2,"devices":{},"host":{},"cores":[]%s}}'


PROCESS = (
    ',"processes":[{"pid":1,"uuid":"u","kind":"compute","memory_bytes":1,"sm_fraction":0,'
    '"memory_controller_fraction":0,"is_reliable":true,"host":%s}]'
)


HOST = '{"name":"n","user":"u","command":"c","started_seconds":1,"cpu_fraction":null,"memory_bytes":1,"is_own":true}'


INVENTORY = '{"inventory":{"driver":"","nvml":"","cuda":"","devices":[%s],"faults":[%s]}}'


DEVICE = (
    '{"uuid":"u","name":"n","index":0,"pci_bus_id":"","mig_parent":null,"mig_instance":null,"raw_name":null,'
    '"state":"running","facts":{}}'
)


FAULT = '{"kind":"lost","since_seconds":1,"uuid":null,"detail":""}'


def test_the_lines_of_the_next_test_are_valid_before_the_change():
    assert read_record((SAMPLE % (PROCESS % HOST)).encode()).processes[0].host.name == "n"
    assert read_record((INVENTORY % (DEVICE, FAULT)).encode()).devices[0].uuid == "u"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"null",
        b"[" * 100_000,
        b'{"other":{}}',
        b'{"plan":[]}',
        b'{"mark":{"monotonic_seconds":1,"wall_seconds":2}}',
        b'{"mark":{"monotonic_seconds":1,"wall_seconds":2,"text":3}}',
        b'{"mark":{"monotonic_seconds":"1","wall_seconds":2,"text":"a"}}',
        b'{"recording":{"version":true,"program":"p","wall_seconds":0}}',
        b'{"at":{"monotonic_seconds":NaN,"wall_seconds":0}}',
        b'{"end":{"wall_seconds":1e999}}',
        b'{"end":{"wall_seconds":2e10}}',
        b'{"recording":{"version":1,"program":"p","wall_seconds":-2e10}}',
        (SAMPLE % "").replace('"wall":2', '"wall":2e10').encode(),
        (SAMPLE % (PROCESS % HOST)).replace('"started_seconds":1', '"started_seconds":1e20').encode(),
        (INVENTORY % (DEVICE, FAULT)).replace('"since_seconds":1', '"since_seconds":-2e10').encode(),
        pending_call_line(None).rstrip(),
        b'{"sample" :null, "x":1}',
        (SAMPLE % ',"cost":[1,2,3,4,5,null]').encode(),
        (SAMPLE % ',"xids":[[1,2]]').encode(),
        (SAMPLE % ',"xids":[["u","2"]]').encode(),
        (SAMPLE % "").replace('"at":1', '"at":NaN').encode(),
        (SAMPLE % "").replace('"at":1', f'"at":{"9" * 400}').encode(),
        (SAMPLE % "").replace('"cores":[]', '"cores":["1"]').encode(),
        (SAMPLE % "").replace('"host":{}', '"host":{"cpu_fraction":1e300}').encode(),
        (SAMPLE % "").replace('"devices":{}', '"devices":{"u":{"power_watts":NaN}}').encode(),
        (SAMPLE % (PROCESS % HOST)).replace('"pid":1', '"pid":[]').encode(),
        (SAMPLE % (PROCESS % HOST)).replace('"uuid":"u"', '"uuid":1').encode(),
        (SAMPLE % (PROCESS % HOST)).replace("compute", "mining").encode(),
        (SAMPLE % (PROCESS % HOST)).replace('"is_reliable":true', '"is_reliable":1').encode(),
        (SAMPLE % (PROCESS % HOST)).replace('"is_own":true', '"is_own":"yes"').encode(),
        (SAMPLE % (PROCESS % HOST)).replace('"name":"n"', '"name":1').encode(),
        (SAMPLE % (PROCESS % HOST)).replace('"cpu_fraction":null', '"cpu_fraction":"a"').encode(),
        (INVENTORY % (DEVICE, FAULT)).replace('"driver":""', '"driver":1').encode(),
        (INVENTORY % (DEVICE, FAULT)).replace('"index":0', '"index":"0"').encode(),
        (INVENTORY % (DEVICE, FAULT)).replace('"mig_instance":null', '"mig_instance":["a",1]').encode(),
        (INVENTORY % (DEVICE, FAULT)).replace("running", "dancing").encode(),
        (INVENTORY % (DEVICE, FAULT)).replace('"detail":""', '"detail":1').encode(),
        (INVENTORY % (DEVICE, FAULT)).replace('"since_seconds":1', '"since_seconds":"x"').encode(),
    ],
)
def test_an_invalid_line_is_an_error(line):
    with pytest.raises(BadLineError):
        read_record(line)


def test_metrics_of_a_later_version_are_left_out():
    line = SAMPLE.replace('"host":{}', '"host":{"cpu_fraction":1,"moon":2}') % ""
    found = read_record(line.replace('"devices":{}', '"devices":{"u":{"power_watts":3,"moon":4}}').encode())
    assert (list(found.host), list(found.devices["u"])) == (["cpu_fraction"], ["power_watts"])


def test_a_line_with_too_many_cards_is_an_error():
    many = ",".join(f'"{number}":{{}}' for number in range(1025))
    with pytest.raises(BadLineError, match="no machine has 1,025 GPUs"):
        read_record((SAMPLE % "").replace('"devices":{}', f'"devices":{{{many}}}').encode())
    with pytest.raises(BadLineError, match="no machine has 1,025 GPUs"):
        read_record((INVENTORY % (",".join([DEVICE] * 1025), "")).encode())


def test_only_samples_and_inventories_are_updates():
    with pytest.raises(BadLineError):
        validate_message(None)
