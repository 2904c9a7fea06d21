"""Decoders whose mixers keep a state, against the networks that transformers builds and the states these keep."""

import json
from pathlib import Path

import pytest
import torch
from transformers_networks import assert_same, build

from planner.errors import ModelFileError
from planner.models.architecture import Architecture, Attention, StateMixer
from planner.models.readers.config_json import read_config, read_config_file

SIZES = {"hidden_size": 64, "vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = SIZES | {"num_hidden_layers": 4}
ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 16}
DELTA = {
    "head_dim": 16,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
SHARED = EXPERTS | {"shared_expert_intermediate_size": 40}
KIMI = {
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 96,
    "num_experts": 4,
    "num_experts_per_token": 2,
    "moe_intermediate_size": 32,
    "linear_head_dim": 8,
    "linear_num_heads": 4,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 12,
}
NEMOTRON = {
    "head_dim": 16,
    "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp", "linear_attention"],
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "n_groups": 2,
    "ssm_state_size": 16,
    "moe_intermediate_size": 32,
    "moe_shared_expert_intermediate_size": 48,
}

CASES: dict[str, dict[str, object]] = {
    "MambaForCausalLM": SMALL,
    "FalconMambaForCausalLM": SMALL | {"use_bias": True},
    "Mamba2ForCausalLM": SMALL | {"num_heads": 8, "head_dim": 16, "n_groups": 2, "state_size": 32},
    "RwkvForCausalLM": {"hidden_size": 64, "vocab_size": 99, "num_hidden_layers": 4, "attention_hidden_size": 64},
    "JambaForCausalLM": SMALL | ATTENTION | {"num_hidden_layers": 6, "use_mamba_kernels": False},
    "BambaForCausalLM": SMALL | ATTENTION | MAMBA | {"attn_layer_indices": [1, 3]},
    "GraniteMoeHybridForCausalLM": SMALL | ATTENTION | MAMBA | {"layer_types": ["mamba", "attention"] * 2},
    "FalconH1ForCausalLM": SMALL | ATTENTION | MAMBA | {"mamba_d_ssm": 128, "mamba_rms_norm": True},
    "NemotronHForCausalLM": SIZES | ATTENTION | NEMOTRON,
    "Qwen3NextForCausalLM": SMALL | ATTENTION | DELTA | SHARED,
    "Qwen3_5ForCausalLM": SMALL | ATTENTION | DELTA,
    "Qwen3_5MoeForCausalLM": SMALL | ATTENTION | DELTA | SHARED,
    "KimiLinearForCausalLM": SMALL | KIMI | {"num_hidden_layers": 6},
    "RecurrentGemmaForCausalLM": SMALL | ATTENTION | {"lru_width": 64, "attention_window_size": 5},
    "Lfm2ForCausalLM": SMALL | ATTENTION | {"full_attn_idxs": [1, 3]},
}


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


@pytest.mark.parametrize("name", CASES)
def test_small_networks_hold_the_same_tensors(name: str) -> None:
    found = assert_same(name, **CASES[name])
    assert state_elements(found)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_default_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("Rwkv", "RecurrentGemma"))])
def test_the_cache_holds_the_same_states(name: str) -> None:
    found = assert_same(name, **CASES[name])
    network = build(name, **CASES[name]).to_empty(device="cpu").to(torch.bfloat16).eval()
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    with torch.no_grad():
        output = network(torch.ones(2, 7, dtype=torch.long), use_cache=True)
    cache = output.get("past_key_values") or output.get("cache_params")
    kept = [layer for layer in cache.layers if getattr(layer, "conv_states", {}).get(0) is not None]
    assert state_elements(found) == [
        (
            layer.conv_states[0][0].numel(),
            0 if layer.recurrent_states[0] is None else layer.recurrent_states[0][0].numel(),
        )
        for layer in kept
    ]


@pytest.mark.oracle
def test_rwkv_keeps_five_rows_a_layer() -> None:
    found = assert_same("RwkvForCausalLM", **CASES["RwkvForCausalLM"])
    network = build("RwkvForCausalLM", **CASES["RwkvForCausalLM"]).to_empty(device="cpu").to(torch.bfloat16).eval()
    with torch.no_grad():
        states = network(torch.ones(2, 7, dtype=torch.long), use_cache=True).state
    shifts = sum(state[0, :, 0].numel() for state in states if state.dtype == torch.bfloat16)
    sums = sum(state[0, :, 0].numel() for state in states if state.dtype == torch.float32)
    assert state_elements(found) == [(shifts, sums)] * 4


