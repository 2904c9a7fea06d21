"""What readers find in text encoders beside their tensors."""

import pytest
from reader_cases import ALBERT, BERT, DEBERTA_V3

from planner.errors import ModelFileError
from planner.models.architecture import Architecture, Attention
from planner.models.readers.config_json import read_config


def read(model_type: str, **changes: object) -> Architecture:
    return read_config({"model_type": model_type, **BERT, **changes}, "test")


def attention(found: Architecture) -> Attention:
    mixer = found.main.groups[0].layer.mixer
    assert isinstance(mixer, Attention)
    return mixer


def test_modernbert_has_windows_in_two_layers_of_three() -> None:
    found = read("modernbert", num_hidden_layers=7)
    windows = {group.places: group.layer.mixer.window for group in found.main.groups if group.layer.mixer is not None}
    assert windows == {(0,): None, (1, 2, 4, 5): 128, (3, 6): None}


def test_albert_counts_its_one_layer_once_and_runs_all() -> None:
    found = read_config({"model_type": "albert", **ALBERT, "num_hidden_layers": 5}, "test")
    assert found.main.layer_count == 5
    assert [bool(group.layer.tensors) for group in found.main.groups] == [True, False]
    assert any("counts once" in note for note in found.reader_notes)


def test_roberta_can_use_fewer_positions_than_it_has() -> None:
    assert read("roberta", max_position_embeddings=514).max_context == 512
    assert read("bert").max_context == 512


def test_bert_drops_out_and_takes_its_softmax_in_its_own_format() -> None:
    found = read("bert")
    dropouts = (attention(found).dropout, found.main.groups[0].layer.hidden_dropout, found.main.embedding_dropout)
    assert dropouts == (0.1, 0.1, 0.1)
    assert (attention(found).fp32_softmax, attention(found).rotary) == (False, False)


def test_relative_positions_rule_out_the_fused_kernel() -> None:
    assert not attention(read_config({"model_type": "deberta-v2", **DEBERTA_V3}, "test")).sdpa
    assert not attention(read("mpnet")).sdpa
    assert attention(read("bert")).sdpa


@pytest.mark.parametrize(
    ("model_type", "changes", "problem"),
    [
        ("bert", {"num_attention_heads": 5}, "must divide"),
        ("bert", {"id2label": 3}, "must be an object or a list"),
        ("bert", {"hidden_size": None}, "hidden_size is missing"),
        ("modernbert", {"layer_types": ["full_attention"]}, "has 1 entries for 2 layers"),
        ("albert", {"embedding_size": 8, "num_hidden_groups": 2}, "num_hidden_groups must be a whole number"),
    ],
)
def test_contradictions_are_named(model_type: str, changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read(model_type, **changes)


def test_deberta_gathers_scores_from_tables_of_relative_positions() -> None:
    # 32 buckets on either side, content to position and position to content
    assert attention(read_config({"model_type": "deberta-v2", **DEBERTA_V3}, "test")).gathered_rows == (64, 64)
    without = DEBERTA_V3 | {"relative_attention": False}
    assert attention(read_config({"model_type": "deberta-v2", **without}, "test")).gathered_rows == ()
