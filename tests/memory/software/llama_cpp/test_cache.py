"""llama.cpp's KV cells and recurrent states, with what its logs print."""

import pytest
from llama_cpp_cases import LLAMA_3, alive, in_ram, state_model
from small_models import DEEPSEEK, bundled, llama, other

from planner.units import MIB

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
