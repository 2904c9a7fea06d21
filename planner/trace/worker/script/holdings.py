"""Counts of the values that the variables of a script hold beside tensors: numbers, others, bytes of arrays."""

import gc
import inspect
from collections import deque
from numbers import Number
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType, NoneType
from typing import Any, Final, NamedTuple

import torch

_LONG: Final = 4096
"""Elements of a container that are looked at one by one; a longer one has what its last element is."""
_MOST_OBJECTS: Final = 1_000_000
_FEW_NUMBERS: Final = 8
"""Numbers that a pass may gather, as losses are to print their mean; a script may train on what it has more of."""
_OF_THE_IMPORT: Final = ("__loader__", "__spec__")
"""Variables of a module that are not the script's; what loads it may reach the whole process."""
_CONTAINERS: Final = (list, tuple, set, frozenset, dict, deque)
_NO_CONTAINERS: Final = (type, CodeType, FrameType, str, torch.Tensor)


class Holdings(NamedTuple):
    """Counts of the numbers and of the other values that a script's variables reach, and the bytes of their arrays."""

    numbers: int
    others: int
    array_bytes: int

    def has_kept(self, before: "Holdings") -> bool:
        """Return whether more was gathered since `before` than a few numbers."""
        return self[1:] != before[1:] or self.numbers > before.numbers + _FEW_NUMBERS


def holdings_of(frame: FrameType) -> Holdings | None:
    """Return what the variables of `frame` and of its module reach; None if that is too much to look at.

    Tensors are not entered, whose memory is recorded, nor modules of other folders and the trace's own objects.
    """
    variables = frame.f_locals
    folder = str(Path(frame.f_code.co_filename).parent)
    own = [value for name, value in frame.f_globals.items() if name not in _OF_THE_IMPORT]
    found: list[Any] = [*variables.values(), *own]
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(variables) is dict:
        variables.clear()  # A copy before Python 3.13, which would hold the tensors of the loop.
    numbers = others = array_bytes = 0
    seen = set[int]()
    while found:
        value = found.pop()
        if isinstance(value, Number | NoneType):
            numbers += 1
            continue
        others += 1
        if id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > _MOST_OBJECTS:
            return None
        if isinstance(value, _CONTAINERS) and len(value) > _LONG:
            is_of_numbers = isinstance(value, list | tuple | deque) and isinstance(value[-1], Number)
            numbers += len(value) * is_of_numbers
            others += len(value) * (not is_of_numbers)
        elif isinstance(value, FunctionType):
            found += [*(value.__closure__ or ()), *(value.__defaults__ or ())]
        elif _is_entered(value, folder):
            found += gc.get_referents(value)
            array_bytes += _buffer_bytes(value)
    return Holdings(numbers, others, array_bytes)


def _buffer_bytes(value: Any) -> int:
    """Return the bytes of an array, 0 for what is none."""
    try:
        return memoryview(value).nbytes
    except (TypeError, ValueError):  # some arrays show no buffer, as those of dates
        size = getattr(value, "nbytes", 0)
        return size if isinstance(size, int) else 0  # some objects have every attribute


def _is_entered(value: Any, folder: str) -> bool:
    """Return whether an object may be one in which the script gathers something."""
    if isinstance(value, ModuleType):
        file = getattr(value, "__file__", None) or ""
        return file.startswith(folder) and "site-packages" not in file
    return not isinstance(value, _NO_CONTAINERS) and not type(value).__module__.startswith("planner.")
