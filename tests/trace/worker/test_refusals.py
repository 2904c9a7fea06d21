"""Which errors come from tensors without data, and what is said of them."""

import os
import sys
from pathlib import Path
from traceback import FrameSummary
from types import ModuleType, SimpleNamespace

import pytest

from planner.errors import PlannerError, SpecError, TraceError
from planner.installation import package_command
from planner.trace.worker.compilers import _refused_extensions
from planner.trace.worker.refusals import UntraceableError, explain_failure, refusal_of

TORCH = FrameSummary("/usr/torch/_ops.py", 7, "call", line="raise NotImplementedError(text)")
MINE = FrameSummary("/mine/net.py", 3, "forward", line="y = x.cuda()")
BY_HAND = FrameSummary("/mine/net.py", 3, "forward", line="raise ValueError(f'odd {x}')")


def in_file(name):
    return FrameSummary(name, 1, "run", line="fail()")


@pytest.mark.parametrize(
    ("error", "frames", "what"),
    [
        (UntraceableError("a b", "c"), (), "a b"),
        (RuntimeError("No CUDA GPUs are available"), (TORCH,), "driver"),
        (AssertionError("Torch not compiled with CUDA enabled"), (TORCH,), "driver"),
        (AttributeError("module 'torch._C' has no attribute '_scatter'"), (MINE,), "driver"),
        (
            NotImplementedError("Could not run 'aten::foo' with arguments from the 'CPU' backend."),
            (MINE,),
            "operator foo",
        ),
        (RuntimeError("Cannot access data pointer of Tensor"), (MINE,), "memory of a tensor"),
        (RuntimeError("Cannot access accelerator device when none is available."), (MINE,), "number alone"),
        (RuntimeError("Unsupported dtype Half"), (MINE,), "half precision"),
        (RuntimeError("The tensor has elements, but its data is not allocated yet."), (MINE,), "memory of a tensor"),
        (RuntimeError("Internal error"), (in_file("/usr/torch/_dynamo/guards.py"),), "compiler"),
        (RuntimeError("Internal error"), (in_file("/usr/torch/ao/nn/linear.py"),), "quantized"),
        (RuntimeError("odd FakeTensor"), (TORCH,), "this line cannot run without data"),
        (RuntimeError("odd FakeTensor"), (), "this line cannot run without data"),
    ],
)
def test_an_error_of_the_insides_is_refused(error, frames, what):
    refusal = refusal_of(error, frames)
    assert what in refusal.what
    assert refusal.instead


def test_a_cause_tells_more():
    error = RuntimeError("it failed")
    error.__cause__ = RuntimeError("Cannot access storage of SparseTensorImpl")
    assert "sparse" in refusal_of(error, (TORCH,)).what


@pytest.mark.parametrize(
    ("error", "frame"),
    [
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"), TORCH),
        (ValueError("odd FakeTensor(..., size=(4,))"), BY_HAND),
        (AttributeError("'FakeTensor' object has no attribute 'foo'"), MINE),
        (KeyError("hidden_size"), MINE),
    ],
)
def test_a_persons_own_error_is_none(error, frame):
    assert refusal_of(error, (frame,)) is None


def test_extensions_are_not_compiled():
    module = SimpleNamespace(load=print, load_inline=print)
    with _refused_extensions(module), pytest.raises(UntraceableError, match="compiled") as caught:
        module.load_inline("x")
    assert "register_fake" in caught.value.hint
    assert module.load is print


HERE = [Path(__file__)]


def raised(error):
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def importing(name):
    try:
        __import__(name)
    except ImportError as error:
        return error


