"""Attention and feed-forward blocks by family."""

import pytest
from decoder_cases import EXPERTS, attentions, by_layer, tiny

from planner.errors import ModelFileError
from planner.models.architecture import (
    Mlp,
)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("llama", {"head_dim": None, "hidden_size": 65}),
    ],
    ids=str,
)
def test_heads_must_divide_the_hidden_width(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        tiny(model_type, **changes)


def test_attention_has_the_implementation_of_its_family() -> None:
    gpt2, llama, bloom, gemma2 = (attentions(tiny(kind))[0] for kind in ("gpt2", "llama", "bloom", "gemma2"))
    assert (gpt2.fused_qkv, gpt2.rotary, gpt2.fp32_softmax, gpt2.sdpa) == (True, False, False, True)
    assert (llama.fused_qkv, llama.rotary, llama.fp32_softmax, llama.sdpa) == (False, True, True, True)
    assert not bloom.sdpa
    assert not gemma2.sdpa
    assert attentions(tiny("gpt_oss", **EXPERTS))[0].sinks
    assert attentions(tiny("gpt_bigcode"))[0].kv_heads == 1
    assert not attentions(tiny("gpt_bigcode", attention_softmax_in_fp32=False))[0].fp32_softmax


@pytest.mark.parametrize(
    ("model_type", "expected"),
    [
        ("llama", Mlp(intermediate=128, gated=True)),
        ("phi3", Mlp(intermediate=128, gated=True, fused_gate_up=True)),
        ("gemma", Mlp(intermediate=128, gated=True, activation="gelu-tanh")),
        ("gptj", Mlp(intermediate=128, gated=False, activation="gelu-new")),
        ("nemotron", Mlp(intermediate=128, gated=False, activation="relu2")),
        ("bloom", Mlp(intermediate=256, gated=False, activation="gelu-bloom")),
    ],
)
def test_feed_forward_blocks_by_family(model_type: str, expected: Mlp) -> None:
    assert by_layer(tiny(model_type))[0].feed_forward == expected


def test_the_blocks_of_llama_have_no_biases() -> None:
    assert not [tensor.name for tensor in tiny("llama").main.groups[0].layer.tensors if tensor.name.endswith("bias")]
