"""Encoder-decoders, against the networks that transformers builds."""

import pytest
from transformers_networks import assert_same

from planner.errors import ModelFileError
from planner.models.architecture import Attention, Mlp
from planner.models.readers.config_json import read_config

T5 = {
    "model_type": "t5",
    "d_model": 64,
    "d_kv": 8,
    "d_ff": 96,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "vocab_size": 99,
}
BART = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 160,
    "vocab_size": 60000,
}

T5_CASES = [
    f"{family}{head}" for family in ("T5", "MT5", "UMT5") for head in ("ForConditionalGeneration", "EncoderModel")
]
BART_CASES = [
    "BartForConditionalGeneration",
    "BartModel",
    "BartForSequenceClassification",
    "BlenderbotForConditionalGeneration",
    "BlenderbotSmallForConditionalGeneration",
    "M2M100ForConditionalGeneration",
    "MarianMTModel",
    "MBartForConditionalGeneration",
    "MBartForSequenceClassification",
    "PegasusForConditionalGeneration",
    "WhisperForConditionalGeneration",
]


@pytest.mark.parametrize("name", [*T5_CASES, *BART_CASES])
def test_small_networks_hold_the_same_tensors(name: str) -> None:
    sizes = {key: value for key, value in T5.items() if key != "model_type"} if name in T5_CASES else BART
    assert_same(name, **sizes)


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*T5_CASES, *BART_CASES])
def test_default_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name)


# Sizes of the published checkpoints; the counts are those of the networks that they make, each tensor once.
PUBLISHED_T5 = {
    "t5-small": (60_506_624, {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8}),
    "t5-11b": (11_307_321_344, {"d_model": 1024, "d_ff": 65536, "num_layers": 24, "num_heads": 128, "d_kv": 128}),
    "flan-t5-xl": (
        2_849_757_184,
        {"d_model": 2048, "d_ff": 5120, "num_layers": 24, "num_heads": 32, "feed_forward_proj": "gated-gelu"},
    ),
}


@pytest.mark.parametrize("name", PUBLISHED_T5)
def test_published_t5_counts(name: str) -> None:
    count, sizes = PUBLISHED_T5[name]
    config = {"model_type": "t5", "d_kv": 64, "vocab_size": 32128, "tie_word_embeddings": "flan" not in name, **sizes}
    assert read_config(config, name).parameters == count


def test_an_untied_t5_counts_its_head_and_says_that_transformers_ties_it() -> None:
    found = read_config({**T5, "tie_word_embeddings": False}, "test")
    assert found.head[0].shape == (99, 64)
    assert any("ties it" in note for note in found.reader_notes)


def test_t5_drops_out_everywhere_and_gates_with_the_stepwise_gelu() -> None:
    found = read_config({**T5, "feed_forward_proj": "gated-gelu"}, "test")
    layer = found.main.groups[0].layer
    assert isinstance(layer.feed_forward, Mlp)
    assert (layer.feed_forward.gated, layer.feed_forward.activation) == (True, "gelu-new")
    assert isinstance(layer.mixer, Attention)
    assert {layer.mixer.dropout, layer.feed_forward.dropout, layer.hidden_dropout} == {0.1}
    assert layer.cross_attention is not None


@pytest.mark.parametrize("activation", ["open-gelu", "gated-sine", ""])
def test_t5_refuses_activations_it_does_not_know(activation: str) -> None:
    with pytest.raises(ModelFileError, match="feed_forward_proj must be an activation"):
        read_config({**T5, "feed_forward_proj": activation}, "test")


def test_marian_can_have_two_vocabularies() -> None:
    found = assert_same("MarianMTModel", **BART | {"decoder_vocab_size": 60500}, share_encoder_decoder_embeddings=False)
    assert found.vocabulary == 60500


def test_whisper_reads_frames_and_writes_tokens() -> None:
    found = assert_same("WhisperForConditionalGeneration", **BART | {"num_mel_bins": 128})
    assert [stack.name for stack in found.stacks] == ["audio", "decoder"]
    assert found.stacks[0].positions == 1500
    assert found.max_context == 448


def test_an_untied_bart_has_a_head() -> None:
    found = read_config({"model_type": "bart", **BART, "tie_word_embeddings": False}, "test")
    assert (found.tied_head, found.head[0].name) == (False, "lm_head.weight")
