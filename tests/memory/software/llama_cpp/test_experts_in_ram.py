"""Routed experts that llama.cpp keeps in RAM: bytes to the tensor, the buffer beside them, and the split that fits."""

import csv
from pathlib import Path

import pytest
from small_models import bundled

from planner.hardware.usable import measured_memory_losses, usable_memory
from planner.memory.estimate import estimate_memory, fits_on
from planner.memory.gguf import expert_layer_bytes, layer_bytes
from planner.memory.parallel.pipeline import stages_of
from planner.models.architecture import StoredLayer, StoredTensors
from planner.units import MIB
from planner.workload.workload import Inference

ROWS = Path(__file__).resolve().parents[3] / "truth" / "llama-fit-params.csv"
MARGIN = 1_024 * MIB
COPIES_OF_BIASES = 32.5
"""MiB by which llama.cpp's buffer for gpt-oss with 2,048 tokens is larger than its tensors: results with biases."""


def truth(kind):
    with ROWS.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == kind]


def memory(row, experts):
    settings = {
        "slots": 1,
        "n_cpu_moe": experts,
        "n_ubatch": int(row["n_ubatch"]),
        "n_outputs_max": int(row["n_ubatch"]),
    }
    workload = Inference(
        profile="llama.cpp", weights=row["weights"], context_length=int(row["context"]), engine=settings
    )
    return estimate_memory(bundled().models.model(row["model"]), workload)


def reserved(row, experts):
    terms = {term.name: term.bytes for term in memory(row, experts).terms}
    return terms["weights"], terms["kv_cache"], terms["activations"]


@pytest.mark.parametrize("row", truth("memory"), ids=lambda row: f"{row['model']}-{row['weights']}-{row['context']}")
def test_the_card_holds_what_llama_cpp_projects(row):
    weights, cache, buffer = reserved(row, int(row["experts_in_ram"]))
    assert weights // MIB == int(row["card_model_mib"])
    assert cache // MIB == int(row["card_context_mib"])
    assert buffer / MIB == pytest.approx(int(row["card_compute_mib"]) + 0.5, abs=COPIES_OF_BIASES)


def test_the_split_is_that_of_llama_fit_params():
    splits = [row for row in truth("split") if int(row["experts_in_ram"]) and int(row["gpu_layers"]) in (37, 49, 95)]
    assert len(splits) > 30
    for row in splits:
        layers = int(row["experts_in_ram"])
        target = int(row["free_mib"]) * MIB - MARGIN
        assert sum(reserved(row, layers)) <= target < sum(reserved(row, layers - 1)), row


