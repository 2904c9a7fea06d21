from pathlib import Path

import pytest
from pydantic import ValidationError

from planner.errors import (
    AmbiguousNameError,
    CatalogError,
    ModelFileError,
    PlanFileError,
    PlannerError,
    SpecError,
    TraceError,
)
from planner.plan.plan import Plan
from planner.workload.workload import Inference, Training


def validation_error(spec, data):
    with pytest.raises(ValidationError) as caught:
        spec.model_validate(data)
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        SpecError("batch", "too large"),
        AmbiguousNameError("gpu", "A100", ("a100-40gb", "a100-80gb")),
        CatalogError(Path("gpus.json"), "h100", "memory_bytes", "missing"),
        ModelFileError("config.json", "not JSON"),
        PlanFileError(Path("plan.json"), "not JSON"),
        TraceError("forward", "a bad shape"),
    ],
)
def test_every_error_is_shown_as_it_is(error):
    assert isinstance(error, PlannerError)
    assert str(error) == error.message
    assert isinstance(error.hint, str)


def test_a_trace_says_how_far_it_came():
    assert TraceError("backward", "a bad shape").message == "in the backward pass: a bad shape"
    assert TraceError("start", "no PyTorch", environment=True).message == "no PyTorch"
    assert TraceError("elsewhere", "a bad shape").message == "elsewhere: a bad shape"


def test_a_trace_shows_the_last_of_what_was_printed():
    error = TraceError("forward", "odd", traceback="Traceback\n", printed="early " + "x" * 1_990 + " late\n")
    assert error.details.startswith("Traceback\n\nthe module printed:\n")
    assert error.details.endswith("x late")
    assert "early" not in error.details
    assert TraceError("forward", "odd").details == ""


def test_a_field_is_named_with_its_reason():
    error = SpecError("batch", "must be at least 1", hint="Write 1.")
    assert (error.field, error.reason, error.hint) == ("batch", "must be at least 1", "Write 1.")
    assert error.message == "batch: must be at least 1"


def test_an_ambiguous_name_lists_its_candidates():
    error = AmbiguousNameError("gpu", "A100", ("a100-40gb", "a100-80gb"))
    assert error.candidates == ("a100-40gb", "a100-80gb")
    assert error.message == "gpu: 'A100' matches 2 records: a100-40gb, a100-80gb"
    assert "'a100-40gb'" in error.hint


def test_catalog_errors_leave_out_what_is_not_known():
    assert str(CatalogError(Path("a.json"), "", "", "not JSON")) == "a.json: not JSON"
    assert str(CatalogError(Path("a.json"), "h100", "name", "missing")) == "a.json · h100 · name: missing"


def test_a_plan_file_error_carries_the_version_that_is_its_reason():
    assert PlanFileError(Path("p.json"), "newer", version=7).version == 7


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


def test_a_value_without_a_field_is_told_by_its_reason():
    error = SpecError.from_validation(validation_error(Training, ["not", "an", "object"]))
    assert (error.field, error.message) == ("", "['not', 'an', 'object'] is no object of named fields")


@pytest.mark.parametrize(
    ("spec", "data", "message", "hint"),
    [
        (Training, {"optimizer": "adamm"}, "optimizer: there is no 'adamm'; choose adamw, adam, ", "adamw."),
        (Training, {"method": 3}, "method: there is no 3; choose full, lora or qlora", ""),
        (Training, {"task": "sing"}, "task: must be training, not 'sing'", ""),
        (Training, {"micro_batch": "4.5"}, "micro_batch: '4.5' is not a whole number", ""),
        (Training, {"micro_batch": 10**9}, "micro_batch: must be at most 1,000,000, not 1000000000", ""),
        (Training, {"gradient_clipping": "maybe"}, "gradient_clipping: 'maybe' is neither true nor false", ""),
        (Training, {"method": "lora", "lora": {"targets": 3}}, "lora.targets: must be all-linear, not 3", ""),
        (Training, {"method": "qlora", "compute": "fp32"}, "qlora is not computed in fp32 here: choose amp-bf16", ""),
        (Inference, {"engine": 3}, "engine: 3 is no object of named fields", ""),
        (Inference, {"image_size": [1, 2, 3]}, "image_size: [1, 2, 3] holds too many values", ""),
        (Plan, {"workload": {"task": "inference"}}, "model: is missing", ""),
        (Plan, {"model": {"id": "m"}, "workload": {"task": "x"}}, "workload: there is no task 'x'; choose ", ""),
        (Plan, {"model": {"id": "m"}, "workload": {"task": "inference", "batch": 0}}, "workload.batch: must be", ""),
        (Plan, {"schema_version": 9, "model": {"id": "m"}}, "schema_version: must be 1, not 9", ""),
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
