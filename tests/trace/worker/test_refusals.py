"""Which errors come from tensors without data, and what is said of them."""

from traceback import FrameSummary
from types import SimpleNamespace

import pytest

from planner.trace.worker.compilers import _refused_extensions
from planner.trace.worker.refusals import UntraceableError, refusal_of

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
