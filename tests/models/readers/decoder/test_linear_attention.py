"""Hybrid decoders with linear attention, delta nets, recurrences or short convolutions."""

import pytest
from decoder_cases import EXPERTS, attention_layers, by_layer, hybrid, state_elements, tiny
from reader_cases import (
    GRIFFIN,
    KIMI,
    LFM2,
    QWEN_HYBRID,
    SHARED,
)

from planner.errors import ModelFileError
from planner.models.architecture import (
    Attention,
    LatentAttention,
    StateMixer,
)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("minimax", {**EXPERTS, "layer_types": ["full_attention"] * 3}),
        ("minimax", {**EXPERTS, "layer_types": ["sliding_attention"] * 8}),
    ],
    ids=str,
)
def test_layer_kinds_that_minimax_lacks_are_refused(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        tiny(model_type, **changes)


def test_minimax_mixes_linear_attention_with_softmax_attention() -> None:
    kinds = [type(layer.mixer) for layer in by_layer(tiny("minimax", **EXPERTS))]
    assert kinds == [Attention, StateMixer] * 4
    typed = tiny("minimax", **EXPERTS, layer_types=["linear_attention"] * 7 + ["full_attention"])
    assert [type(layer.mixer) for layer in by_layer(typed)] == [StateMixer] * 7 + [Attention]


@pytest.mark.oracle
def test_recurrent_gemma_keeps_one_row_and_the_inputs_of_its_convolution() -> None:
    import torch
    from transformers_networks import build

    network = build("RecurrentGemmaForCausalLM", **GRIFFIN).to_empty(device="cpu").eval()
    network.model._setup_cache(network.config, 1, torch.device("cpu"), torch.bfloat16)
    blocks = [layer.temporal_block for layer in network.model.layers if hasattr(layer.temporal_block, "rg_lru")]
    assert state_elements(hybrid("recurrent_gemma", GRIFFIN)) == [
        (block.conv1d_state.numel(), block.rg_lru.recurrent_states.numel()) for block in blocks
    ]


def test_kimi_counts_the_layers_of_its_published_file_from_one() -> None:
    linear = {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 8, "num_heads": 4}
    found = hybrid("kimi_linear", KIMI, num_hidden_layers=4, linear_attn_config=linear)
    attends = {group.places for group in found.main.groups if isinstance(group.layer.mixer, LatentAttention)}
    assert attends == {(3,)}


@pytest.mark.parametrize(
    ("model_type", "sizes", "attended"),
    [
        ("qwen3_next", QWEN_HYBRID | SHARED, [3]),
        ("qwen3_next", QWEN_HYBRID | SHARED | {"layer_types": ["linear_attention", "full_attention"] * 2}, [1, 3]),
        ("kimi_linear", KIMI, [4]),
        ("kimi_linear", KIMI | {"layer_types": ["linear_attention"] * 5 + ["full_attention"]}, [5]),
        ("lfm2", LFM2 | {"full_attn_idxs": None}, [0, 1, 2, 3]),
        ("lfm2", LFM2 | {"layer_types": ["conv", "conv", "full_attention", "conv"]}, [2]),
        ("recurrent_gemma", GRIFFIN, [2]),
    ],
)
def test_layers_with_attention_by_family(model_type: str, sizes: dict[str, object], attended: list[int]) -> None:
    assert attention_layers(hybrid(model_type, sizes)) == attended


@pytest.mark.parametrize(
    ("model_type", "sizes", "problem"),
    [
        ("recurrent_gemma", GRIFFIN | {"block_types": ["dance"]}, "must name recurrent"),
    ],
)
def test_unknown_kinds_of_layers_are_refused(model_type: str, sizes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        hybrid(model_type, sizes)
