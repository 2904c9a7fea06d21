import pickle
from pathlib import Path

import pytest

from planner.errors import (
    AmbiguousNameError,
    CatalogError,
    ModelFileError,
    MonitorUnavailableError,
    PlanFileError,
    PlannerError,
    SpecError,
    TraceError,
)


@pytest.mark.parametrize(
    "error",
    [
        SpecError("batch", "too large"),
        AmbiguousNameError("gpu", "A100", ("a100-40gb", "a100-80gb")),
        CatalogError(Path("gpus.json"), "h100", "memory_bytes", "missing"),
        ModelFileError("config.json", "not JSON"),
        PlanFileError(Path("plan.json"), "not JSON"),
        TraceError("forward", "a bad shape"),
        MonitorUnavailableError("the driver is not loaded", "Load it.", "no-driver"),
    ],
)
def test_every_error_is_shown_as_it_is(error):
    assert isinstance(error, PlannerError)
    assert str(error).startswith(error.message)
    assert isinstance(error.hint, str)


def test_a_trace_says_how_far_it_came():
    assert TraceError("backward", "a bad shape").message == "in the backward pass: a bad shape"
    assert TraceError("start", "no PyTorch", environment=True).message == "no PyTorch"
    assert TraceError("elsewhere", "a bad shape").message == "elsewhere: a bad shape"


def test_a_trace_shows_the_last_of_what_was_printed():
    error = TraceError("forward", "odd", traceback="Traceback\n", printed="early " + "x" * 1_990 + " late\n")
    assert error.details.startswith("Traceback\n\nit printed:\n")
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
    assert error.message == "gpu: 'A100' can mean 2: a100-40gb, a100-80gb"
    assert "'a100-40gb'" in error.hint


def test_catalog_errors_leave_out_what_is_not_known():
    assert str(CatalogError(Path("a.json"), "", "", "not JSON")) == "a.json: not JSON"
    assert str(CatalogError(Path("a.json"), "h100", "name", "missing")) == "a.json · h100 · name: missing"


def test_a_plan_file_error_carries_the_version_that_is_its_reason():
    assert PlanFileError(Path("p.json"), "newer", version=7).version == 7


def test_a_wrong_value_is_printed_with_its_hint():
    assert str(SpecError("gpu", "no accelerator is called 'x'", "Close names: y.")) == (
        "gpu: no accelerator is called 'x'. Close names: y."
    )
    assert str(SpecError("", "they conflict")) == "they conflict"


def test_errors_are_the_same_when_another_process_has_sent_them():
    errors = (
        TraceError("forward", "no such layer", "Name one.", traceback="net.py:3", printed="hello", environment=True),
        AmbiguousNameError("gpu", "h100", ("h100-sxm5-80gb", "h100-pcie-80gb")),
        CatalogError(Path("gpus.json"), "h100", "memory", "is not a number"),
    )
    for error in errors:
        found = pickle.loads(pickle.dumps(error))
        assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))
