"""Compiled code of scripts: run as it was written, with a bound."""

from types import SimpleNamespace

import torch
from ledger_kit import Books
from scripted import LOOP, peak_bytes, script, traced

from planner.trace.worker.compilers import unrun_kernels

COMPILED = LOOP.replace("for number", "net = torch.compile(net)\nnet.compile()\nfor number")


def test_compiled_code_runs_as_it_was_written_and_may_need_less(tmp_path):
    written = traced(script(tmp_path, LOOP))
    decorated = (
        "import torch\n@torch.compile(fullgraph=True)\ndef double(x):\n    return x * 2\nassert double(2) == 4\n"
    )
    recording = traced(script(tmp_path, decorated + COMPILED))
    assert peak_bytes(recording) == peak_bytes(written)
    (difference,) = (one for one in recording.differences if one.name == "compiled code")
    assert -peak_bytes(recording) < difference.low_bytes < 0 == difference.high_bytes
    assert not any(one.name == "compiled code" for one in written.differences)


class Kernel:
    """A kernel of Triton, which cannot be compiled without a GPU."""

    def __getitem__(self, grid):
        raise AssertionError("the kernel is compiled")


def test_a_kernel_of_triton_is_not_run_and_what_it_writes_is_unknown():
    books = Books()
    with unrun_kernels(SimpleNamespace(KernelInterface=Kernel)), books.open():
        counts = torch.zeros(3, dtype=torch.int64)
        assert (counts[1].item(), books.notes, books.ledger.count) == (0, [], 1)
        Kernel()[lambda meta: (3,)](counts, 3, BLOCK=2)
        Kernel()[(1,)](number=4)
        counts[1].item()
    assert books.ledger.count == 1
    assert books.notes[0].startswith("A whole number that depends on the data was assumed")
