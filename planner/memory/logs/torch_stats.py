"""`torch.cuda.memory_stats()`: every counter to the byte, as JSON or as Python prints it.

Read by its keys alone, so that a dictionary, an ordered one, a list of pairs and JSON are the same.
"""

import re
from collections.abc import Iterator
from typing import Final

from planner.memory.logs.amounts import exact
from planner.memory.logs.reading import Counter, Measured, measured
from planner.memory.logs.text import Line, LogText

_MARKS: Final = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")
_NESTED: Final = ("allocated_bytes", "reserved_bytes")
_QUOTE: Final = "[\"']"
_FLAT: Final = re.compile(
    rf"{_QUOTE}?(allocated|reserved|active|requested|inactive_split)_bytes\.all\.peak{_QUOTE}?\s{{0,8}}[,:=]\s{{0,8}}(\d{{1,16}})"
)
_DEEP: Final = re.compile(
    rf"{_QUOTE}(allocated|reserved|active|requested|inactive_split)_bytes{_QUOTE}\s{{0,8}}:\s{{0,8}}\{{\s{{0,8}}"
    rf"{_QUOTE}all{_QUOTE}\s{{0,8}}:\s{{0,8}}\{{[^{{}}]{{0,400}}?{_QUOTE}peak{_QUOTE}\s{{0,8}}:\s{{0,8}}(\d{{1,16}})"
)
_COUNTERS: Final[dict[str, Counter]] = {"allocated": "allocated", "reserved": "reserved"}
_MEANINGS: Final = {
    "allocated": "the most bytes of live tensors (max_memory_allocated)",
    "reserved": "the most bytes that PyTorch's allocator held",
    "active": "live tensors and those still in use by other streams",
    "requested": "what the program asked for, before rounding",
    "inactive_split": "free parts of blocks that are partly in use",
}


def read_torch_stats(text: LogText) -> Iterator[Measured]:
    """Yield the peak of each counter that the last statistics in `text` have."""
    found: dict[str, re.Match[str]] = {}
    for pattern in _patterns(text):
        for match in pattern.finditer(text.text):
            found[match[1]] = match
    for counted, match in found.items():
        start = match.start()
        line = Line(text.text.count("\n", 0, start) + 1, f"{counted}_bytes.all.peak: {match[2]}", start)
        name, amount = f"peak {counted.replace('_', ' ')}", exact(int(match[2]))
        yield measured(name, amount, _MEANINGS[counted], line, counter=_COUNTERS.get(counted))


def _patterns(text: LogText) -> Iterator[re.Pattern[str]]:
    if text.has(*_MARKS):
        yield _FLAT
    if all(text.has(f'"{key}"') or text.has(f"'{key}'") for key in _NESTED):
        yield _DEEP