def test_what_leaves_the_card_is_in_ram():
    row = {"model": "openai/gpt-oss-120b", "weights": "MXFP4_MOE", "context": "8192", "n_ubatch": "512"}
    none, some = memory(row, 0), memory(row, 12)
    # 128 experts of 3 matrices of 2,880 x 2,880 in 4.25 bits, with biases in 32 bits.
    layer = 128 * (3 * 2_880 * 2_880 * 17 // 32 + 3 * 2_880 * 4)
    assert expert_layer_bytes(bundled().models.model(row["model"]), "MXFP4_MOE") == (layer,) * 36
    assert none.term("weights").bytes - some.term("weights").bytes == 12 * layer
    assert some.host_bytes - none.host_bytes == 12 * layer
    assert "without experts of 12 layers in RAM" in some.term("weights").symbols[0].meaning
    assert any("routed experts of 12 of the layers" in note for note in some.notes)
    assert some.term("activations").certainty == "measured"


def test_layers_by_number_are_those_of_the_whole_network_on_each_card():
    model = bundled().models.model("openai/gpt-oss-120b")
    workload = Inference(
        profile="llama.cpp",
        weights="MXFP4_MOE",
        context_length=8192,
        parallel={"pipeline": 2, "pipeline_layers": (18, 18)},
        engine={"cpu_moe_layers": "0-2,18-29"},
    )
    first, second = estimate_memory(model, workload, count=2).per_gpu
    layer = expert_layer_bytes(model, "MXFP4_MOE")[0]
    alone = workload.evolve(engine={"cpu_moe_layers": "0-2"})
    assert estimate_memory(model, alone, count=2).per_gpu[0].total_bytes == first.total_bytes
    more = estimate_memory(model, workload.evolve(engine={"cpu_moe_layers": "0-2,18-30"}), count=2).per_gpu[1]
    assert second.total_bytes - more.total_bytes == layer


def test_layers_in_ram_hold_their_experts_there_already():
    model = bundled().models.model("Qwen/Qwen3-30B-A3B")
    workload = Inference(profile="llama.cpp", weights="Q4_K_M", context_length=4096, gpu_layers=9)
    held = estimate_memory(model, workload)
    same = estimate_memory(model, workload.evolve(engine={"n_cpu_moe": 40}))
    fewer = estimate_memory(model, workload.evolve(engine={"n_cpu_moe": 41}))
    assert held.term("weights").bytes == same.term("weights").bytes > fewer.term("weights").bytes


def test_a_network_without_experts_has_none_in_ram():
    model = bundled().models.model("meta-llama/Llama-3.1-8B")
    workload = Inference(profile="llama.cpp", weights="Q4_K_M", context_length=4096)
    assert (
        estimate_memory(model, workload.evolve(engine={"n_cpu_moe": 9})).terms == estimate_memory(model, workload).terms
    )


def test_experts_of_a_published_exl3_checkpoint_are_909_mib_a_layer():
    # theroyallab/tabbyAPI#473: 909.4 MiB for each layer of Qwen3.8-Flash-Next in EXL3 with 3 bits: 512 experts of three
    # matrices of 2,560 x 640 (ROCm/aiter#5379), each with a 16-bit sign for every row and column.
    matrix = 2_560 * 640 * 3 // 8 + 2 * (2_560 + 640)
    assert 512 * 3 * matrix / MIB == pytest.approx(909.4, abs=0.05)


def test_a_file_says_the_bytes_of_its_layers():
    model = bundled().models.model("openai/gpt-oss-20b")
    layers = tuple(StoredLayer(bytes=10 * MIB + place, expert_bytes=8 * MIB) for place in range(24))
    parts = (StoredTensors(format="MXFP4", place="layers", elements=1, bytes=240 * MIB + 276),)
    own = model.evolve(container="gguf", quantization="MXFP4_MOE", stored=parts, stored_layers=layers)
    assert layer_bytes(own, "MXFP4_MOE") == tuple(10 * MIB + place for place in range(24))
    assert expert_layer_bytes(own, "MXFP4_MOE") == (8 * MIB,) * 24
    first, second = stages_of(own, (10, 14), formats_by_layer=True)
    assert layer_bytes(second.architecture, "MXFP4_MOE") == tuple(10 * MIB + place for place in range(10, 24))
    assert len(first.architecture.stored_layers) == 10
    workload = Inference(profile="llama.cpp", weights="stored", context_length=512, engine={"n_cpu_moe": 3})
    assert estimate_memory(own, workload).term("weights").bytes == 240 * MIB + 276 - 3 * 8 * MIB


@pytest.mark.parametrize(("experts", "can"), [(0, True), (20, True), (60, False)])
def test_memory_that_cpu_and_gpu_share_holds_both_parts(experts, can):
    # 235 billion parameters in 4.8 bits are more than the 128 GB of the machine, wherever they are.
    catalog = bundled()
    name = "Qwen/Qwen3-235B-A22B" if experts == 60 else "openai/gpt-oss-120b"
    gpu = next(gpu for gpu in catalog.hardware.gpus if gpu.id == "ryzen-ai-max-395")
    workload = Inference(
        profile="llama.cpp",
        weights="Q4_K_M" if experts == 60 else "MXFP4_MOE",
        context_length=4096,
        engine={"n_cpu_moe": experts},
    )
    usable = usable_memory(gpu, measured_memory_losses(catalog.hardware.gpus))
    found = estimate_memory(catalog.models.model(name), workload, gpu, usable)
    (fit,) = fits_on(catalog.models.model(name), workload, ((gpu, usable),))
    assert (found.unsupported == ()) == can == (fit.unsupported == ())
    assert can or "CPU and GPU share 128.0 GiB" in found.unsupported[0]
