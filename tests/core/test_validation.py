"""What pydantic finds, as it is told."""

import pytest
from pydantic import ValidationError

from planner.errors import SpecError
from planner.plan.plan import Plan
from planner.workload.workload import Inference, Training


def validation_error(spec, data):
    with pytest.raises(ValidationError) as caught:
        spec.model_validate(data)
    return caught.value


def test_validation_errors_name_the_field_and_what_was_given():
    error = SpecError.from_validation(validation_error(Training, {"micro_batch": 0}))
    assert error.field == "micro_batch"
    assert error.message == "micro_batch: must be at least 1, not 0"


def test_validation_errors_name_the_place():
    error = SpecError.from_validation(validation_error(Training, {"micro_batch": 0}), prefix="workload")
    assert error.field == "workload.micro_batch"


def test_an_unknown_field_asks_for_its_spelling():
    error = SpecError.from_validation(validation_error(Training, {"micro_bach": 1}))
    assert error.message == "micro_bach: there is no such field"
    assert "spelling" in error.hint


def test_a_name_of_ones_own_list_is_told_as_any():
    data = {"model": {"id": "m"}, "workload": {"task": "inference", "weights": "int3"}}
    error = SpecError.from_validation(validation_error(Plan, data))
    assert error.field == "workload.weights"
    assert error.reason.startswith("there is no 'int3'; choose fp32, bf16")
    assert error.hint == "Close names: int8."


@pytest.mark.parametrize(
    ("bits", "names"), [("int4", "awq4-128, gptq4-128, nf4, Q4_K_M"), ("8-bit", "int8, fp8, gptq8-128, Q8_0")]
)
def test_a_number_of_bits_names_the_formats_that_have_so_many(bits: str, names: str):
    data = {"model": {"id": "m"}, "workload": {"task": "inference", "weights": bits}}
    assert SpecError.from_validation(validation_error(Plan, data)).hint == f"Close names: {names}."


def test_a_value_without_a_field_is_told_by_its_reason():
    error = SpecError.from_validation(validation_error(Training, ["not", "an", "object"]))
    assert (error.field, error.message) == ("", "['not', 'an', 'object'] is not an object of named fields")


@pytest.mark.parametrize(
    ("spec", "data", "message", "hint"),
    [
        (Training, {"optimizer": "adamm"}, "optimizer: there is no 'adamm'; choose adamw, adam, ", "adamw."),
        (Training, {"method": 3}, "method: there is no 3; choose full, lora or qlora", ""),
        (Training, {"task": "sing"}, "task: must be training, not 'sing'", ""),
        (Training, {"micro_batch": "4.5"}, "micro_batch: '4.5' is not a whole number", ""),
        (Training, {"micro_batch": 10**9}, "micro_batch: must be at most 1,000,000, not 1000000000", ""),
        (Training, {"gradient_clipping": "maybe"}, "gradient_clipping: 'maybe' is neither true nor false", ""),
        (
            Training,
            {"method": "lora", "lora": {"targets": 3}},
            "lora.targets: there is no 3; choose usual or all-linear",
            "",
        ),
        (Training, {"method": "qlora", "compute": "fp32"}, "qlora cannot compute in fp32 here: choose amp-bf16", ""),
        (Inference, {"engine": 3}, "engine: 3 is not an object of named fields", ""),
        (Inference, {"image_size": [1, 2, 3]}, "image_size: [1, 2, 3] holds too many values", ""),
        (Plan, {"workload": {"task": "inference"}}, "model: is missing", ""),
        (Plan, {"model": {"id": "m"}, "workload": {"task": "x"}}, "workload: there is no task 'x'; choose ", ""),
        (Plan, {"model": {"id": "m"}, "workload": {"task": "inference", "batch": 0}}, "workload.batch: must be", ""),
        (
            Inference,
            {"profile": "hf", "common_prefix": 8},
            "a prefix cache of Hugging Face Transformers is not estimated",
            "--profile vllm, sglang or tensorrt-llm.",
        ),
        (Plan, {"schema_version": 9, "model": {"id": "m"}}, "schema_version: must be 2, not 9", ""),
        (Plan, {"model": {"id": ""}}, "model.id: string should have at least 1 character, got ''", ""),
    ],
)
def test_what_pydantic_finds_is_told_in_plain_words(spec, data, message, hint):
    error = SpecError.from_validation(validation_error(spec, data))
    assert error.message.startswith(message)
    assert error.hint.endswith(hint) if hint else not error.hint


def test_a_long_value_is_shortened():
    error = SpecError.from_validation(validation_error(Training, {"micro_batch": "x" * 500}))
    assert len(error.message) < 160
    assert error.message.endswith("… is not a whole number")