@pytest.mark.parametrize(
    ("error", "reason", "hint"),
    [
        (EOFError("EOF when reading a line"), "asked for input", "as an argument"),
        (EOFError("truncated"), "EOFError: truncated", ""),
        (ValueError(), "ValueError", ""),
        (ValueError("a\nb"), "ValueError: a b", ""),
        (ValueError("\ud800"), "ValueError: \\ud800", ""),
        (SystemExit("no GPU"), "called sys.exit('no GPU')", '__name__ == "__main__"'),
        (SystemExit(), "called sys.exit()", "__main__"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"),
            "took more of this",
            "raise the limit",
        ),
        (ModuleNotFoundError("no triton", name="triton"), "triton is not installed", "need a GPU"),
        (OSError("We couldn't connect to 'https://huggingface.co'"), "couldn't connect", "no network"),
        (FileNotFoundError(2, "no", "data/train.pt"), "there is no file data/train.pt", os.getcwd()),
        (FileNotFoundError("by hand"), "by hand", ""),
        (MemoryError(), "took more of this machine's memory", "raise the limit"),
        (RecursionError("too deep"), "recurses infinitely", ""),
        (KeyboardInterrupt(), "raised KeyboardInterrupt", ""),
        (SyntaxError("odd", ("/mine/net.py", 7, 1, "x =")), "net.py, line 7: odd", ""),
        (SyntaxError("odd"), "SyntaxError: odd", ""),
        (importing("PIL_not_there"), "PIL_not_there is not installed", f"for {sys.executable}"),
        (ModuleNotFoundError("no cv2", name="cv2"), "cv2 is not installed", package_command("opencv-python")),
        (ModuleNotFoundError("by hand"), "by hand", ""),
        (ModuleNotFoundError("", name=""), "ModuleNotFoundError", ""),
        (ModuleNotFoundError("no part", name="made_by_hand.part"), "no part", ""),
        (importing("json.not_there"), "No module named 'json.not_there'", ""),
    ],
)
def test_each_exception_has_a_reason_and_a_hint(error, reason, hint, monkeypatch):
    monkeypatch.setitem(sys.modules, "made_by_hand", ModuleType("made_by_hand"))
    failure = explain_failure(raised(error), "forward", HERE)
    assert reason in failure.reason
    assert hint in failure.hint
    assert "test_refusals.py" in failure.traceback
    assert not failure.environment


def test_errors_on_import_are_distinguished_from_building():
    code = compile("1 / 0", __file__, "exec")
    with pytest.raises(ZeroDivisionError) as caught:
        exec(code)
    importing_error = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert explain_failure(importing_error, "build", HERE).stage == "import"
    assert explain_failure(importing_error, "forward", HERE).stage == "forward"
    assert explain_failure(raised(ValueError()), "build", HERE).stage == "build"
    assert explain_failure(raised(SyntaxError("odd")), "build", []).stage == "import"
    assert explain_failure(raised(ValueError()), "build", []).stage == "build"


def test_a_long_error_is_shortened_in_the_middle():
    failure = explain_failure(raised(ValueError("long " * 100_000)), "build", HERE)
    assert len(failure.reason) < 600
    assert len(failure.traceback) < 70_000
    assert " … " in failure.reason


def test_causes_and_groups_of_exceptions_are_included():
    def fail():
        try:
            {}["hidden_size"]
        except KeyError as cause:
            raise ExceptionGroup("both", [ValueError("one"), TypeError("two")]) from cause

    with pytest.raises(ExceptionGroup) as caught:
        fail()
    trace = explain_failure(caught.value, "build", HERE).traceback
    assert "KeyError: 'hidden_size'" in trace
    assert "ValueError: one" in trace


def test_errors_before_pytorch_is_loaded_are_environment_errors():
    failure = explain_failure(raised(ImportError("libcudart.so.12: cannot open shared object file")), "start", HERE)
    assert failure.environment
    assert not explain_failure(raised(ImportError("libcudart.so.12")), "import", HERE).environment


@pytest.mark.parametrize(
    ("error", "stage", "reason"),
    [
        (TraceError("load", "there is no file net.py", "Check its spelling."), "load", "there is no file net.py"),
        (TraceError("somewhere", "it stopped"), "build", "it stopped"),
        (SpecError("shape", "too many"), "build", "shape: too many"),
        (PlannerError("odd"), "build", "odd"),
    ],
)
def test_errors_of_gpu_planner_are_passed_on(error, stage, reason):
    failure = explain_failure(raised(error), "build", [])
    assert (failure.stage, failure.reason, failure.hint) == (stage, reason, error.hint)
    assert failure.traceback == ""
    assert "test_refusals.py" in explain_failure(raised(error), "build", HERE).traceback
