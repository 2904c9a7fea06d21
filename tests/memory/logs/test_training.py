"""Memory output of training programs."""

import log_excerpts as logs
import pytest

from planner.errors import LogError
from planner.memory.logs.read import read_log
from planner.units import GB, GIB, MIB


def found(text):
    """Return the amounts by their name; those of several devices by name and device."""
    return {
        (item.name, item.device) if item.device not in (None, "0") else item.name: item
        for item in read_log(text).measured
    }


def gib(item):
    return round(item.bytes / GIB, 4)


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
