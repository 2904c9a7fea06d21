"""Each format, on lines of real runs."""

import json

import log_excerpts as logs
import pytest

from planner.errors import LogError
from planner.memory.logs.read import FORMATS, read_log
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
    assert read_log("(VllmWorker rank=1 pid=12) INFO Model loading took 9.10 GiB").devices == ("rank=1",)
    assert read_log("(Worker_DP0 pid=12) INFO Model loading took 9.10 GiB").devices == ("0",)


def test_llama_cpp_on_two_cards():
    reading = read_log(logs.LLAMA_CPP_TWO_CARDS)
    amounts = {(item.name, item.device): item for item in reading.measured}
    assert amounts["model buffer", "CUDA1"].bytes == round(13989.53 * MIB)
    assert amounts["KV buffer", "CUDA0"].term == "kv_cache"
    assert amounts["model buffer", None].counter == "host"
    assert amounts["output buffer", None].term is None
    assert reading.devices == ("NVIDIA GeForce RTX 4070 Ti", "NVIDIA GeForce RTX 3090 Ti")
    assert (reading.splits_model, reading.context_length) == (True, 4096)


def test_llama_cpp_buffers_of_one_kind_are_added_up():
    window = "llama_kv_cache:      CUDA0 KV buffer size =    12.00 MiB\n"
    amounts = found(logs.LLAMA_CPP_BUILD + window)
    assert amounts["KV buffer", "CUDA0"].bytes == 156 * MIB
    assert read_log(logs.LLAMA_CPP_BUILD).version == "b4701"
    assert found(logs.LLAMA_CPP_ROWS)["model buffer", "CUDA0"].bytes == pytest.approx(14058.19 * MIB, abs=MIB / 100)


def test_of_several_models_the_largest_counts():
    draft = logs.LLAMA_CPP_MAPPED.replace("8148.38", " 600.00") + "llama: CUDA0 compute buffer size =   30.00 MiB\n"
    for text in (logs.LLAMA_CPP_BUILD, ""):
        amounts = found(logs.LLAMA_CPP_MAPPED + "x: CUDA0 compute buffer size =   9.00 MiB\n" + draft + text)
        assert amounts["model buffer", "CUDA0"].bytes == round(8148.38 * MIB)


def test_the_breakdown_of_llama_cpp_is_whole_mib():
    amounts = found(logs.LLAMA_CPP_BREAKDOWN)
    assert amounts["model", "CUDA0"].bytes == 28609 * MIB
    assert amounts["unaccounted", "CUDA0"].term == "framework_overhead"
    assert amounts["usable memory", "CUDA0"].high_bytes == 32607 * MIB - 1
    with_buffers = found(logs.LLAMA_CPP_MAPPED + logs.LLAMA_CPP_BREAKDOWN)
    assert ("model", "CUDA0") not in with_buffers
    assert ("unaccounted", "CUDA0") in with_buffers


def test_a_projection_is_not_taken_for_a_run():
    with pytest.raises(LogError):
        read_log(logs.LLAMA_CPP_PROJECTED)


def test_metal_maps_weights_on_the_card():
    amounts = found("load_tensors: Metal_Mapped model buffer size =  4437.80 MiB\n")
    assert amounts["model buffer", "Metal_Mapped"].term == "weights"


def test_names_of_models_in_llama_cpp():
    text = "print_info: general.name     = Gpt-Oss-120B\n" + logs.LLAMA_CPP_MAPPED
    assert read_log(text).model == "Gpt-Oss-120B"


def test_the_table_of_nvidia_smi():
    amounts = found(logs.SMI_TABLE)
    assert amounts["used on the card"].bytes == 393 * MIB
    assert amounts["used on the card"].sense == "moment"
    assert amounts["nvidia-smi's total"].bytes == 24564 * MIB
    assert read_log(logs.SMI_TABLE).engine is None


def test_the_largest_process_is_the_one_that_is_meant():
    amounts = found(logs.SMI_PROCESSES)
    assert amounts["./llama-server, process 884422"].counter == "process"
    assert amounts["/usr/lib/xorg/Xorg, process 1714"].counter == "other-processes"


def test_lists_of_nvidia_smi():
    amounts = found(logs.SMI_LISTS)
    assert amounts["used on the card"].bytes == 9123 * MIB
    assert amounts["nvidia-smi's total"].bytes == 46068 * MIB
    assert amounts["/usr/bin/python3, process 52114"].bytes == 6294 * MIB
    assert amounts["tritonserver, process 44378"].counter == "other-processes"
    alone = found("name, memory.used [MiB]\nTesla T4, 4303 MiB\nTesla T4, [N/A]\n")
    assert [item.bytes for item in alone.values()] == [4303 * MIB]
    total = found("memory.used [MiB], memory.total [MiB]\n[N/A], 16384 MiB\n")
    assert list(total) == ["nvidia-smi's total"]


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


def test_a_text_may_hold_several_formats():
    reading = read_log(logs.SMI_PROCESSES + "\n" + logs.LLAMA_CPP_TWO_CARDS + "\n" + logs.OUT_OF_MEMORY)
    assert set(reading.formats) == {"nvidia-smi", "llama.cpp", "torch-out-of-memory"}
    assert reading.engine == "llama.cpp"


def test_what_is_not_recognised_names_the_formats():
    with pytest.raises(LogError) as error:
        read_log("Hello.")
    assert all(form.title in error.value.hint for form in FORMATS.values())
