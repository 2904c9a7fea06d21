"""Mixture-of-experts decoders: latent attention with indexers, and DBRX."""

import pytest
from decoder_cases import LATENT, attentions, by_layer, tiny

from planner.errors import ModelFileError
from planner.models.architecture import (
    LatentAttention,
    Moe,
)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("glm_moe_dsa", {**LATENT, "indexer_types": ["full"]}),
        ("glm_moe_dsa", {**LATENT, "indexer_types": ["half"] * 8}),
        ("glm_moe_dsa", {**LATENT, "index_topk_pattern": "FS"}),
        ("glm_moe_dsa", {**LATENT, "index_topk_pattern": "FSXXXXXX"}),
        ("dbrx", {}),
    ],
    ids=str,
)
def test_indexer_patterns_that_contradict_the_layers_are_refused(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        tiny(model_type, **changes)


def test_latent_attention_and_its_indexer() -> None:
    layers = by_layer(tiny("glm_moe_dsa", **LATENT, index_topk_freq=2, num_nextn_predict_layers=1))
    mixers = [layer.mixer for layer in layers]
    assert all(isinstance(mixer, LatentAttention) for mixer in mixers)
    widths = [mixer.indexer_dim for mixer in mixers if isinstance(mixer, LatentAttention)]
    assert widths == [8, 8, 0, 8, 0, 8, 0, 8]
    listed = tiny("glm_moe_dsa", **LATENT, indexer_types=["full"] + ["shared"] * 7, mlp_layer_types=["sparse"] * 8)
    assert [group.count for group in listed.main.groups] == [1, 7]
    assert "further tokens" in tiny("deepseek_v3", **LATENT, num_nextn_predict_layers=1).reader_notes[0]
    assert tiny("deepseek_v3", **LATENT).reader_notes == ()


def test_dbrx_has_nested_objects_for_attention_and_experts() -> None:
    found = tiny("dbrx", attn_config={"kv_n_heads": 2, "attn_pdrop": 0.1}, ffn_config={"ffn_act_fn": {"name": "gelu"}})
    layer = by_layer(found)[0]
    assert isinstance(layer.feed_forward, Moe)
    assert layer.feed_forward.activation == "gelu"
    assert attentions(found)[0].dropout == 0.1
    plain = tiny("dbrx", num_key_value_heads=1, ffn_config={"moe_num_experts": 2})
    assert attentions(plain)[0].kv_heads == 1


def test_an_indexer_pattern_lists_the_layers_with_an_indexer() -> None:
    found = tiny("glm_moe_dsa", **LATENT, index_topk_pattern="FSSSFSSS")
    mixers = [layer.mixer for layer in by_layer(found)]
    assert [mixer.indexer_dim for mixer in mixers if isinstance(mixer, LatentAttention)] == [8, 0, 0, 0] * 2


@pytest.mark.parametrize(("offset", "expected"), [({}, "11010101"), ({"index_skip_topk_offset": 0}, "01010101")])
def test_indexers_alternate_after_an_offset(offset: dict[str, int], expected: str) -> None:
    layers = by_layer(tiny("glm_moe_dsa", **LATENT, index_topk_freq=2, **offset))
    widths = [layer.mixer.indexer_dim for layer in layers if isinstance(layer.mixer, LatentAttention)]
    assert "".join("1" if width else "0" for width in widths) == expected


def test_gpt_oss_has_biases_unless_its_configuration_says_otherwise() -> None:
    def biases(**changes: object) -> list[str]:
        layer = by_layer(tiny("gpt_oss", num_local_experts=4, num_experts_per_tok=2, **changes))[0]
        return [tensor.name for tensor in layer.tensors if tensor.name.endswith("q_proj.bias")]

    assert len(biases()) == 1
    assert biases(attention_bias=False) == []


def test_phi_moe_selects_two_experts_whatever_its_file_says() -> None:
    blocks = [
        group.layer.feed_forward for group in tiny("phimoe", num_experts_per_tok=1, num_local_experts=4).main.groups
    ]
    assert [block.top_k for block in blocks if isinstance(block, Moe)] == [2]
