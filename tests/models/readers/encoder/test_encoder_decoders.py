"""What readers find in encoder-decoders beside their tensors."""

import pytest
from reader_cases import BART, GATED_T5, T5

from planner.errors import ModelFileError
from planner.models.architecture import Architecture, Attention, Mlp
from planner.models.readers.config_json import read_config


def read(model_type: str, sizes: dict[str, object], **changes: object) -> Architecture:
    return read_config({"model_type": model_type, **sizes, **changes}, "test")


def test_an_untied_t5_counts_its_head_and_says_that_transformers_ties_it() -> None:
    found = read("t5", GATED_T5, tie_word_embeddings=False)
    assert found.head[0].shape == (99, 64)
    assert any("ties it" in note for note in found.reader_notes)


def test_t5_drops_out_everywhere_and_gates_with_the_stepwise_gelu() -> None:
    layer = read("t5", GATED_T5).main.groups[0].layer
    assert isinstance(layer.feed_forward, Mlp)
    assert (layer.feed_forward.gated, layer.feed_forward.activation) == (True, "gelu-new")
    assert isinstance(layer.mixer, Attention)
    assert {layer.mixer.dropout, layer.feed_forward.dropout, layer.hidden_dropout} == {0.1}
    assert layer.cross_attention is not None
    assert not layer.norm.native


def test_relative_positions_stand_in_the_first_layer_or_in_all() -> None:
    assert [group.count for group in read("t5", T5).main.groups] == [1, 2]
    assert [group.count for group in read("umt5", T5).main.groups] == [3]


def test_the_encoder_alone_is_an_encoder() -> None:
    found = read("t5", T5, architectures=["T5EncoderModel"])
    assert (found.kind, found.tied_head, len(found.stacks)) == ("encoder", False, 1)


@pytest.mark.parametrize("activation", ["open-gelu", "gated-sine", ""])
def test_t5_refuses_activations_it_does_not_know(activation: str) -> None:
    with pytest.raises(ModelFileError, match="feed_forward_proj must be an activation"):
        read("t5", T5, feed_forward_proj=activation)


def test_marian_can_have_two_vocabularies() -> None:
    found = read("marian", BART, decoder_vocab_size=60500, share_encoder_decoder_embeddings=False)
    assert found.vocabulary == 60500


def test_whisper_reads_frames_and_writes_tokens() -> None:
    found = read("whisper", BART)
    assert [stack.name for stack in found.stacks] == ["audio", "decoder"]
    assert (found.stacks[0].positions, found.max_context) == (1500, 448)


def test_an_untied_bart_has_a_head() -> None:
    found = read("bart", BART, tie_word_embeddings=False)
    assert (found.tied_head, found.head[0].name) == (False, "lm_head.weight")


def test_sinusoidal_positions_are_frozen_or_in_no_checkpoint() -> None:
    def frozen(model_type: str) -> list[str]:
        stacks = read(model_type, BART, max_position_embeddings=50).stacks
        return [tensor.name for stack in stacks for tensor in stack.before if tensor.frozen]

    both = ["encoder.embed_positions.weight", "decoder.embed_positions.weight"]
    assert (frozen("pegasus"), frozen("marian"), frozen("whisper"), frozen("bart")) == (both, both, both[:1], [])
    # M2M-100: a table of 50 + 2 positions in the encoder and one in the decoder, beside the parameters
    found = read("m2m_100", BART, max_position_embeddings=50)
    assert found.position_buffer_elements == 2 * 52 * found.hidden
    assert [tensor.name for tensor in found.main.before] == ["shared.weight"]
    assert read("pegasus", BART).position_buffer_elements == 0
    # No bias in fp32 is added to its logits, so that cross entropy computes their softmax in their own format.
    assert (found.loss_reads, read("pegasus", BART).loss_reads) == ("logits", "biased-logits")
