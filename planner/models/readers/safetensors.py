"""Reader of safetensors headers: the name, format, shape and size of every tensor, never the data.

A checkpoint is one such file, or several that an index or their numbered names connect.

The layout is eight bytes with the length of the header, the header in JSON, then the data without gaps. The safetensors
library is not used because it maps the whole file, needs a complete one, and cannot read parts of a remote file.

**Source**: the format's description in the safetensors repository, and what its library refuses.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from planner.errors import ModelFileError
from planner.models.readers.sources import ByteSource, open_local, quoted_text, read_whole
from planner.units import MIB

_SPACE: Final = re.compile(r"[ \t\n\r]*")
# Possessive, so that nothing is kept for trying again.
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"')


def _dict_of_unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse_json_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_dict_of_unique_keys, parse_constant=_refuse_json_constant)


class JsonScanner:
    """Incremental scanner of the text of one JSON object; `fail` raises an error with a reason."""

    def __init__(self, text: str, fail: Callable[[str], NoReturn]) -> None:
        self._text, self._fail, self._at = text, fail, 0

    def members(self, limit: int) -> Iterator[str]:
        """Yield the keys of the next JSON object; more than `limit` keys are an error.

        The caller must read the value with `value`, `text` or `members` before the next key.
        """
        self._take_character("{")
        if self._next_character() == "}":
            self._at += 1
            return
        seen: set[str] = set()
        while True:
            key = self.text()
            if key in seen:
                self._fail(f"the key {quoted_text(key)} occurs twice")
            seen.add(key)
            if len(seen) > limit:
                self._fail(f"has more than {limit:,} keys")
            self._take_character(":")
            yield key
            if self._next_character() == "}":
                self._at += 1
                return
            self._take_character(",")

    def text(self) -> str:
        """Read the next string."""
        self._next_character()
        found = _STRING.match(self._text, self._at)
        if found is None:
            self._fail(f"has no complete string at character {self._at:,}")
        self._at = found.end()
        return found[0][1:-1] if "\\" not in found[0] else self._unescape(found[0])

    def value(self, limit: int) -> object:
        """Read the next value of at most `limit` characters."""
        self._next_character()
        try:
            found, used = _DECODER.raw_decode(self._text[self._at : self._at + limit])
        except RecursionError:
            self._fail("is nested too deep")
        except ValueError as error:
            self._fail(_json_error_reason(error))
        self._at += used
        return found

    def _unescape(self, literal: str) -> str:
        try:
            return str(json.loads(literal))
        except ValueError as error:
            self._fail(_json_error_reason(error))

    def end(self) -> None:
        """Raise an error if the text has more than whitespace after the object."""
        if self._next_character():
            self._fail(f"has text after its object, at character {self._at:,}")

    def _next_character(self) -> str:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at
        return self._text[self._at : self._at + 1]

    def _take_character(self, mark: str) -> None:
        found = self._next_character()
        if found != mark:
            got = quoted_text(found) if found else "the end"
            self._fail(f"has {got} instead of {mark!r}, at character {self._at:,}")
        self._at += 1


def _json_error_reason(error: ValueError) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


MAX_HEADER_BYTES: Final = 16 * MIB
MAX_KEYS: Final = 50_000
"""Maximum number of tensors in one file, and of entries in its metadata."""

_LENGTH_BYTES: Final = 8
_ENTRY_CHARACTERS: Final = 4096
_MAX_ELEMENTS: Final = 2**63
_FIELDS: Final = frozenset({"dtype", "shape", "data_offsets"})
_HINT: Final = "Check that the file is a complete safetensors file; download or save it again."

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
"""Bits per element of each safetensors dtype."""


class FileTensor(NamedTuple):
    """One tensor of a safetensors file; for packed formats, `elements` counts packed words."""

    name: str
    format: str
    shape: tuple[int, ...]
    elements: int
    bytes: int


class _TensorWithOffsets(NamedTuple):
    """A safetensors tensor with the first and last byte offset of its data."""

    begin: int
    end: int
    tensor: FileTensor


def read_header(source: ByteSource) -> tuple[FileTensor, ...]:
    """Return the tensors of a safetensors file, in the order of their data.

    Raises:
        ModelFileError: If the file is cut short, or its header is too long, no JSON of the format, or contradicts
            itself: overlapping tensors, gaps, sizes that do not follow from the shapes.
    """
    fail = partial(_raise_file_error, source.place)
    length = int.from_bytes(source.read(0, _LENGTH_BYTES), "little")
    if length > MAX_HEADER_BYTES:
        fail(f"the header has {length:,} bytes; at most {MAX_HEADER_BYTES:,} are read")
    placed = sorted(_tensor_entries(_header_text(source.read(_LENGTH_BYTES, length), fail), fail))
    _check_layout(placed, source.size - _LENGTH_BYTES - length, fail)
    return tuple(entry.tensor for entry in placed)


def _header_text(header: bytes, fail: Callable[[str], NoReturn]) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        fail("the header is not text in UTF-8")


def _tensor_entries(text: str, fail: Callable[[str], NoReturn]) -> Iterator[_TensorWithOffsets]:
    scanner = JsonScanner(text, lambda reason: fail(f"the header {reason}"))
    for name in scanner.members(MAX_KEYS):
        if name == "__metadata__":
            for _ in scanner.members(MAX_KEYS):
                scanner.text()
        else:
            yield _tensor_entry(name, scanner.value(_ENTRY_CHARACTERS), fail)
    scanner.end()


def _tensor_entry(name: str, entry: object, fail: Callable[[str], NoReturn]) -> _TensorWithOffsets:
    where = f"tensor {quoted_text(name)}"
    if not isinstance(entry, dict) or entry.keys() != _FIELDS:
        fail(f"{where} must have dtype, shape and data_offsets")
    bits = BITS.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if bits is None:
        fail(f"{where}: dtype {quoted_text(str(entry['dtype']))} is not known")
    shape, (begin, end) = (
        _whole_numbers(entry["shape"], f"{where}: shape", fail),
        _data_span(entry["data_offsets"], where, fail),
    )
    elements = prod(shape)
    if elements > _MAX_ELEMENTS or elements * bits != 8 * (end - begin):
        fail(f"{where}: data_offsets hold {end - begin:,} bytes, which its shape and dtype do not fill")
    return _TensorWithOffsets(begin, end, FileTensor(name, entry["dtype"], shape, elements, end - begin))


def _data_span(value: object, where: str, fail: Callable[[str], NoReturn]) -> tuple[int, int]:
    """Return the start and end offset of a tensor's data; anything else is an error."""
    offsets = _whole_numbers(value, f"{where}: data_offsets", fail)
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        fail(f"{where}: data_offsets must be a beginning and an end")
    return offsets[0], offsets[1]


