"""`torch.cuda.memory_summary()`: a table of counters, their present and their peak values.

**Source**: torch/cuda/memory.py: sizes are divided by 1,024 and cut off, whatever the unit is called; versions before
2.0 wrote KB, MB and GB for the same powers of 1,024 (pytorch/pytorch#91854).
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.memory.logs.amounts import BINARY, UNITS, floored
from planner.memory.logs.reading import Counter, Measured, measured
from planner.memory.logs.text import LogText

_MARK: Final = "PyTorch CUDA memory summary"
_DEVICE: Final = re.compile(r"memory summary, device ID (\d{1,4})")
_SIZE: Final = r" {0,12}(\d{1,12}) {1,4}([KMGTP]?i?B) {0,6}\|"
_ROW: Final = re.compile(r"\| {0,4}([A-Z][A-Za-z\- ]{5,30}?) {1,20}\|" + _SIZE * 2)


class _Row(NamedTuple):
    name: str
    counter: Counter | None
    meaning: str


_ROWS: Final = {
    "Allocated memory": _Row("peak allocated", "allocated", "the most bytes of live tensors (max_memory_allocated)"),
    "Active memory": _Row("peak active", None, "live tensors and those still in use by other streams"),
    "Requested memory": _Row("peak requested", None, "what the program asked for, before rounding"),
    "GPU reserved memory": _Row("peak reserved", "reserved", "the most bytes that PyTorch's allocator held"),
    "Non-releasable memory": _Row("peak non-releasable", None, "free parts of blocks that are partly in use"),
}


def read_torch_summary(text: LogText) -> Iterator[Measured]:
    """Yield the peak of each counter of every table in `text`."""
    device: str | None = None
    for line in text.lines_with(_MARK, *(f"| {title} " for title in _ROWS)) if text.has(_MARK) else ():
        named, row = _DEVICE.search(line.text), _ROW.search(line.text)
        if named:
            device = named[1]
        elif row and row[1] in _ROWS:
            kind, amount = _ROWS[row[1]], floored(row[4], BINARY.get(row[5]) or UNITS[row[5]])
            yield measured(kind.name, amount, kind.meaning, line, counter=kind.counter, device=device)
