"""Readers are found by `model_type`, and unknown types are refused with a hint."""

import pytest
from config_outcomes import read_or_refuse

from planner.errors import ModelFileError
from planner.models.readers.config_json import read_config
from planner.models.readers.registry import readers

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
}


def test_an_unknown_model_type_says_what_is_near_and_what_to_do() -> None:
    with pytest.raises(ModelFileError) as caught:
        read_config({**LLAMA, "model_type": "lama"}, "config.json")
    assert "'lama' is not one of the" in caught.value.message
    assert "Near names: llama" in caught.value.hint
    assert "gpu-planner models --supported" in caught.value.hint
    with pytest.raises(ModelFileError) as caught:
        read_config({"model_type": "@@@@"}, "config.json")
    assert "Near names" not in caught.value.hint


def test_a_missing_model_type_is_said() -> None:
    with pytest.raises(ModelFileError, match="model_type is missing"):
        read_config({}, "config.json")


@pytest.mark.parametrize("model_type", sorted(readers()))
def test_an_empty_configuration_of_any_type_is_refused_or_read_from_defaults(model_type: str) -> None:
    read_or_refuse({"model_type": model_type})
