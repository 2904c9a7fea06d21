"""Traced against real peaks of single operators: without gradients, forward with them, and backward.

    python benchmarks/trace_operators.py [--only TEXT] [--table]

Each expression of operators.txt is evaluated on small tensors on one thread of the CPU, for real and traced. Prints the
operators of which a traced peak is off by more than 0.5 % and 1 KiB, and a summary.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tables import add_table_option, write_table
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._pytree import tree_leaves

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "trace"))

from ledger_kit import Books
from random_programs import one_thread

from planner.trace.recording import NEVER_FREED
from planner.trace.worker.cpu.kernels import hidden_bytes
from planner.trace.worker.fake_tensors.eager_behavior import eager_behavior

LIST = Path(__file__).with_name("operators.txt")
TOLERANCE = 0.005
SLACK_BYTES = 1024
PASSES = ("without gradients", "forward", "backward")
_MARK = "pass "

MakeTensors = Callable[[], dict[str, torch.Tensor]]
BeginPass = Callable[[str], object]


def _rows() -> dict[str, torch.Tensor]:
    order = torch.arange(96 * 128).view(96, 128)
    floats = {"x": torch.randn(96, 128), "y": torch.randn(96, 128), "w": torch.randn(128, 64)}
    return floats | {"i": torch.arange(96) * 7 % 96, "j": order * 7 % 96, "m": order % 3 == 0}


INPUTS: dict[str, MakeTensors] = {
    "rows": _rows,
    "square": lambda: {"x": torch.randn(4, 48, 48) + 8 * torch.eye(48), "y": torch.randn(4, 48, 48)},
    "sounds": lambda: {"x": torch.randn(4, 8, 240), "w": torch.randn(8, 8, 5)},
    "images": lambda: {"x": torch.randn(4, 8, 24, 24), "w": torch.randn(8, 8, 3, 3)},
    "volumes": lambda: {"x": torch.randn(2, 8, 8, 8, 8), "w": torch.randn(8, 8, 3, 3, 3)},
    "sequences": lambda: {"x": torch.randn(2, 4, 64, 32), "y": torch.randn(2, 4, 64, 32)},
}


class Compared(NamedTuple):
    """Real and traced peak bytes of an operator in each pass, beside its inputs."""

    expression: str
    real: dict[str, int]
    traced: dict[str, int]

    def is_right(self, name: str) -> bool:
        """Return whether the traced peak of a pass is exact enough."""
        real = self.real.get(name, 0)
        return abs(self.traced.get(name, 0) - real) <= max(TOLERANCE * real, SLACK_BYTES)


def run_passes(expression: str, make: MakeTensors, begin: BeginPass) -> None:
    """Evaluate an expression without gradients and with them, and differentiate it; announce each pass."""
    torch.manual_seed(0)
    leaves = make()
    scope: dict[str, Any] = {"torch": torch, "functional": functional}
    with torch.no_grad():
        plain = {name: leaf.clone() for name, leaf in leaves.items()}
        begin(PASSES[0])
        found = eval(expression, scope | plain)  # of our own list
        begin("")
        del found, plain
    # Operators in place must not change leaves.
    inputs = {name: leaf.requires_grad_() * 1.0 if leaf.is_floating_point() else leaf for name, leaf in leaves.items()}
    begin(PASSES[1])
    found = eval(expression, scope | inputs)
    begin("")
    results = [value for value in tree_leaves(found) if isinstance(value, torch.Tensor) and value.requires_grad]
    del found, inputs
    gradients = [torch.ones_like(value) for value in results]
    begin(PASSES[2])
    torch.autograd.backward(results, gradients)
    begin("")


def real_peaks(expression: str, make: MakeTensors) -> dict[str, int]:
    """Return the peak bytes of each pass of a real run."""

    def begin(name: str) -> None:
        with record_function(_MARK + name):
            pass

    # What is made once, such as code compiled on the fly, is there in the second run.
    run_passes(expression, make, begin)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        run_passes(expression, make, begin)
    events = sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    changes = [
        (event.name().removeprefix(_MARK), 0) if event.name().startswith(_MARK) else (None, event.nbytes())
        for event in events
        if event.name().startswith(_MARK) or event.name() == "[memory]"
    ]
    return _peaks(changes)


def traced_peaks(expression: str, make: MakeTensors) -> dict[str, int]:
    """Return the peak bytes of each pass of a traced run."""
    books = Books(hidden_bytes)
    marks: list[tuple[str, int]] = []
    with books.open(), eager_behavior(), books.assumptions.read_as_numbers():
        books.ledger.observe_use_counts()
        run_passes(expression, make, lambda name: marks.append((name, books.ledger.events)))
    book = books.ledger.allocations()
    events: list[tuple[int, int, str | None, int]] = [(time, 0, name, 0) for name, time in marks]
    events += [(time, 1, None, size) for time, size in zip(book.made, book.bytes, strict=True)]
    events += [(time, 1, None, -size) for time, size in zip(book.freed, book.bytes, strict=True) if time != NEVER_FREED]
    return _peaks([(name, size) for _, _, name, size in sorted(events, key=lambda event: event[:2])])


def _peaks(changes: list[tuple[str | None, int]]) -> dict[str, int]:
    """Return the largest rise within each pass, from its name and the changes of the live bytes in order."""
    peaks: dict[str, int] = {}
    levels = accumulate(size for _, size in changes)
    current, start = "", 0
    for (name, _), level in zip(changes, levels, strict=True):
        if name is not None:
            current, start = name, level
        peaks[current] = max(peaks.get(current, 0), level - start)
    return peaks


def listed_operators() -> Iterator[tuple[str, str]]:
    """Yield the kind of tensors and the expression of each listed operator."""
    kind = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and not line.startswith("#"):
            yield kind, line


def main() -> int:
    """Compare the operators; return 1 if one cannot be traced."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only operators with this text")
    add_table_option(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    compared: list[Compared] = []
    failed = 0
    with one_thread():
        for kind, expression in listed_operators():
            if arguments.only not in expression:
                continue
            real = real_peaks(expression, INPUTS[kind])
            try:
                found = Compared(expression, real, traced_peaks(expression, INPUTS[kind]))
            except Exception as error:  # noqa: BLE001  # whatever it is, the operator is not traced
                failed += 1
                print(f"{expression}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                continue
            compared.append(found)
            for name in PASSES:
                if not found.is_right(name):
                    traced = found.traced.get(name, 0)
                    print(f"{expression}, {name}: {real[name]:,} bytes, {traced - real[name]:+,} traced", flush=True)
    header, rows = manual_table(compared)
    for row in rows:
        print("; ".join(f"{title}: {cell}" for title, cell in zip(header, row, strict=True)))
    print(f"{failed} not traced")
    if arguments.table:
        write_table("accuracy", "operators", header, rows)
    return int(failed > 0)


def manual_table(compared: list[Compared]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the manual's table: the number of operators with an exact peak, by pass."""
    header = ["pass", "operators", "within 64 bytes", "within 0.5 % or 1 KiB"]
    rows = []
    for name in PASSES:
        errors = [abs(found.traced.get(name, 0) - found.real.get(name, 0)) for found in compared]
        right = sum(found.is_right(name) for found in compared)
        rows.append([name, str(len(compared)), str(sum(error <= 64 for error in errors)), str(right)])
    return header, rows


if __name__ == "__main__":
    sys.exit(main())
