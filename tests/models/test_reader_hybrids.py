"""The states that mixers keep, against the caches that transformers fills, and how layers are told apart."""

import json
from pathlib import Path

import pytest
from reader_cases import (
    BAMBA,
    FALCON_H1,
    GRANITE,
    GRIFFIN,
    KIMI,
    LFM2,
    MAMBA2,
    NEMOTRON,
    QWEN_HYBRID,
    RWKV,
    SHARED,
    STATES,
    Case,
)

from planner.errors import ModelFileError
from planner.models.architecture import Architecture, Attention, LatentAttention, StateMixer
from planner.models.readers.config_json import read_config, read_config_file

CACHED = tuple(case for case in STATES if not case.name.startswith(("Rwkv", "RecurrentGemma")))


def read(model_type: str, sizes: dict[str, object], **changes: object) -> Architecture:
    return read_config({"model_type": model_type, **sizes, **changes}, "test")


def state_elements(found: Architecture) -> list[tuple[int, int]]:
    """Return the elements of the convolution's and the recurrent state of each layer that has one, in order."""
    layers = {
        place: mixer
        for group in found.main.groups
        for place in group.places
        for mixer in (group.layer.mixer, group.layer.second_mixer)
        if isinstance(mixer, StateMixer)
    }
    return [(layers[place].conv_state_elements, layers[place].recurrent_state_elements) for place in sorted(layers)]


@pytest.mark.oracle
@pytest.mark.parametrize("case", CACHED, ids=lambda case: case.name)
def test_the_cache_holds_the_same_states(case: Case) -> None:
    import torch
    from transformers_networks import assert_same, build

    found = assert_same(case.name, **case.changes)
    network = build(case.name, **case.changes).to_empty(device="cpu").to(torch.bfloat16).eval()
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    with torch.no_grad():
        output = network(torch.ones(2, 7, dtype=torch.long), use_cache=True)
    cache = output.get("past_key_values") or output.get("cache_params")
    kept = [layer for layer in cache.layers if getattr(layer, "conv_states", {}).get(0) is not None]
    recurrent = [layer.recurrent_states[0] for layer in kept]
    assert {state.dtype for state in recurrent if state is not None} <= {torch.float32}
    assert state_elements(found) == [
        (layer.conv_states[0][0].numel(), 0 if state is None else state[0].numel())
        for layer, state in zip(kept, recurrent, strict=True)
    ]


@pytest.mark.oracle
def test_rwkv_keeps_five_rows_a_layer() -> None:
    import torch
    from transformers_networks import build

    network = build("RwkvForCausalLM", **RWKV).to_empty(device="cpu").to(torch.bfloat16).eval()
    with torch.no_grad():
        states = network(torch.ones(2, 7, dtype=torch.long), use_cache=True).state
    shifts = sum(state[0, :, 0].numel() for state in states if state.dtype == torch.bfloat16)
    sums = sum(state[0, :, 0].numel() for state in states if state.dtype == torch.float32)
    assert state_elements(read("rwkv", RWKV)) == [(shifts, sums)] * 4


@pytest.mark.oracle
def test_recurrent_gemma_keeps_one_row_and_the_inputs_of_its_convolution() -> None:
    import torch
    from transformers_networks import build

    network = build("RecurrentGemmaForCausalLM", **GRIFFIN).to_empty(device="cpu").eval()
    network.model._setup_cache(network.config, 1, torch.device("cpu"), torch.bfloat16)
    blocks = [layer.temporal_block for layer in network.model.layers if hasattr(layer.temporal_block, "rg_lru")]
    assert state_elements(read("recurrent_gemma", GRIFFIN)) == [
        (block.conv1d_state.numel(), block.rg_lru.recurrent_states.numel()) for block in blocks
    ]


def test_mamba2_keeps_what_it_convolves_and_a_matrix_a_head() -> None:
    inner, groups, state, kernel = 8 * 16, 2, 32, 4
    assert state_elements(read("mamba2", MAMBA2)) == [((inner + 2 * groups * state) * kernel, inner * state)] * 4


def test_layers_run_attention_and_a_state_beside_each_other() -> None:
    layer = read("falcon_h1", FALCON_H1).main.groups[0].layer
    assert isinstance(layer.mixer, Attention)
    assert isinstance(layer.second_mixer, StateMixer)


def test_nemotron_layers_can_be_letters() -> None:
    found = read("nemotron_h", NEMOTRON, layers_block_type=None, hybrid_override_pattern="ME*-M")
    assert [group.places for group in found.main.groups] == [(0, 4), (1,), (2,), (3,)]


def test_kimi_counts_the_layers_of_its_published_file_from_one() -> None:
    linear = {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 8, "num_heads": 4}
    found = read("kimi_linear", KIMI, num_hidden_layers=4, linear_attn_config=linear)
    attends = {group.places for group in found.main.groups if isinstance(group.layer.mixer, LatentAttention)}
    assert attends == {(3,)}


def _attended(found: Architecture) -> list[int]:
    attends = (group for group in found.main.groups if not isinstance(group.layer.mixer, StateMixer))
    return sorted(place for group in attends for place in group.places)


@pytest.mark.parametrize(
    ("model_type", "sizes", "attended"),
    [
        ("bamba", BAMBA | {"attn_layer_indices": None}, []),
        ("bamba", BAMBA | {"layers_block_type": ["attention", "mamba"] * 2}, [0, 2]),
        ("granitemoehybrid", GRANITE | {"layer_types": None}, []),
        ("qwen3_next", QWEN_HYBRID | SHARED, [3]),
        ("qwen3_next", QWEN_HYBRID | SHARED | {"layer_types": ["linear_attention", "full_attention"] * 2}, [1, 3]),
        ("kimi_linear", KIMI, [4]),
        ("kimi_linear", KIMI | {"layer_types": ["linear_attention"] * 5 + ["full_attention"]}, [5]),
        ("lfm2", LFM2 | {"full_attn_idxs": None}, [0, 1, 2, 3]),
        ("lfm2", LFM2 | {"layer_types": ["conv", "conv", "full_attention", "conv"]}, [2]),
        ("recurrent_gemma", GRIFFIN, [2]),
    ],
)
def test_attention_stands_where_the_family_puts_it(
    model_type: str, sizes: dict[str, object], attended: list[int]
) -> None:
    assert _attended(read(model_type, sizes)) == attended


@pytest.mark.parametrize(
    ("model_type", "sizes", "problem"),
    [
        ("granitemoehybrid", GRANITE | {"layer_types": ["mamba"]}, "must name attention"),
        ("nemotron_h", NEMOTRON | {"layers_block_type": ["dance"]}, "must name the kind"),
        ("recurrent_gemma", GRIFFIN | {"block_types": ["dance"]}, "must name recurrent"),
    ],
)
def test_patterns_are_checked(model_type: str, sizes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read(model_type, sizes)


def test_a_time_step_may_have_no_upper_bound(tmp_path: Path) -> None:
    config = {"model_type": "mamba2", **MAMBA2, "time_step_limit": [0.0, float("inf")]}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert read_config_file(tmp_path).main.layer_count == 4
