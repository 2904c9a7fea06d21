"""Norms, dropout and output head around a decoder's blocks."""

import pytest
from decoder_cases import attentions, by_layer, tiny


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
