"""TensorBoard's event files, written without TensorFlow: records with checksums, each holding one event.

A record is its length, the masked checksum of the length, the event, and the masked checksum of the event. Readers
ignore an incomplete record at the end, so that a file is readable at any time, also after its writer was killed.

**Source** record_writer.cc, event.proto, summary.proto and tensor.proto of github.com/tensorflow/tensorflow; the
checksum is CRC-32C (Castagnoli) of RFC 3720, masked as in tensorflow/core/lib/hash/crc32c.h.
"""

import struct
from collections.abc import Iterable
from functools import cache
from typing import BinaryIO, Final, NamedTuple

_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_WORD: Final = 0xFFFFFFFF
_FILE_VERSION: Final = b"brain.Event:2"
_STRING_TENSOR: Final = 7
_LENGTH: Final = struct.Struct("<Q")
_CHECKSUM: Final = struct.Struct("<I")
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_LARGEST_FLOAT: Final = 3.4028234663852886e38

# The wire types of protocol buffers.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class EventText(NamedTuple):
    """A text that TensorBoard shows under `tag`, as Markdown."""

    tag: str
    text: str


class EventFile:
    """Writes events to `stream`, one record each; a new file begins with the version of its format."""

    def __init__(self, stream: BinaryIO, wall_seconds: float) -> None:
        self._stream = stream
        self._write(_event(wall_seconds, 0, _field(3, _FILE_VERSION)))

    def add_scalars(self, wall_seconds: float, step: int, scalars: Iterable[tuple[bytes, float]]) -> None:
        """Write numbers of one time, each with its tag from `encoded_tag`; they are kept as 32-bit floats.

        Raises:
            OSError: If the file cannot be written.
        """
        pack = _FLOAT.pack
        summary = b"".join([tag + pack(value) for tag, value in scalars if -_LARGEST_FLOAT <= value <= _LARGEST_FLOAT])
        self._write(_event(wall_seconds, step, _field(5, summary)))

    def add_text(self, wall_seconds: float, step: int, text: EventText) -> None:
        """Write a text.

        Raises:
            OSError: If the file cannot be written.
        """
        plugin = _field(1, _field(1, b"text"))
        shape = _field(2, _field(2, _key(1, _VARINT) + _varint(1)))
        content = text.text.encode("utf-8", "backslashreplace")
        tensor = _key(1, _VARINT) + _varint(_STRING_TENSOR) + shape + _field(8, content)
        tag = text.tag.encode("utf-8", "backslashreplace")
        value = _field(1, tag) + _field(9, plugin) + _field(8, tensor)
        self._write(_event(wall_seconds, step, _field(5, _field(1, value))))

    def flush(self) -> None:
        """Hand all events to the system, which keeps them if this process is killed.

        Raises:
            OSError: If the file cannot be written.
        """
        self._stream.flush()

    def _write(self, event: bytes) -> None:
        length = _LENGTH.pack(len(event))
        self._stream.write(length + _masked_checksum(length) + event + _masked_checksum(event))


def encoded_tag(tag: str) -> bytes:
    """Return the bytes of a number's entry in an event before the number itself."""
    name = _field(1, tag.encode("utf-8", "backslashreplace")) + _key(2, _FIXED32)
    return _key(1, _BYTES) + _varint(len(name) + _FLOAT.size) + name


def crc32c(data: bytes) -> int:
    """Return the CRC-32C checksum of `data`."""
    table, crc, pairs = _table_of_pairs(), _WORD, len(data) // 2
    for pair in struct.unpack_from(f"<{pairs}H", data):
        crc = table[(crc ^ pair) & 0xFFFF] ^ (crc >> 16)
    for byte in data[2 * pairs :]:
        crc = _shifted((crc ^ byte) & 0xFF) ^ (crc >> 8)
    return crc ^ _WORD


@cache
def _table_of_pairs() -> list[int]:
    """Return the remainder of each pair of bytes: half as many steps as with single bytes."""
    bytewise = [_shifted(byte) for byte in range(256)]
    once = [bytewise[pair & 0xFF] ^ (pair >> 8) for pair in range(65_536)]
    return [bytewise[remainder & 0xFF] ^ (remainder >> 8) for remainder in once]


def _shifted(remainder: int) -> int:
    """Return a remainder after eight more bits."""
    for _ in range(8):
        remainder = (remainder >> 1) ^ (_POLYNOMIAL if remainder & 1 else 0)
    return remainder


def _masked_checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return _CHECKSUM.pack((((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _WORD)


def _event(wall_seconds: float, step: int, content: bytes) -> bytes:
    return _key(1, _FIXED64) + _DOUBLE.pack(wall_seconds) + _key(2, _VARINT) + _varint(step) + content


def _field(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(number: int) -> bytes:
    """Return a number that is not negative in seven bits a byte, the lowest first."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