def _whole_numbers(value: object, where: str, fail: Callable[[str], NoReturn]) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < _MAX_ELEMENTS for item in value):
        fail(f"{where} must be a list of whole numbers from 0 to 2⁶³")
    return tuple(value)


def _check_layout(entries: list[_TensorWithOffsets], data_bytes: int, fail: Callable[[str], NoReturn]) -> None:
    """Check that the tensors fill the `data_bytes` of the file without gaps and overlaps."""
    at = 0
    for begin, end, tensor in entries:
        if begin < at:
            fail(
                f"tensor {quoted_text(tensor.name)} overlaps the one before it: data_offsets {begin:,} is below {at:,}"
            )
        if begin > at:
            fail(f"{begin - at:,} bytes before tensor {quoted_text(tensor.name)} belong to no tensor")
        at = end
    if at > data_bytes:
        fail(f"is cut short: its tensors have {at:,} bytes, and the file holds {data_bytes:,} of them")
    if at < data_bytes:
        fail(f"{data_bytes - at:,} bytes after the last tensor belong to none")


def _raise_file_error(place: str, reason: str) -> NoReturn:
    raise ModelFileError(place, reason, _HINT)


INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"
MAX_INDEX_BYTES: Final = 32 * MIB
MAX_TENSORS: Final = 500_000
MAX_SHARDS: Final = 10_000

_NUMBERED: Final = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.\w+)")
_MAX_KEYS: Final = 1000
_METADATA_CHARACTERS: Final = 65_536
_COMPLETE: Final = "Download the model's other files into the same folder."


class Checkpoint(NamedTuple):
    """All tensors of a checkpoint, with notes on its files."""

    tensors: tuple[FileTensor, ...]
    notes: tuple[str, ...] = ()


def read_checkpoint(path: Path) -> Checkpoint:
    """Read the headers of all safetensors files of a checkpoint; `path` is its index or any of the files.

    Raises:
        ModelFileError: If a file is missing, truncated or invalid, or the index names a file in another folder.
    """
    if path.name.endswith(".index.json"):
        return _read_indexed_checkpoint(path)
    beside = path.with_name(INDEX)
    if _NUMBERED.fullmatch(path.name) and os.path.isfile(beside):
        return _read_indexed_checkpoint(beside)
    return Checkpoint(tuple(_tensors_of_parts(numbered_parts(path))))


