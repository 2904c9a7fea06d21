"""Task heads by the class in `architectures`: labels, tied heads and unknown heads."""

from reader_cases import BERT

from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config


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
