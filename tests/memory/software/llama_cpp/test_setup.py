"""Slots, cells, recurrent states and placed weights of llama.cpp, with what its logs print."""

import pytest
from llama_cpp_cases import LLAMA_3, alive, filled, in_ram, state_model
from small_models import DEEPSEEK, bundled, llama, other

from planner.memory.gguf import file_bytes, layer_bytes, tensor_bytes
from planner.memory.software.llama_cpp.setup import LlamaCppSetup, placed_weights, setup_of
from planner.models.architecture import Architecture, StoredTensors
from planner.units import MIB


def set_up(model: Architecture, **changes) -> LlamaCppSetup:
    return setup_of(model, filled(model, **changes))


@pytest.mark.parametrize(
    ("name", "file_type", "mib"),
    [
        ("meta-llama/Meta-Llama-3-8B", "Q4_K_M", 4403.49),
        ("huggyllama/llama-7b", "Q4_0", 3577.55),
        ("huggyllama/llama-7b", "F16", 12_603.02),
        ("huggyllama/llama-13b", "Q4_0", 6936.01),
        ("huggyllama/llama-65b", "Q4_0", 34_950.11),
    ],
)
def test_weights_on_the_card_are_what_the_logs_print(name: str, file_type: str, mib: float):
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: model buffer size, all layers offloaded
    shares = alive(bundled().models.model(name), weights=file_type, context_length=512)
    assert shares["weights"] / MIB == pytest.approx(mib, abs=0.01)


def test_cells_come_in_multiples_of_256():
    model = llama()
    assert set_up(model, context_length=100).cells == 256
    assert set_up(model, context_length=257, batch=2).cells == 768
    assert set_up(model, context_length=257, batch=2, engine={"slots": 2}).cells == 512


def test_slots_share_one_cache_unless_they_are_given():
    shared, apart = set_up(llama()), set_up(llama(), engine={"slots": 3})
    assert (shared.slots, shared.streams, shared.unified) == (4, 1, True)
    assert (apart.slots, apart.streams, apart.unified) == (3, 3, False)
    assert set_up(llama(), batch=9).slots == 9
    assert set_up(llama(), engine={"slots": 3, "kv_unified": True}).streams == 1
    # Each slot has the whole context, and room for the window of every slot where they share a cache.
    assert alive(llama(), engine={"slots": 3})["kv_cache"] == 3 * alive(llama())["kv_cache"]
    assert shared.sliding_cells(1000) == 4096
    assert shared._replace(cells=100_000).sliding_cells(1000) == 4608
    assert apart._replace(cells=100_000).sliding_cells(1000) == 1536


def test_a_micro_batch_is_a_multiple_of_the_slots_and_no_longer_than_the_cache():
    assert set_up(llama(), context_length=10).tokens == 256
    assert set_up(llama(), engine={"n_batch": 100}).tokens == 100
    assert set_up(llama(), engine={"slots": 3, "n_ubatch": 100}).tokens == 102
    assert set_up(llama(), engine={"n_outputs_max": 2}).outputs == 4
    assert set_up(llama(), engine={"n_outputs_max": 10_000}).outputs == 512


@pytest.mark.parametrize(
    ("asked", "on_card", "output"), [(None, 32, True), (0, 0, False), (1, 0, True), (11, 10, True), (99, 32, True)]
)
def test_the_output_is_the_first_layer_on_the_card(asked: int | None, on_card: int, output: bool):
    found = set_up(llama(), gpu_layers=asked)
    assert (found.layers_on_card, found.output_on_card) == (on_card, output)


def test_what_is_not_on_the_card_is_in_ram():
    model = bundled().models.model(LLAMA_3)
    whole = file_bytes(model, "Q4_K_M")
    for asked in (None, 0, 1, 12, 33):
        placed = placed_weights(model, "Q4_K_M", set_up(model, weights="Q4_K_M", gpu_layers=asked))
        assert placed.term.bytes + placed.host_bytes == whole
        assert (placed.largest_on_host > 0) == (asked in (0, 1, 12))
    layers = layer_bytes(model, "Q4_K_M")
    twelve = placed_weights(model, "Q4_K_M", set_up(model, weights="Q4_K_M", gpu_layers=12))
    assert twelve.term.bytes == sum(layers[-11:]) + tensor_bytes(model, "Q4_K_M")["output"] + 4 * 4096