@pytest.mark.oracle
def test_recurrent_gemma_keeps_one_row_and_the_inputs_of_its_convolution() -> None:
    name = "RecurrentGemmaForCausalLM"
    found = assert_same(name, **CASES[name])
    network = build(name, **CASES[name]).to_empty(device="cpu").eval()
    network.model._setup_cache(network.config, 1, torch.device("cpu"), torch.bfloat16)
    blocks = [layer.temporal_block for layer in network.model.layers if hasattr(layer.temporal_block, "rg_lru")]
    assert state_elements(found) == [
        (block.conv1d_state.numel(), block.rg_lru.recurrent_states.numel()) for block in blocks
    ]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("JambaForCausalLM", {"num_experts": 1, "num_experts_per_tok": 1, "mamba_dt_rank": "auto"}),
        (
            "BambaForCausalLM",
            {"mamba_proj_bias": True, "attention_bias": True, "mlp_bias": True, "mamba_d_head": "auto"},
        ),
        ("GraniteMoeHybridForCausalLM", {"num_local_experts": 0, "position_embedding_type": "rope"}),
        ("FalconH1ForCausalLM", {"projectors_bias": True, "mamba_proj_bias": True, "mamba_rms_norm": False}),
        ("NemotronHForCausalLM", {"moe_latent_size": 24, "mlp_bias": True, "use_bias": True}),
        ("Qwen3NextForCausalLM", {"mlp_only_layers": [1], "full_attention_interval": 2, "attention_bias": True}),
        ("KimiLinearForCausalLM", {"first_k_dense_replace": 3}),
        ("Lfm2ForCausalLM", {"conv_bias": True, "block_ffn_dim_multiplier": 1.5, "block_multiple_of": 32}),
        ("Lfm2ForCausalLM", {"block_auto_adjust_ff_dim": False, "tie_word_embeddings": False}),
    ],
)
def test_switches_are_followed(name: str, changes: dict[str, object]) -> None:
    assert_same(name, **CASES[name] | changes)


def _config(model_type: str, name: str, **changes: object) -> dict[str, object]:
    return {"model_type": model_type, **CASES[name], **changes}


def test_layers_run_attention_and_a_state_beside_each_other() -> None:
    found = read_config(_config("falcon_h1", "FalconH1ForCausalLM"), "test")
    layer = found.main.groups[0].layer
    assert isinstance(layer.mixer, Attention)
    assert isinstance(layer.second_mixer, StateMixer)


def test_nemotron_layers_can_be_letters() -> None:
    config = _config("nemotron_h", "NemotronHForCausalLM", layers_block_type=None, n_routed_experts=8)
    config |= {"hybrid_override_pattern": "ME*-M", "num_experts_per_tok": 2}
    found = read_config(config, "test")
    assert [group.places for group in found.main.groups] == [(0, 4), (1,), (2,), (3,)]


def test_kimi_counts_the_layers_of_its_published_file_from_one() -> None:
    linear = {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 8, "num_heads": 4}
    config = _config("kimi_linear", "KimiLinearForCausalLM", num_hidden_layers=4, linear_attn_config=linear)
    found = read_config(config, "test")
    assert next(group.places for group in found.main.groups if group.layer.mixer.kind == "latent") == (3,)


@pytest.mark.parametrize(
    ("model_type", "name"),
    [
        ("bamba", "BambaForCausalLM"),
        ("granitemoehybrid", "GraniteMoeHybridForCausalLM"),
        ("qwen3_next", "Qwen3NextForCausalLM"),
        ("kimi_linear", "KimiLinearForCausalLM"),
        ("lfm2", "Lfm2ForCausalLM"),
    ],
)
def test_patterns_have_defaults(model_type: str, name: str) -> None:
    config = _config(model_type, name, layer_types=None, attn_layer_indices=None, full_attn_idxs=None)
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1, "shared_intermediate_size": 40}
    assert read_config({**config, **experts}, "test").main.layer_count in (4, 6)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (_config("granitemoehybrid", "GraniteMoeHybridForCausalLM", layer_types=["mamba"]), "must name attention"),
        (_config("nemotron_h", "NemotronHForCausalLM", layers_block_type=["dance"]), "must name the kind"),
        (_config("recurrent_gemma", "RecurrentGemmaForCausalLM", block_types=["dance"]), "must name recurrent"),
    ],
)
def test_patterns_are_checked(config: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read_config(config, "test")


def test_a_time_step_may_have_no_upper_bound(tmp_path: Path) -> None:
    config = {"model_type": "mamba2", **CASES["Mamba2ForCausalLM"], "time_step_limit": [0.0, float("inf")]}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert read_config_file(tmp_path).main.layer_count == 4
