"""Reader of GGUF headers, and access to their metadata: names, types, shapes and sizes of tensors, never the data.

The gguf library is not used because it maps the whole file, keeps every token of the vocabulary, trusts all counts,
and cannot read parts of a remote file.

**Source**: ggml docs/gguf.md, and what ggml/src/gguf.cpp refuses.
"""

import struct
from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Final, NamedTuple, NoReturn

from planner.errors import ModelFileError
from planner.ggml import GGML_TYPES
from planner.models.readers.config_fields import MAX_LAYERS, MAX_WIDTH
from planner.models.readers.sources import ByteSource, check_span, quoted_text
from planner.units import MIB, ceil_div

_CHUNK_BYTES: Final = 1 * MIB
_HINT: Final = "Check that it is a whole GGUF file of version 2 or 3; download it again."


class HeaderCursor:
    """Forward-only reader of a file's bytes; `fail` raises an error about the file's content."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = self._start = 0
        self._chunk = b""
        self.fail = partial(_raise_file_error, source.place)

    @property
    def position(self) -> int:
        """Return the cursor's offset in the file in bytes."""
        return self._at

    @property
    def remaining_bytes(self) -> int:
        """Return the number of bytes left in the file."""
        return self._source.size - self._at

    def take(self, count: int) -> bytes:
        """Read the next `count` bytes."""
        begin = self._at - self._start
        if begin + count > len(self._chunk):
            check_span(self._source, self._at, count)
            self._chunk = self._source.read(self._at, min(max(count, _CHUNK_BYTES), self.remaining_bytes))
            self._start, begin = self._at, 0
        self._at += count
        return self._chunk[begin : begin + count]

    def skip(self, count: int) -> None:
        """Skip `count` bytes."""
        check_span(self._source, self._at, count)
        self._at += count

    def numbers(self, code: str, count: int = 1) -> tuple[int | float, ...]:
        """Read the next `count` numbers of the `struct` format `code`."""
        layout = f"<{count}{code}"
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def count(self, size: int = 8) -> int:
        """Read the next unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self, limit: int, kind: str) -> str:
        """Read the next string, which is preceded by its length."""
        length = self.count()
        if length > limit:
            self.fail(f"{kind} has {length:,} bytes, more than {limit:,}")
        raw = self.take(length)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.fail(f"{kind} is not text in UTF-8: {quoted_text(raw.decode('utf-8', 'replace'))}")

    def skip_strings(self, count: int) -> None:
        """Skip `count` strings, reading only their lengths."""
        while count:
            chunk = self._peek_chunk()
            at, last = 0, len(chunk) - 8
            while count and at <= last:
                at += 8 + int.from_bytes(chunk[at : at + 8], "little")
                count -= 1
            self.skip(at)

    def _peek_chunk(self) -> bytes:
        """Return a large chunk of the following bytes without consuming it, at least the eight bytes of a length."""
        self.take(8)
        self._at -= 8
        return self._chunk[self._at - self._start :]


def _raise_file_error(place: str, reason: str) -> NoReturn:
    raise ModelFileError(place, reason, _HINT)


MAX_KEYS: Final = 65_536
MAX_TENSORS: Final = 100_000
MAX_STRINGS: Final = 2_000_000
"""Maximum number of strings in metadata arrays; a vocabulary has a few hundred thousand."""
MAX_KEPT_BYTES: Final = 16 * MIB

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_KEY_BYTES: Final = 2**16 - 1
_NAME_BYTES: Final = 63
_DIMENSIONS: Final = 4
_MAX_EXTENT: Final = 2**63
_KEPT_STRING: Final = 65_536
_KEPT_NUMBERS: Final = 4_096
_MAX_ALIGNMENT: Final = 2**20
_CODES: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_WIDTHS: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING: Final = 8
_ARRAY: Final = 9
_TYPES: Final = {kind.number: kind for kind in GGML_TYPES}


class OmittedValue(NamedTuple):
    """A metadata value that was skipped; `length` is the number of array entries or string bytes."""

    length: int


Value = int | float | bool | str | tuple[int | float, ...] | OmittedValue


class GgufTensor(NamedTuple):
    """One tensor of a GGUF file; its shape starts with the contiguous dimension."""

    name: str
    type: str
    shape: tuple[int, ...]
    elements: int
    bytes: int


class GgufFile(NamedTuple):
    """The header of a GGUF file."""

    metadata: Mapping[str, Value]
    tensors: tuple[GgufTensor, ...]


def read_gguf(source: ByteSource) -> GgufFile:
    """Read the header of a GGUF file of version 2 or 3.

    Raises:
        ModelFileError: If the file is truncated, counts or lengths are impossible, a key or tensor is duplicated, or
            the tensors' offsets do not match their sizes.
    """
    cursor = HeaderCursor(source)
    if source.size < len(_MAGIC) or cursor.take(len(_MAGIC)) != _MAGIC:
        cursor.fail("is not a GGUF file: it does not begin with GGUF")
    _check_version(cursor)
    tensors, keys = cursor.count(), cursor.count()
    if tensors > MAX_TENSORS or keys > MAX_KEYS:
        cursor.fail(
            f"would have {tensors:,} tensors and {keys:,} keys; at most {MAX_TENSORS:,} and {MAX_KEYS:,} are read"
        )
    metadata = _MetadataReader(cursor).read(keys)
    return GgufFile(metadata, _read_tensors(cursor, tensors, _read_alignment(cursor, metadata)))


def _check_version(cursor: HeaderCursor) -> None:
    version = cursor.count(4)
    if version not in _VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        reason = "is for big-endian machines" if swapped in _VERSIONS else f"has GGUF version {version:,}"
        cursor.fail(f"{reason}; version 2 and 3 in little-endian order are read")


def _read_alignment(cursor: HeaderCursor, metadata: Mapping[str, Value]) -> int:
    found = metadata.get("general.alignment", 32)
    if type(found) is not int or not 0 < found <= _MAX_ALIGNMENT or found & (found - 1):
        cursor.fail("general.alignment must be a power of two")
    return found


class _MetadataReader:
    """Reader of GGUF metadata, which skips long values."""

    def __init__(self, cursor: HeaderCursor) -> None:
        self._cursor = cursor
        self._kept = self._strings = 0

    def read(self, count: int) -> dict[str, Value]:
        """Return `count` key-value pairs of the metadata."""
        values: dict[str, Value] = {}
        for number in range(count):
            key = self._cursor.text(_KEY_BYTES, f"key {number + 1:,}")
            if key in values:
                self._cursor.fail(f"the key {quoted_text(key)} occurs twice")
            self._count_kept_bytes(len(key))
            values[key] = self._read_value(quoted_text(key), self._cursor.count(4))
        return values

    def _read_value(self, key: str, kind: int) -> Value:
        if kind == _STRING:
            return self._read_string()
        if kind == _ARRAY:
            return self._read_array(key, self._cursor.count(4), self._cursor.count())
        return self._cursor.numbers(self._number_format(key, kind))[0]

    def _read_string(self) -> str | OmittedValue:
        length = int.from_bytes(self._cursor.take(8), "little")
        if length > _KEPT_STRING:
            self._cursor.skip(length)
            return OmittedValue(length)
        self._count_kept_bytes(length)
        return self._cursor.take(length).decode("utf-8", "replace")

    def _read_array(self, key: str, kind: int, count: int) -> tuple[int | float, ...] | OmittedValue:
        if kind == _STRING:
            self._strings += count
            if self._strings > MAX_STRINGS:
                self._cursor.fail(f"{key} makes {self._strings:,} strings in arrays; at most {MAX_STRINGS:,} are read")
            self._cursor.skip_strings(count)
            return OmittedValue(count)
        code = self._number_format(key, kind)
        if count > _KEPT_NUMBERS:
            self._cursor.skip(count * _WIDTHS[kind])
            return OmittedValue(count)
        self._count_kept_bytes(8 * count)
        return self._cursor.numbers(code, count)

    def _number_format(self, key: str, kind: int) -> str:
        code = _CODES.get(kind)
        if code is None:
            self._cursor.fail(f"{key} has a value of type {kind:,}, which is not supported")
        return code

    def _count_kept_bytes(self, count: int) -> None:
        """Add `count` to the bytes of kept metadata; too many are an error."""
        self._kept += count
        if self._kept > MAX_KEPT_BYTES:
            self._cursor.fail(f"the metadata has more than {MAX_KEPT_BYTES:,} bytes besides the vocabulary")


def _read_tensors(cursor: HeaderCursor, count: int, alignment: int) -> tuple[GgufTensor, ...]:
    found: dict[str, GgufTensor] = {}
    expected = end = 0
    for _ in range(count):
        tensor, offset = _read_tensor(cursor)
        if tensor.name in found:
            cursor.fail(f"tensor {quoted_text(tensor.name)} occurs twice")
        if offset != expected:
            cursor.fail(
                f"tensor {quoted_text(tensor.name)} lies at {offset:,}; after those before it that is {expected:,}"
            )
        found[tensor.name] = tensor
        end = offset + tensor.bytes
        expected = ceil_div(end, alignment) * alignment
    if found:
        cursor.skip(ceil_div(cursor.position, alignment) * alignment - cursor.position + end)
    return tuple(found.values())


def _read_tensor(cursor: HeaderCursor) -> tuple[GgufTensor, int]:
    """Return one entry of the tensor list, and the offset of the tensor's data."""
    name = cursor.text(_NAME_BYTES, "a tensor's name")
    where = f"tensor {quoted_text(name)}"
    dimensions = cursor.count(4)
    if dimensions > _DIMENSIONS:
        cursor.fail(f"{where} has {dimensions:,} dimensions; at most {_DIMENSIONS} are read")
    shape = tuple(cursor.count() for _ in range(dimensions)) or (1,)
    kind = _TYPES.get(number := cursor.count(4))
    if kind is None:
        cursor.fail(f"{where} has type {number:,}, which is not supported")
    elements = prod(shape)
    if elements >= _MAX_EXTENT or shape[0] % kind.block_elements:
        cursor.fail(f"{where}: rows of {shape[0]:,} do not divide into blocks of {kind.name}, or are too many")
    return GgufTensor(
        name, kind.name, shape, elements, elements // kind.block_elements * kind.block_bytes
    ), cursor.count()


