"""Buffer lines of llama.cpp, as real runs printed them."""

import log_excerpts as logs
import pytest

from planner.errors import LogError
from planner.memory.logs.read import read_log
from planner.units import MIB


def found(text):
    """Return the amounts by their name; those of several devices by name and device."""
    return {
        (item.name, item.device) if item.device not in (None, "0") else item.name: item
        for item in read_log(text).measured
    }


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
