"""Typed reading of keys, and errors about their values."""

import pytest
from training_files import read, workload_of

from planner.errors import RecipeError


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"base_model": "x", "adapter": "mora"}, "adapter is not estimated, got mora"),
        ({"base_model": "x", "lora_dropout": "much", "adapter": "lora"}, "lora_dropout must be a number"),
        ({"base_model": "x", "micro_batch_size": 0}, "micro_batch_size must be a whole number"),
        ({"base_model": "x", "micro_batch_size": 150_000_000}, "a whole number from 1 to 100,000,000"),
        ({"base_model": "x", "lora_dropout": 1.5e9, "adapter": "lora"}, "lora_dropout must be a number"),
        ({"base_model": "x", "micro_batch_size": True}, "micro_batch_size must be a whole number"),
        ({"base_model": 3}, "base_model must be a string"),
        ({"base_model": "x", "gradient_checkpointing": "maybe"}, "gradient_checkpointing must be true or false"),
        ({"base_model": "x", "plugins": {"a": 1}}, "plugins must be a list of strings, got {a: 1}"),
        ({"base_model": "x", "adapter": "lora", "lora_target_modules": [1]}, "lora_target_modules must be a list"),
        ({"zero_optimization": [2]}, "zero_optimization must be a section"),
        ({"zero_optimization": {"stage": 4}}, "zero_optimization.stage must be a whole number from 0 to 3, got 4"),
        ({"stage": "sft", "finetuning_type": "oft"}, "finetuning_type is not estimated"),
        ({"stage": "sft", "quantization_bit": 3}, "quantization_bit is not estimated"),
        ({"stage": "sft", "quantization_bit": 4, "quantization_method": "hqq"}, "quantization_method is not"),
        ({"use_peft": True, "dtype": "int3"}, "dtype must be one of auto"),
        ({"distributed_type": "FSDP", "fsdp_config": {"sharding_strategy": "x" * 99}}, "…"),
        ({"hello": 1}, "is not a training file of a supported program"),
        ({"model_name_or_path": "x"}, "is not a training file of a supported program"),
    ],
)
def test_what_is_not_allowed_is_named_with_its_file_and_key(config, said):
    with pytest.raises(RecipeError) as caught:
        read(config)
    assert caught.value.message.startswith("recipe.yml: ")
    assert said in caught.value.message
    assert caught.value.hint


def test_what_training_cannot_be_is_an_error_about_its_key():
    with pytest.raises(
        RecipeError, match="peft_autocast_adapter_dtype: adapters in bf16 cannot be combined with amp-fp16"
    ):
        read({"base_model": "x", "adapter": "lora", "peft_autocast_adapter_dtype": False, "fp16": True})


def test_a_key_that_training_cannot_follow_sets_nothing():
    recipe = read({"base_model": "x", "fp16": True})
    assert {entry.key for entry in recipe.ignored if "cannot be trained" in entry.reason} == {"fp16"}
    assert [entry.field for entry in recipe.read if entry.key == "fp16"] == ["compute"]


def test_whole_numbers_in_other_spellings_and_sizes_of_one():
    assert workload_of({"base_model": "x", "micro_batch_size": 2.0, "sequence_len": " 64 "}).micro_batch == 2
    alone = {"parallelism_config_tp_size": 1, "parallelism_config_dp_shard_size": 1}
    found = workload_of({"distributed_type": "MULTI_GPU", "parallelism_config": alone})
    assert found.parallel.is_plain
