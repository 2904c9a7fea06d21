"""Text encoders, against the networks that transformers builds."""

import pytest
from transformers_networks import assert_same

from planner.errors import ModelFileError
from planner.models.architecture import Attention
from planner.models.readers.config_json import read_config

SMALL = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 99,
    "pad_token_id": 1,
}
DISTIL = {"n_layers": 2, "dim": 64, "n_heads": 4, "hidden_dim": 96, "vocab_size": 99}
DEBERTA_V3 = {
    "relative_attention": True,
    "position_buckets": 32,
    "norm_rel_ebd": "layer_norm",
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
}

HEADS = {
    "Bert": "Model ForMaskedLM LMHeadModel ForPreTraining ForNextSentencePrediction ForSequenceClassification"
    " ForTokenClassification ForQuestionAnswering ForMultipleChoice",
    "Roberta": "Model ForMaskedLM ForCausalLM ForSequenceClassification ForTokenClassification ForQuestionAnswering"
    " ForMultipleChoice",
    "XLMRoberta": "Model ForMaskedLM ForSequenceClassification",
    "Camembert": "Model ForMaskedLM ForSequenceClassification",
    "Electra": "Model ForMaskedLM ForPreTraining ForSequenceClassification ForTokenClassification ForQuestionAnswering",
    "DistilBert": "Model ForMaskedLM ForSequenceClassification ForTokenClassification ForQuestionAnswering"
    " ForMultipleChoice",
    "MPNet": "Model ForMaskedLM ForSequenceClassification ForTokenClassification ForQuestionAnswering",
    "Albert": "Model ForMaskedLM ForPreTraining ForSequenceClassification ForTokenClassification ForQuestionAnswering"
    " ForMultipleChoice",
    "DebertaV2": "Model ForMaskedLM ForSequenceClassification ForTokenClassification ForQuestionAnswering"
    " ForMultipleChoice",
    "ModernBert": "Model ForMaskedLM ForSequenceClassification ForTokenClassification ForQuestionAnswering"
    " ForMultipleChoice",
    "NomicBert": "Model ForMaskedLM ForSequenceClassification ForTokenClassification",
}
CASES = [f"{family}{head}" for family, heads in HEADS.items() for head in heads.split()]


@pytest.mark.parametrize("name", CASES)
def test_small_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name, **(DISTIL if name.startswith("DistilBert") else SMALL))


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_default_networks_hold_the_same_tensors(name: str) -> None:
    assert_same(name)


@pytest.mark.parametrize(
    "changes",
    [
        DEBERTA_V3,
        DEBERTA_V3 | {"share_att_key": True},
        DEBERTA_V3 | {"position_buckets": -1, "conv_kernel_size": 3, "conv_act": "gelu"},
        DEBERTA_V3 | {"position_buckets": -1, "max_relative_positions": 40, "pos_att_type": "c2p"},
        {"type_vocab_size": 2, "embedding_size": 32},
        {"legacy": False},
    ],
)
def test_deberta_follows_its_switches(changes: dict[str, object]) -> None:
    found = assert_same("DebertaV2ForMaskedLM", **SMALL, **changes)
    assert not found.main.groups[0].layer.mixer.sdpa


@pytest.mark.parametrize(
    "changes",
    [
        {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "decoder_bias": False},
        {"global_attn_every_n_layers": 2},
    ],
)
def test_modernbert_follows_its_switches(changes: dict[str, object]) -> None:
    assert_same("ModernBertForMaskedLM", **SMALL, **changes)


def test_modernbert_has_windows_in_two_layers_of_three() -> None:
    found = assert_same("ModernBertForMaskedLM", **SMALL | {"num_hidden_layers": 7})
    windows = {group.places: group.layer.mixer.window for group in found.main.groups if group.layer.mixer is not None}
    assert windows == {(0,): None, (1, 2, 4, 5): 128, (3, 6): None}


def test_labels_come_from_the_configuration() -> None:
    found = assert_same("BertForSequenceClassification", **SMALL, num_labels=7)
    assert found.labels == 7
    assert not found.tied_head


def test_an_untied_masked_head_has_its_own_projection() -> None:
    config = {"model_type": "bert", **SMALL, "tie_word_embeddings": False}
    found = read_config(config, "test")
    assert not found.tied_head
    assert found.head[0].shape == (99, 64)


def test_albert_counts_its_one_layer_once_and_runs_all() -> None:
    found = assert_same("AlbertForMaskedLM", **SMALL | {"num_hidden_layers": 5})
    assert found.main.layer_count == 5
    assert [bool(group.layer.tensors) for group in found.main.groups] == [True, False]
    assert any("counted once" in note for note in found.reader_notes)


def test_one_albert_layer_is_one_group() -> None:
    found = assert_same("AlbertModel", **SMALL | {"num_hidden_layers": 1})
    assert len(found.main.groups) == 1


def test_roberta_can_use_fewer_positions_than_it_has() -> None:
    found = read_config({"model_type": "roberta", **SMALL, "max_position_embeddings": 514}, "test")
    assert found.max_context == 512


def test_bert_drops_out_and_takes_its_softmax_in_its_own_format() -> None:
    found = read_config({"model_type": "bert", **SMALL}, "test")
    layer = found.main.groups[0].layer
    assert isinstance(layer.mixer, Attention)
    assert (layer.mixer.dropout, layer.hidden_dropout, found.main.embedding_dropout) == (0.1, 0.1, 0.1)
    assert not layer.mixer.fp32_softmax


def test_an_unknown_head_is_noted_and_replaced() -> None:
    found = read_config({"model_type": "bert", **SMALL, "architectures": ["BertForJuggling"]}, "test")
    assert found.tied_head
    assert any("BertForJuggling" in note for note in found.reader_notes)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_attention_heads": 5}, "must divide"),
        ({"id2label": 3}, "must be an object or a list"),
        ({"hidden_size": None}, "hidden_size is missing"),
    ],
)
def test_contradictions_are_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read_config({"model_type": "bert", **SMALL, **changes}, "test")


def test_layer_types_must_cover_all_layers() -> None:
    with pytest.raises(ModelFileError, match="has 1 entries for 2 layers"):
        read_config({"model_type": "modernbert", **SMALL, "layer_types": ["full_attention"]}, "test")