_METADATA_HINT: Final = "Check that it is a language model's GGUF file as llama.cpp's converter writes it."
_EMBEDDING: Final = "token_embd.weight"
_MAX_WINDOW: Final = 10**9
_MAX_CONTEXT: Final = 10**9


class GgufMetadata:
    """Metadata and tensors of a GGUF file that describe its network."""

    def __init__(self, file: GgufFile, place: str) -> None:
        self._file, self._place = file, place
        self._tensors = {tensor.name: tensor for tensor in file.tensors}

    @property
    def architecture(self) -> str:
        """Return the llama.cpp name of the file's architecture."""
        found = self._file.metadata.get("general.architecture")
        if not isinstance(found, str):
            self.fail("general.architecture", "is missing or no text")
        return found

    @property
    def kind(self) -> str:
        """Return the kind of the file's content, by default `model`."""
        return str(self._file.metadata.get("general.type", "model"))

    @property
    def layers(self) -> int:
        """Return the number of layers, without layers for multi-token prediction."""
        count = self.integer("block_count", high=MAX_LAYERS)
        more = self.optional_integer("nextn_predict_layers", low=0, high=count - 1) or 0
        return count - more

    @property
    def vocabulary(self) -> int:
        """Return the number of rows in the token embedding, or of vocabulary tokens if the file has no tensors."""
        table = self._tensors.get(_EMBEDDING)
        if table is not None:
            return table.shape[-1]
        tokens = self._file.metadata.get("tokenizer.ggml.tokens")
        return tokens.length if isinstance(tokens, OmittedValue) else self.integer("vocab_size")

    @property
    def context(self) -> int | None:
        """Return the maximum context length in tokens, or None if not stated."""
        return self.optional_integer("context_length", high=_MAX_CONTEXT)

    @property
    def dense_width(self) -> int | None:
        """Return the width of a dense feed-forward block from its tensors; some converters write a wrong value."""
        tensor = self.tensor("ffn_down.weight")
        return self.optional_integer("feed_forward_length", low=0) or None if tensor is None else tensor.shape[0]

    @property
    def kv_heads(self) -> int | None:
        """Return the number of key/value heads in attention layers; other layers state 0."""
        found = set(self.integers("attention.head_count_kv") or ()) - {0}
        if len(found) > 1:
            self.fail("attention.head_count_kv", "differs between layers, which is not supported for this architecture")
        return found.pop() if found else None

    @property
    def window(self) -> int | None:
        """Return the sliding window in tokens, or None."""
        return self.optional_integer("attention.sliding_window", low=0, high=_MAX_WINDOW) or None

    @property
    def expert_width(self) -> int:
        """Return the feed-forward width of an expert, from the tensors in old files that do not state it."""
        stated = self.optional_integer("expert_feed_forward_length")
        tensor = self.tensor("ffn_up_exps.weight")
        if stated is None and tensor is not None and len(tensor.shape) == 3:
            return tensor.shape[1]
        return stated or self.integer("feed_forward_length")

    @property
    def shared_width(self) -> int:
        """Return the total width of the shared experts; 0 if there are none."""
        tensor = self.tensor("ffn_up_shexp.weight")
        stated = self.optional_integer("expert_shared_feed_forward_length", low=0)
        return stated or (tensor.shape[-1] if tensor is not None else 0)

    @property
    def file_type(self) -> object:
        """Return the file type's number in `general.file_type`."""
        return self._file.metadata.get("general.file_type")

    def has(self, *name_endings: str) -> bool:
        """Return whether the file has a tensor whose name ends in one of `name_endings`."""
        return any(self.tensor(ending) is not None for ending in name_endings)

    def tensor(self, name_ending: str) -> GgufTensor | None:
        """Return the first tensor whose name ends in `name_ending`, or None."""
        return next(
            (
                tensor
                for name, tensor in self._tensors.items()
                if name == name_ending or name.endswith(f".{name_ending}")
            ),
            None,
        )

    def integer(self, name: str, *, low: int = 1, high: int = MAX_WIDTH) -> int:
        """Return the required whole number `name`; values per layer must be equal."""
        found = self.optional_integer(name, low=low, high=high)
        if found is None:
            self.fail(name, "is missing")
        return found

    def optional_integer(self, name: str, *, low: int = 1, high: int = MAX_WIDTH) -> int | None:
        """Return the whole number `name`, or None if it is missing."""
        found = self.integers(name, low=low, high=high)
        if found is None:
            return None
        if len(set(found)) != 1:
            self.fail(name, "differs between layers, which is not supported for this architecture")
        return found[0]

    def integers(self, name: str, *, low: int = 0, high: int = MAX_WIDTH) -> tuple[int, ...] | None:
        """Return the whole numbers `name`, one per layer or a single one, or None if they are missing."""
        value = self._file.metadata.get(self._key(name))
        if value is None:
            return None
        items = value if isinstance(value, tuple) and not isinstance(value, OmittedValue) else (value,)
        found = tuple(item for item in items if isinstance(item, int) and low <= item <= high)
        if len(found) != len(items) or not found:
            self.fail(name, f"must hold whole numbers from {low:,} to {high:,}")
        return found

    def flag(self, name: str) -> bool | None:
        """Return the flag `name`, or None if it is missing."""
        value = self._file.metadata.get(self._key(name))
        return value if isinstance(value, bool) else None

    def fail(self, name: str, reason: str) -> NoReturn:
        """Raise a `ModelFileError` about the value `name`."""
        raise ModelFileError(self._place, f"{quoted_text(self._key(name))} {reason}", _METADATA_HINT)

    def _key(self, name: str) -> str:
        return name if name.startswith("general.") else f"{self.architecture}.{name}"