def numbered_parts(path: Path) -> tuple[Path, ...]:
    """Return all part files of a file named like `model-00001-of-00003`; any other file is its own only part.

    Raises:
        ModelFileError: If the numbers are impossible, or a part is missing.
    """
    match = _NUMBERED.fullmatch(path.name)
    if match is None:
        return (path,)
    count = int(match["count"])
    if not 1 <= int(match["number"]) <= count <= MAX_SHARDS:
        raise ModelFileError(path, "its name numbers a part that cannot be", "Rename it, or choose another file.")
    parts = tuple(
        path.with_name(f"{match['stem']}-{number:05}-of-{count:05}{match['suffix']}") for number in range(1, count + 1)
    )
    _check_all_parts_exist(path, parts)
    return parts


def _read_indexed_checkpoint(path: Path) -> Checkpoint:
    listed = read_index(read_whole(path, MAX_INDEX_BYTES, "index of safetensors files"), path)
    parts = {name: path.with_name(name) for name in listed.values()}
    _check_all_parts_exist(path, tuple(parts.values()))
    return combine_parts(listed, ((name, _read_part_header(part)) for name, part in parts.items()), path)


def combine_parts(
    listed: dict[str, str], parts: Iterable[tuple[str, tuple[FileTensor, ...]]], index: Path | str
) -> Checkpoint:
    """Return all tensors that an index lists; `parts` are pairs of file name and tensors in its header.

    Raises:
        ModelFileError: If a part lacks a tensor that the index lists, or there are too many.
    """
    found: list[FileTensor] = []
    extra: list[str] = []
    for file, tensors in parts:
        for tensor in tensors:
            if listed.get(tensor.name) == file:
                found.append(tensor)
                del listed[tensor.name]
            else:
                extra.append(tensor.name)
        if len(found) + len(extra) > MAX_TENSORS:
            raise ModelFileError(index, f"its files hold more than {MAX_TENSORS:,} tensors", "Choose a single model.")
    if listed:
        name, file = next(iter(listed.items()))
        raise ModelFileError(index, f"weight_map: {quoted_text(name)} is not in {file}", _COMPLETE)
    return Checkpoint(tuple(found), _unlisted_tensors_note(extra))


def read_index(data: bytes, place: Path | str) -> dict[str, str]:
    """Parse an index of safetensors files into a mapping from tensor name to file name.

    Raises:
        ModelFileError: If it is no such index, or names anything but a safetensors file beside it.
    """

    def fail(reason: str) -> NoReturn:
        raise ModelFileError(place, reason, "Download the index of the model's safetensors files again.")

    try:
        scanner = JsonScanner(data.decode("utf-8-sig"), fail)
    except UnicodeDecodeError:
        fail("is not text in UTF-8")
    listed: dict[str, str] = {}
    # Few names occur many times: one string for each of them.
    files: dict[str, str] = {}
    for key in scanner.members(_MAX_KEYS):
        if key != "weight_map":
            scanner.value(_METADATA_CHARACTERS)
            continue
        for name in scanner.members(MAX_TENSORS):
            file = scanner.text()
            # No folder, on every operating system.
            if file not in files and not re.fullmatch(r"[^/\\:\x00-\x1f]*\.safetensors", file):
                fail(f"weight_map: {quoted_text(file)} is not the name of a safetensors file beside the index")
            listed[name] = files.setdefault(file, file)
            if len(files) > MAX_SHARDS:
                fail(f"weight_map: names more than {MAX_SHARDS:,} files")
    scanner.end()
    if not listed:
        fail("weight_map: is missing or empty")
    return listed


def _check_all_parts_exist(path: Path, parts: tuple[Path, ...]) -> None:
    missing = [part.name for part in parts if not os.path.exists(part)]
    if missing:
        files = "1 file" if len(parts) == 1 else f"{len(parts):,} files"
        more = f" and {len(missing) - 1:,} more are" if len(missing) > 1 else " is"
        raise ModelFileError(path, f"of {files} {quoted_text(missing[0])}{more} missing", _COMPLETE)


def _tensors_of_parts(parts: tuple[Path, ...]) -> Iterator[FileTensor]:
    seen: set[str] = set()
    for part in parts:
        for tensor in _read_part_header(part):
            if tensor.name in seen:
                raise ModelFileError(part, f"tensor {quoted_text(tensor.name)} is in another part as well", _COMPLETE)
            seen.add(tensor.name)
            yield tensor
        if len(seen) > MAX_TENSORS:
            raise ModelFileError(part, f"there are more than {MAX_TENSORS:,} tensors", "Choose a single model.")


def _read_part_header(part: Path) -> tuple[FileTensor, ...]:
    with open_local(part) as file:
        return read_header(file)


def _unlisted_tensors_note(names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    return (
        f"{len(names):,} tensors of the files are not in their index and not counted, such as {quoted_text(names[0])}",
    )
