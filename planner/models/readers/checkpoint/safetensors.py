"""Read the header of a safetensors file: the name, format, shape and bytes of every tensor, never their data.

The layout is eight bytes with the length of the header, the header in JSON, then the data without gaps. It is read here
and not by the safetensors library because that one maps the whole file, needs a complete one, and reads no part of a
file elsewhere.

**Source**: the format's description in the safetensors repository, and what its library refuses.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Final, NamedTuple, NoReturn

from planner.errors import ModelFileError
from planner.models.readers.checkpoint.json_scan import JsonScanner, shown
from planner.models.readers.sources import ByteSource
from planner.units import MIB

MAX_HEADER_BYTES: Final = 16 * MIB
MAX_KEYS: Final = 50_000
"""Tensors in one file, and notes in its metadata."""

_LENGTH_BYTES: Final = 8
_ENTRY_CHARACTERS: Final = 4096
_MAX_ELEMENTS: Final = 2**63
_FIELDS: Final = frozenset({"dtype", "shape", "data_offsets"})
_HINT: Final = "Check that it is a whole safetensors file; download or save it again."

BITS: Final = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E8M0": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
"""Bits of one element by the format's name for it."""


class FileTensor(NamedTuple):
    """One tensor as a file holds it; `elements` are the file's, which packed formats count in words."""

    name: str
    format: str
    shape: tuple[int, ...]
    elements: int
    bytes: int


class _Placed(NamedTuple):
    begin: int
    end: int
    tensor: FileTensor


def read_header(source: ByteSource) -> tuple[FileTensor, ...]:
    """Return the tensors of a safetensors file, in the order of their data.

    Raises:
        ModelFileError: If the file is cut short, or its header is too long, no JSON of the format, or contradicts
            itself: overlapping tensors, gaps, sizes that do not follow from the shapes.
    """
    fail = partial(_fail, source.place)
    length = int.from_bytes(source.read(0, _LENGTH_BYTES), "little")
    if length > MAX_HEADER_BYTES:
        fail(f"the header would have {length:,} bytes; at most {MAX_HEADER_BYTES:,} are read")
    placed = sorted(_entries(_text(source.read(_LENGTH_BYTES, length), fail), fail))
    _check_layout(placed, source.size - _LENGTH_BYTES - length, fail)
    return tuple(entry.tensor for entry in placed)


def _text(header: bytes, fail: Callable[[str], NoReturn]) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        fail("the header is not text in UTF-8")


def _entries(text: str, fail: Callable[[str], NoReturn]) -> Iterator[_Placed]:
    scanner = JsonScanner(text, lambda reason: fail(f"the header {reason}"))
    for name in scanner.members(MAX_KEYS):
        if name == "__metadata__":
            for _ in scanner.members(MAX_KEYS):
                scanner.text()
        else:
            yield _entry(name, scanner.value(_ENTRY_CHARACTERS), fail)
    scanner.end()


def _entry(name: str, entry: object, fail: Callable[[str], NoReturn]) -> _Placed:
    where = f"tensor {shown(name)}"
    if not isinstance(entry, dict) or entry.keys() != _FIELDS:
        fail(f"{where} must have dtype, shape and data_offsets")
    bits = BITS.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if bits is None:
        fail(f"{where}: dtype {shown(str(entry['dtype']))} is not known")
    shape, (begin, end) = _whole(entry["shape"], f"{where}: shape", fail), _span(entry["data_offsets"], where, fail)
    elements = prod(shape)
    if elements > _MAX_ELEMENTS or elements * bits != 8 * (end - begin):
        fail(f"{where}: data_offsets hold {end - begin:,} bytes, which its shape and dtype do not fill")
    return _Placed(begin, end, FileTensor(name, entry["dtype"], shape, elements, end - begin))


def _span(value: object, where: str, fail: Callable[[str], NoReturn]) -> tuple[int, int]:
    offsets = _whole(value, f"{where}: data_offsets", fail)
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        fail(f"{where}: data_offsets must be a beginning and an end")
    return offsets[0], offsets[1]


def _whole(value: object, where: str, fail: Callable[[str], NoReturn]) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < _MAX_ELEMENTS for item in value):
        fail(f"{where} must be a list of whole numbers from 0 to 2⁶³")
    return tuple(value)


def _check_layout(placed: list[_Placed], size: int, fail: Callable[[str], NoReturn]) -> None:
    at = 0
    for begin, end, tensor in placed:
        if begin < at:
            fail(f"tensor {shown(tensor.name)} overlaps the one before it: data_offsets {begin:,} is below {at:,}")
        if begin > at:
            fail(f"{begin - at:,} bytes before tensor {shown(tensor.name)} belong to no tensor")
        at = end
    if at > size:
        fail(f"is cut short: its tensors have {at:,} bytes, and the file holds {size:,} of them")
    if at < size:
        fail(f"{size - at:,} bytes after the last tensor belong to none")


def _fail(place: str, reason: str) -> NoReturn:
    raise ModelFileError(place, reason, _HINT)
