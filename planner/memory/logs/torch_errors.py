"""PyTorch's out-of-memory message, old and new.

**Source**: c10/cuda/CUDACachingAllocator.cpp: sizes have two decimals in binary units. Before 2.1 the message was in
brackets, before 1.5 it said "cached" for what the allocator held and had not given out.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.memory.logs.amounts import NUMBER, UNITS, Amount, rounded
from planner.memory.logs.reading import Counter, Measured, Sense, measured
from planner.memory.logs.text import Line, LogText

_SIZE: Final = NUMBER + r" (bytes|[KMGT]iB)"
_MARK: Final = "out of memory. Tried to allocate "
_ASKED: Final = re.compile(_SIZE)
_OWN: Final = re.compile(rf"this process has {_SIZE} memory in use")
_DEVICE: Final = re.compile(r"GPU (\d{1,4})(?: has a total|;)")
_OTHERS: Final = re.compile(rf"Process (\d{{1,10}}) has {_SIZE} memory in use")
_AFTER: Final = 4


class _Pattern(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    meaning: str
    counter: Counter | None
    sense: Sense = "moment"


_PATTERNS: Final = (
    _Pattern(
        "usable memory",
        re.compile(rf"total capac(?:ity|ty) of {_SIZE}|{_SIZE} total capacity"),
        "the bytes that a process can see on the card",
        "capacity",
        "peak",
    ),
    _Pattern("free memory", re.compile(rf"of which {_SIZE} is free|{_SIZE} free"), "free when it failed", None),
    _Pattern(
        "private pools",
        re.compile(rf"with {_SIZE} allocated in private pools"),
        "CUDA graphs, within what is allocated",
        None,
    ),
)
_HELD: Final = re.compile(rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated")
_UNUSED: Final = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated|{_SIZE} cached")
_RESERVED: Final = re.compile(rf"{_SIZE} reserved in total by PyTorch")


def read_torch_errors(text: LogText) -> Iterator[Measured]:
    """Yield what each out-of-memory message says; a run needs at least what it held and what it asked for."""
    for line in text.lines_with(_MARK):
        # Messages are wrapped where they were quoted, and several may stand below each other.
        joined = " ".join([line.text, *(below.text for below in text.after(line, _AFTER))])
        message = "".join(joined.partition(_MARK)[1:]).split(_MARK)[1]
        asked, device = _ASKED.match(message), _DEVICE.search(message)
        if asked:
            yield from _message(message, _amount(asked), line, device[1] if device else None)


def _message(message: str, asked: Amount, line: Line, device: str | None) -> Iterator[Measured]:
    yield from _processes(message, line, device)
    for item in _PATTERNS:
        found = item.pattern.search(message)
        if found:
            yield measured(
                item.name, _amount(found), item.meaning, line, counter=item.counter, sense=item.sense, device=device
            )
    held, unused, reserved = _HELD.search(message), _UNUSED.search(message), _RESERVED.search(message)
    if held:
        needed, meaning = _sum(_amount(held), asked), "allocated when it failed, and what it asked for then"
        yield measured(
            "allocated and asked for", needed, meaning, line, counter="allocated", sense="at-least", device=device
        )
    total = _amount(reserved) if reserved else _sum(_amount(held), _amount(unused)) if held and unused else None
    if total:
        meaning = "what PyTorch's allocator held when it failed"
        yield measured("reserved", total, meaning, line, counter="reserved", sense="at-least", device=device)


def _processes(message: str, line: Line, device: str | None) -> Iterator[Measured]:
    """Yield the processes on the card; in a container none is called "this", and the largest is taken for it."""
    own = _OWN.search(message)
    others = sorted(((_amount(found, 1), f"process {found[1]}") for found in _OTHERS.finditer(message)), reverse=True)
    amount, name = (_amount(own), "this process") if own else others.pop(0) if others else (None, "")
    if amount:
        meaning = "what it held on the card when it failed"
        yield measured(name, amount, meaning, line, counter="process", sense="at-least", device=device)
    for amount, name in others:
        yield measured(name, amount, "another process", line, counter="other-processes", sense="moment", device=device)


def _amount(match: re.Match[str], skip: int = 0) -> Amount:
    number, unit = [group for group in match.groups() if group is not None][skip : skip + 2]
    return rounded(number, UNITS[unit])


def _sum(one: Amount, other: Amount) -> Amount:
    return Amount(one.bytes + other.bytes, one.low + other.low, one.high + other.high)
