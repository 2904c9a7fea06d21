"""What a trace with the CPU's operators may miss is named where it matters, and nowhere else."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from planner.trace.recording import TraceDifference
from planner.trace.worker.cpu.operators import CpuOperators

_aten = torch.ops.aten


def ran(func: object, *args: Tensor) -> list[str]:
    """Return what may differ where an operator ran."""
    found: list[TraceDifference] = []
    with CpuOperators(found.append, print) as operators:
        operators.hidden_bytes(func, args, {}, args[0])
    assert all(one.low_bytes < 0 < one.high_bytes for one in found)
    return [one.name for one in found]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scratch_memory_in_half_precision_is_bounded(dtype: torch.dtype) -> None:
    with FakeTensorMode():
        rows = torch.ones(8, 8, dtype=dtype)
        assert ran(_aten.mm.default, rows, rows) == ["oneDNN's blocks of matrices in half precision"]
        assert ran(_aten.mm.default, rows.float(), rows.float()) == []
        assert ran(_aten.add.Tensor, rows, rows) == []


def test_a_cpu_that_was_not_checked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences: list[str] = []
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    CpuOperators(print, sentences.append)
    assert "checked only on CPUs with AVX2" in sentences[0]
