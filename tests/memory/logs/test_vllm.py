"""Start-up lines of vLLM, as real runs printed them."""

import log_excerpts as logs
import pytest

from planner.memory.logs.read import read_log
from planner.units import GIB


def found(text):
    """Return the amounts by their name; those of several devices by name and device."""
    return {
        (item.name, item.device) if item.device not in (None, "0") else item.name: item
        for item in read_log(text).measured
    }


def gib(item):
    return round(item.bytes / GIB, 4)


def test_vllm_says_gb_and_means_gib():
    reading = read_log(logs.VLLM_WITH_WRONG_UNIT)
    assert gib(reading.measured[0]) == 67.7229
    assert reading.cache_tokens == 1381 * 16
    assert reading.context_length == 2048
    assert reading.engine == "vllm"


def test_vllm_of_december_2024():
    amounts = found(logs.VLLM_PROFILE_OF_2024)
    assert gib(amounts["model weights"]) == 7.48
    assert gib(amounts["outside PyTorch"]) == 3.58
    assert gib(amounts["peak activation"]) == 1.26
    assert gib(amounts["usable memory"]) == 79.22
    assert gib(amounts["vLLM's share"]) == 71.29


def test_vllm_v0():
    reading, amounts = read_log(logs.VLLM_V0), found(logs.VLLM_V0)
    assert gib(amounts["peak activation"]) == 36.63
    assert gib(amounts["cache pool"]) == 14.65
    assert amounts["cache pool"].sense == "pool"
    assert reading.cache_tokens == 6001 * 16


def test_vllm_v1_prints_four_digits():
    reading = read_log(logs.VLLM_V1 + "INFO Initializing a V1 LLM engine (v0.8.5) with config: model='meta/L', \n")
    weights = reading.measured[0]
    assert weights.high_bytes - weights.low_bytes == pytest.approx(GIB / 10_000, abs=2)
    assert (reading.cache_tokens, reading.context_length) == (158_656, 32_768)
    assert (reading.version, reading.model) == ("0.8.5", "meta/L")


def test_of_several_lines_the_one_with_more_digits_counts():
    amounts = found(logs.VLLM_V1 + "model weights take 14.99GiB;\n" + logs.VLLM_GRAPHS)
    assert gib(amounts["model weights"]) == 14.9889
    assert gib(amounts["CUDA graphs"]) == 0.11


def test_the_newest_vllm_tells_weights_and_libraries_together():
    amounts = found(
        logs.VLLM_LATEST + "(Worker_PP1_TP3 pid=4365) INFO Model loading took 19.07 GiB memory and 58.2 seconds"
    )
    apart = amounts["outside PyTorch", "PP1_TP3"]
    assert gib(apart) == 0.4
    assert apart.term == "framework_overhead"
    assert gib(amounts["CUDA graphs", "PP1_TP3"]) == 0.1
    assert ("outside PyTorch", "PP1_TP3") not in found(logs.VLLM_LATEST)


def test_vllm_on_other_devices():
    amounts = found(logs.VLLM_ASCEND)
    assert gib(amounts["model weights"]) == 1.14
    assert gib(amounts["outside PyTorch"]) == 0.13


def test_workers_are_devices_and_copies_are_left_out():
    reading = read_log(logs.VLLM_WORKERS)
    assert reading.splits_model
    assert reading.devices == ("pid=521", "pid=507")
    ranks = "".join(
        f"(Worker_DP{copy}_TP{rank} pid=1) INFO Model loading took 2.00 GiB\n" for copy in (0, 1) for rank in (0, 1)
    )
    assert read_log(ranks).devices == ("TP0", "TP1")
    copy_first = "".join(f"(Worker_DP{copy} pid=1) INFO Model loading took {copy}.50 GiB\n" for copy in (1, 0))
    assert [(amount.device, amount.bytes) for amount in read_log(copy_first).measured] == [("0", 2**29)]
    assert read_log("(VllmWorker rank=1 pid=12) INFO Model loading took 9.10 GiB").devices == ("rank=1",)
    assert read_log("(Worker_DP0 pid=12) INFO Model loading took 9.10 GiB").devices == ("0",)