def test_a_tied_output_is_loaded_a_second_time():
    qwen = bundled().models.model("Qwen/Qwen3-0.6B")
    placed = placed_weights(qwen, "Q8_0", set_up(qwen, weights="Q8_0"))
    parts = tensor_bytes(qwen, "Q8_0")
    assert placed.host_bytes == parts["embedding"]
    assert placed.term.bytes == file_bytes(qwen, "Q8_0")


def test_weights_of_a_file_that_was_read_are_shared_among_its_layers():
    parts = (("embedding", 100), ("layers", 3201), ("output", 50), ("other", 4))
    stored = tuple(StoredTensors(format="Q4_K", place=place, elements=1, bytes=size) for place, size in parts)
    model = llama().evolve(container="gguf", quantization="Q4_K_M", stored=stored)
    by_layer = layer_bytes(model, "Q4_K_M")
    assert sum(by_layer) == 3201
    assert set(by_layer) == {100, 101}
    assert alive(model)["weights"] == 3201 + 54
    mixed = model.evolve(quantization=None, stored_dtype="bf16")
    assert mixed.stored_as == "stored"
    assert alive(mixed, gpu_layers=1)["activations"] > alive(mixed)["activations"]


ONE_SLOT = {"slots": 1}


@pytest.mark.parametrize(
    ("name", "changes", "mib"),
    [
        ("meta-llama/Llama-2-7b-hf", {"context_length": 512}, 256),
        ("Qwen/Qwen3-32B", {"context_length": 40_960}, 10_240),
        ("Qwen/Qwen3-32B", {"context_length": 16_896, "kv_cache": "q8_0"}, 2244),
        ("google/gemma-3-27b-it", {"context_length": 32_768, "engine": ONE_SLOT | {"swa_full": True}}, 15_872),
        # 52 sliding layers of pad256(1,024 + 512) cells, 10 full ones of 32,768
        ("google/gemma-3-27b-it", {"context_length": 32_768, "engine": ONE_SLOT}, (52 * 1536 + 10 * 32_768) / 128),
        # Gemma-3-270m with 4,096 tokens: 27.00 MiB (measured)
        ("google/gemma-3-270m-it", {"context_length": 4096, "engine": ONE_SLOT}, 27.0),
    ],
)
def test_cells_are_what_the_logs_print(name: str, changes: dict[str, object], mib: float):
    assert alive(bundled().models.model(name), **changes)["kv_cache"] / MIB == pytest.approx(mib, abs=0.005)


def test_keys_and_values_stand_where_their_layers_do():
    model = bundled().models.model(LLAMA_3)
    everything = alive(model)["kv_cache"]
    assert alive(model, gpu_layers=9)["kv_cache"] == everything // 4
    assert "kv_cache" not in alive(model, gpu_layers=0)
    assert in_ram(model, gpu_layers=9) > in_ram(model) + everything * 3 // 4


def test_latent_attention_keeps_no_values():
    deepseek = other("deepseek_v3", DEEPSEEK)
    assert alive(deepseek, context_length=4096)["kv_cache"] == 4 * 4096 * 576 * 2


def test_layers_that_share_keys_and_values_keep_none():
    model = llama()
    group = model.main.groups[0]
    shared = group.layer.evolve(mixer=group.layer.mixer.evolve(kv_shared=True))
    places = tuple(range(32))
    halves = (group.evolve(count=20, places=places[:20]), group.evolve(layer=shared, count=12, places=places[20:]))
    half = model.evolve(stacks=(model.main.evolve(groups=halves),))
    assert alive(half)["kv_cache"] == alive(model)["kv_cache"] * 20 // 32


def test_states_are_in_fp32_one_for_each_slot():
    model = state_model()
    assert alive(model)["state"] == 4 * 2 * 100 * 4
    assert alive(model, gpu_layers=2)["state"] == 4 * 100 * 4
    assert "kv_cache" not in alive(model)
    assert {"state", "kv_cache"} <= set(alive(state_model(second=True)))
