"""What a trace with the CPU's operators may miss is named where it matters, and nowhere else."""

import pytest
import torch

from planner.trace.request import Target, TraceRequest
from planner.trace.worker.cpu.kernels import cpu_differences

PLAIN = TraceRequest(target=Target(kind="file", place="net.py", name="Net"), device="cpu")
HALF = PLAIN.evolve(autocast="bf16")


@pytest.mark.parametrize(
    ("request_", "operators", "words"),
    [
        (PLAIN, ("aten::convolution", "aten::mm"), []),
        (HALF, ("aten::convolution", "aten::relu"), ["convolutions"]),
        (PLAIN.evolve(dtype="fp16"), ("aten::convolution_backward",), ["convolutions"]),
        (HALF, ("aten::convolution", "aten::addmm"), ["convolutions", "matrices"]),
        (HALF, ("aten::add.Tensor",), []),
    ],
)
def test_scratch_memory_in_half_precision_is_bounded(
    request_: TraceRequest, operators: tuple[str, ...], words: list[str]
) -> None:
    found = list(cpu_differences(request_, operators))
    assert [any(word in difference.name for word in words) for difference in found] == [True] * len(words)
    for difference in found:
        assert difference.low_bytes <= difference.bytes == 0 < difference.high_bytes


def test_another_cpu_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    assert [difference.name for difference in cpu_differences(PLAIN, ())] == ["this CPU's kernels"]
