"""State space decoders: layers with attention, layer patterns and state sizes."""

import json
from pathlib import Path

import pytest
from decoder_cases import attention_layers, hybrid, state_elements
from reader_cases import (
    BAMBA,
    FALCON_H1,
    GRANITE,
    JAMBA,
    MAMBA2,
    NEMOTRON,
    RWKV,
)

from planner.errors import ModelFileError
from planner.models.architecture import Attention, StateMixer
from planner.models.readers.config_json import read_config, read_config_file


def test_mambas_stated_width_precedes_its_factor() -> None:
    sizes = {"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 2, "state_size": 16, "vocab_size": 100}
    stated, by_factor = (
        read_config({**sizes, **width}, "test") for width in ({"intermediate_size": 96}, {"expand": 3})
    )
    assert stated.main.groups[0].layer.mixer.inner_dim == 96
    assert by_factor.main.groups[0].layer.mixer.inner_dim == 192


@pytest.mark.oracle
def test_rwkv_keeps_five_rows_a_layer() -> None:
    import torch
    from transformers_networks import build

    network = build("RwkvForCausalLM", **RWKV).to_empty(device="cpu").to(torch.bfloat16).eval()
    with torch.no_grad():
        states = network(torch.ones(2, 7, dtype=torch.long), use_cache=True).state
    shifts = sum(state[0, :, 0].numel() for state in states if state.dtype == torch.bfloat16)
    sums = sum(state[0, :, 0].numel() for state in states if state.dtype == torch.float32)
    assert state_elements(hybrid("rwkv", RWKV)) == [(shifts, sums)] * 4


def test_falcon_h1_runs_attention_and_mamba_in_parallel() -> None:
    layer = hybrid("falcon_h1", FALCON_H1).main.groups[0].layer
    assert isinstance(layer.mixer, Attention)
    assert isinstance(layer.second_mixer, StateMixer)
    assert hybrid("falcon_h1", FALCON_H1, num_hidden_layers=1).main.groups[0].layer == layer


@pytest.mark.parametrize(("stated", "rotates"), [({}, False), ({"position_embedding_type": "rope"}, True)])
def test_attention_of_granite_hybrids_is_rotated_only_if_stated(stated: dict[str, object], *, rotates: bool) -> None:
    found = hybrid("granitemoehybrid", GRANITE, **stated)
    mixers = [group.layer.mixer for group in found.main.groups]
    assert [mixer.rotary for mixer in mixers if isinstance(mixer, Attention)] == [rotates]


def test_nemotron_layers_can_be_listed_by_letters() -> None:
    found = hybrid("nemotron_h", NEMOTRON, layers_block_type=None, hybrid_override_pattern="ME*-M")
    assert [group.places for group in found.main.groups] == [(0, 4), (1,), (2,), (3,)]


def test_nemotron_has_a_head_of_its_own_even_if_its_file_ties_it() -> None:
    tied = hybrid("nemotron_h", NEMOTRON, tie_word_embeddings=True)
    assert tied == hybrid("nemotron_h", NEMOTRON, tie_word_embeddings=False)


@pytest.mark.parametrize(
    ("model_type", "sizes", "attended"),
    [
        ("bamba", BAMBA | {"attn_layer_indices": None}, []),
        ("bamba", BAMBA | {"layers_block_type": ["attention", "mamba"] * 2}, [0, 2]),
        ("granitemoehybrid", GRANITE | {"layer_types": None}, []),
    ],
)
def test_layers_with_attention_by_family(model_type: str, sizes: dict[str, object], attended: list[int]) -> None:
    assert attention_layers(hybrid(model_type, sizes)) == attended


@pytest.mark.parametrize(
    ("model_type", "sizes", "problem"),
    [
        ("granitemoehybrid", GRANITE | {"layer_types": ["mamba"]}, "must name attention"),
        ("nemotron_h", NEMOTRON | {"layers_block_type": ["dance"]}, "must name the kind"),
    ],
)
def test_unknown_kinds_of_layers_are_refused(model_type: str, sizes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        hybrid(model_type, sizes)


def test_a_time_step_may_have_no_upper_bound(tmp_path: Path) -> None:
    config = {"model_type": "mamba2", **MAMBA2, "time_step_limit": [0.0, float("inf")]}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert read_config_file(tmp_path).main.layer_count == 4


def test_jamba_attends_in_the_fifth_of_eight_layers_unless_it_says_otherwise() -> None:
    found = hybrid("jamba", JAMBA | {"num_hidden_layers": 8, "attn_layer_period": None, "attn_layer_offset": None})
    assert attention_layers(found) == [4]
