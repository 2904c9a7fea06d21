"""Groups of identical layers, and tensors with their checkpoint names and shapes."""

from decoder_cases import tiny
from reader_cases import BERT

from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.models.readers.tensors import linear


def test_identical_layers_are_one_group_with_their_positions() -> None:
    groups = tiny("gemma2").main.groups
    assert [group.places for group in groups] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert tiny("gemma2", sliding_window=None).main.groups[0].count == 8


def test_a_projection_has_a_bias_only_where_it_is_said() -> None:
    assert [tensor.name for tensor in linear("up", 3, 2)] == ["up.weight"]
    assert [tensor.shape for tensor in linear("up", 3, 2, bias=True)] == [(3, 2), (3,)]


def read(model_type: str, **changes: object) -> Architecture:
    return read_config({"model_type": model_type, **BERT, **changes}, "test")


def test_labels_come_from_the_configuration() -> None:
    classifier = ["BertForSequenceClassification"]
    assert read("bert", architectures=classifier, num_labels=7).labels == 7
    assert read("bert", architectures=classifier, id2label={"0": "a", "1": "b", "2": "c"}).labels == 3
    assert read("bert", architectures=classifier).labels == 2
    assert read("bert").labels is None


def test_the_head_is_tied_unless_the_configuration_says_otherwise() -> None:
    assert read("bert").tied_head
    untied = read("bert", tie_word_embeddings=False)
    assert (untied.tied_head, untied.head[0].shape) == (False, (99, 64))


def test_an_unknown_head_is_noted_and_replaced() -> None:
    found = read("bert", architectures=["BertForJuggling"])
    assert found.tied_head
    assert any("BertForJuggling" in note for note in found.reader_notes)
