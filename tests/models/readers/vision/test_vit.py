"""What readers find in vision transformers beside their tensors."""

import pytest
from reader_cases import DINO, VIT

from planner.errors import ModelFileError
from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config


def read(model_type: str, sizes: dict[str, object], **changes: object) -> Architecture:
    return read_config({"model_type": model_type, **sizes, **changes}, "test")


def test_positions_count_patches_and_tokens() -> None:
    assert read("vit", VIT).main.positions == 14 * 14 + 1
    assert read("deit", VIT).main.positions == 14 * 14 + 2
    assert read("vivit", VIT).main.positions == 16 * 14 * 14 + 1
    assert read("dinov2_with_registers", DINO).main.positions == 14 * 14 + 1 + 4


def test_there_is_no_vocabulary_but_there_are_labels() -> None:
    found = read("vit", VIT, num_labels=1000)
    assert (found.kind, found.vocabulary, found.labels) == ("vision-encoder", None, 1000)


@pytest.mark.parametrize(
    ("model_type", "changes", "problem"),
    [
        ("vit", {"image_size": 8}, "smaller than a patch"),
        ("vit", {"image_size": [224]}, "must be a number or a list of two"),
        ("vivit", {"tubelet_size": [2, 16]}, "must hold frames, height and width"),
    ],
)
def test_contradictions_are_named(model_type: str, changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read(model_type, VIT, **changes)
