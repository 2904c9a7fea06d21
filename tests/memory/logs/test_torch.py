"""Memory output of PyTorch and of its trainers, as real runs printed it."""

import json

import log_excerpts as logs
import pytest

from planner.errors import LogError
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LogText
from planner.memory.logs.torch import read_torch_snapshot
from planner.units import GB, GIB, KIB, MIB


def found(text):
    """Return the amounts by their name; those of several devices by name and device."""
    return {
        (item.name, item.device) if item.device not in (None, "0") else item.name: item
        for item in read_log(text).measured
    }


def gib(item):
    return round(item.bytes / GIB, 4)


def test_a_summary_of_2020_says_mb_and_means_mib():
    amounts = found(logs.SUMMARY_OF_2020)
    assert amounts["peak allocated"].bytes == 4877 * MIB
    assert amounts["peak allocated"].high_bytes == 4878 * MIB - 1
    assert amounts["peak allocated"].counter == "allocated"
    assert amounts["peak reserved"].bytes == 12420 * MIB
    assert amounts["peak active"].counter is None
    assert amounts["peak allocated"].line == 8


def test_a_newer_summary_says_kib():
    reading = read_log(logs.SUMMARY_IN_BINARY_UNITS)
    assert reading.formats == ("torch-summary",)
    assert reading.engine == "pytorch"
    assert [(item.bytes, item.device) for item in reading.measured] == [(1024 * KIB, "1")]


def test_a_row_that_was_cut_off_is_left_out():
    assert len(read_log(f"{logs.SUMMARY_IN_BINARY_UNITS}| Allocated memory      |   10").measured) == 1


@pytest.mark.parametrize(
    "text",
    [
        logs.STATS_AS_PAIRS,
        json.dumps({"allocated_bytes.all.peak": 5861, "reserved_bytes.all.peak": 5866}),
        "OrderedDict({'allocated_bytes.all.peak': 5861, 'reserved_bytes.all.peak': 5866})",
        json.dumps(
            {
                "allocated_bytes": {"all": {"current": 1, "peak": 5861}, "large_pool": {"peak": 9}},
                "reserved_bytes": {"all": {"current": 1, "peak": 5866}},
            },
            indent=2,
        ),
    ],
    ids=["pairs", "json", "ordered", "nested"],
)
def test_statistics_are_exact_however_they_are_printed(text):
    amounts = found(text)
    assert amounts["peak allocated"].bytes == amounts["peak allocated"].high_bytes == 5861
    assert amounts["peak reserved"].bytes == 5866


def snapshot(**more):
    segments = [
        {"device": 0, "total_size": 20 * MIB, "allocated_size": 3 * MIB},
        {"device": 1, "total_size": 2 * MIB, "allocated_size": MIB},
    ]
    return json.dumps({"segments": segments, **more})


def test_a_snapshot_with_its_history_knows_the_peak():
    trace = [
        {"action": "segment_alloc", "size": 20 * MIB},
        {"action": "alloc", "size": 10 * MIB},
        {"action": "free_requested", "size": 10 * MIB},
        {"action": "free_completed", "size": 10 * MIB},
        {"action": "alloc", "size": 3 * MIB},
    ]
    amounts = read_log(snapshot(device_traces=[trace, []])).measured
    assert [(item.name, item.bytes, item.sense, item.device) for item in amounts] == [
        ("allocated", 10 * MIB, "peak", "0"),
        ("reserved", 20 * MIB, "peak", "0"),
        ("allocated", MIB, "moment", "1"),
        ("reserved", 2 * MIB, "moment", "1"),
    ]


def test_segments_alone_are_a_moment():
    amounts = read_log(json.dumps(json.loads(snapshot())["segments"])).measured
    assert {item.sense for item in amounts} == {"moment"}


@pytest.mark.parametrize(
    "text",
    [
        '{"total_size": 1, "allocated_size": ',
        '{"total_size": 1, "allocated_size": 2}',
        '[1, "total_size", "allocated_size"]',
    ],
)
def test_what_only_looks_like_a_snapshot_is_none(text):
    with pytest.raises(LogError):
        read_log(text)


@pytest.mark.parametrize(
    ("text", "needed", "reserved", "capacity", "process"),
    [
        (logs.OUT_OF_MEMORY, 31.86, 18.43, 31.47, 18.73),
        (logs.OUT_OF_MEMORY_MISSPELT, 2.6113, 2.5819, 4.0, 3.44),
        (logs.OUT_OF_MEMORY_IN_BRACKETS, 2.3247, 1.01, 14.56, None),
        (logs.OUT_OF_MEMORY_OF_2019, 0.0206, 0.0129, 10.92, None),
    ],
    ids=["now", "misspelt", "brackets", "2019"],
)
def test_an_out_of_memory_message_says_what_was_needed_at_least(text, needed, reserved, capacity, process):
    amounts = found(text)
    assert gib(amounts["allocated and requested"]) == needed
    assert amounts["allocated and requested"].sense == "at-least"
    assert gib(amounts["reserved"]) == reserved
    assert gib(amounts["usable memory"]) == capacity
    assert gib(amounts["this process"]) == process if process else "this process" not in amounts


def test_in_a_container_the_largest_process_is_meant():
    text = logs.OUT_OF_MEMORY.replace("this process has 18.73", "Process 62912 has 0.48").replace(
        "Of the", "Process 113443 has 18.33 GiB memory in use. Of the", 1
    )
    text = text.replace("Including non-PyTorch memory, ", "")
    counters = {item.name: item.counter for item in read_log(text).measured}
    assert counters["process 113443"] == "process"
    assert counters["process 62912"] == "other-processes"


def test_graphs_are_told_apart_and_a_message_without_sizes_is_nothing():
    text = logs.OUT_OF_MEMORY.replace("PyTorch, and", "PyTorch, with 57.88 MiB allocated in private pools (e.g.), and")
    assert found(text)["private pools"].bytes == round(57.88 * MIB)
    assert set(found("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4.00 GiB")) == {
        "usable memory"
    }
    with pytest.raises(LogError):
        read_log("CUDA out of memory. Tried to allocate much")


def test_a_snapshot_has_a_limited_number_of_devices():
    segments = [{"device": number, "total_size": 2, "allocated_size": 1} for number in range(1_030)]
    amounts = read_torch_snapshot(LogText(json.dumps(segments)))
    assert max(int(item.device) for item in amounts) == 1_023


def test_metrics_of_the_trainer_add_up():
    peak = found(logs.TRAINER_METRICS)["peak allocated in training"]
    assert peak.bytes == (312 - 153 + 2012) * MIB
    assert peak.high_bytes - peak.bytes == 3 * (MIB - 1)
    exact = '{"train_mem_gpu_alloc_delta": 100, "train_mem_gpu_peaked_delta": 50, "init_mem_gpu_peaked_delta": 7}'
    assert found(exact)["peak allocated in training"].bytes == 150
    with pytest.raises(LogError):
        read_log("train_mem_gpu_alloc_delta = 5MB")


def test_other_training_programs():
    assert found("GPU Total Peak Memory consumed during the train (max): 5115")["peak allocated"].bytes == 5115 * MIB
    amounts = found(logs.TORCHTUNE)
    assert gib(amounts["peak reserved"]) == 6.27
    assert found(logs.TORCHTUNE.replace("GiB", "GB"))["peak allocated"].bytes == round(6.21 * GB)
    assert gib(found(logs.TORCHTUNE_STEPS)["peak allocated"]) == 53.991
