"""Norms, dropout and output head around a decoder's blocks."""

import pytest
from decoder_cases import EXPERTS, LATENT, attentions, by_layer, tiny

from planner.errors import ModelFileError
from planner.models.architecture import (
    Architecture,
    Mlp,
    Moe,
)


def test_norms_have_the_kind_and_kernels_of_their_family() -> None:
    llama, gemma, gpt, cohere = (by_layer(tiny(kind))[0].norm for kind in ("llama", "gemma2", "gpt_neox", "cohere"))
    assert (llama.kind, llama.native, llama.fp32_product) == ("rms", False, False)
    assert (gemma.kind, gemma.native, gemma.fp32_product) == ("rms", False, True)
    assert (gpt.kind, gpt.native, gpt.bias) == ("layer", True, True)
    assert (cohere.kind, cohere.native, cohere.bias) == ("layer", False, False)


@pytest.mark.parametrize(
    ("model_type", "stated", "softcapped"),
    [
        ("gemma2", {}, True),
        ("gemma2", {"final_logit_softcapping": None}, False),
        ("gemma3_text", {}, False),
        ("gemma3_text", {"final_logit_softcapping": 30.0}, True),
    ],
)
def test_logits_are_capped_as_stated_or_as_the_class_does_by_default(model_type, stated, softcapped) -> None:
    assert tiny(model_type, **stated).softcapped_logits == softcapped


@pytest.mark.parametrize(
    ("model_type", "count", "parallel"),
    [
        ("llama", 2, False),
        ("gemma3_text", 4, False),
        ("glm4", 4, False),
        ("olmo", 2, False),
        ("olmo2", 2, False),
        ("bitnet", 3, False),
        ("phi", 1, True),
        ("gptj", 1, True),
        ("gpt_neox", 2, True),
        ("cohere", 1, True),
        ("falcon", 1, True),
        ("stablelm", 2, False),
    ],
)
def test_number_of_norms_and_parallel_blocks_by_family(model_type: str, count: int, parallel: bool) -> None:
    layer = by_layer(tiny(model_type))[0]
    assert (layer.norm_count, layer.parallel) == (count, parallel)


def test_dropout_defaults_are_those_of_the_configuration_classes() -> None:
    gpt2 = tiny("gpt2")
    assert gpt2.main.embedding_dropout == by_layer(gpt2)[0].hidden_dropout == attentions(gpt2)[0].dropout == 0.1
    assert attentions(tiny("llama", attention_dropout=0.2))[0].dropout == 0.2
    assert attentions(tiny("llama"))[0].dropout == 0.0
    assert by_layer(tiny("seed_oss"))[0].hidden_dropout == 0.1
    mpt = tiny("mpt", attn_config={"attn_pdrop": 0.3})
    assert by_layer(mpt)[0].hidden_dropout == attentions(mpt)[0].dropout == 0.3
    assert attentions(tiny("mpt"))[0].dropout == 0.0


def test_a_tied_head_is_listed_once() -> None:
    tied, untied = tiny("llama", tie_word_embeddings=True), tiny("llama")
    assert tied.tied_head
    assert tied.head == ()
    assert untied.parameters - tied.parameters == 64 * 100
    assert [tensor.name for tensor in tiny("phi", tie_word_embeddings=True).head] == ["lm_head.bias"]


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("deepseek_v3", {**LATENT, "mlp_layer_types": ["dense"]}),
        ("mixtral", {**EXPERTS, "num_experts_per_tok": 9}),
    ],
    ids=str,
)
def test_experts_that_contradict_the_layers_are_refused(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        tiny(model_type, **changes)


def test_a_token_uses_two_of_eight_experts() -> None:
    found = tiny("qwen2_moe", **EXPERTS, shared_expert_intermediate_size=48, decoder_sparse_step=2)
    dense, sparse = by_layer(found)[:2]
    assert isinstance(dense.feed_forward, Mlp)
    assert sparse.feed_forward == Moe(experts=8, top_k=2, intermediate=32, shared_intermediate=48, shared_gate=True)
    routed = 8 * 3 * 64 * 32
    assert found.parameters - found.active_parameters == 4 * routed * 6 // 8


def test_which_layers_hold_experts() -> None:
    def sparse(architecture: Architecture) -> list[bool]:
        return [isinstance(layer.feed_forward, Moe) for layer in by_layer(architecture)]

    ernie = {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 32, "moe_layer_interval": 2}
    found = tiny("ernie4_5_moe", **ernie)
    assert sparse(found) == [False, True] * 4
    assert any(tensor.name.endswith("e_score_correction_bias") for tensor in by_layer(found)[1].tensors)
    assert sparse(tiny("ernie4_5_moe", **ernie, moe_layer_end_index=3)) == [False, True] * 2 + [False] * 4
    assert sparse(tiny("ernie4_5_moe", **ernie | {"moe_layer_interval": 1}, moe_layer_start_index=0)) == [True] * 8
    llama4 = {**EXPERTS, "intermediate_size_mlp": 96}
    assert sparse(tiny("llama4_text", **llama4, moe_layers=[0])) == [True] + [False] * 7
    assert sparse(tiny("llama4_text", **llama4, interleave_moe_layer_step=2)) == [False, True] * 4
    assert sparse(tiny("qwen3_moe", **EXPERTS, mlp_only_layers=[0])) == [False] + [True] * 7
    assert sparse(tiny("glm4_moe", **EXPERTS, first_k_dense_replace=3)) == [False] * 3 + [True] * 5
