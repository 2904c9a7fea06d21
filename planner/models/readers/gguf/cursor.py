"""Walk through the head of a GGUF file: numbers and strings one after another, never beyond its end."""

import struct
from functools import partial
from typing import Final, NoReturn

from planner.errors import ModelFileError
from planner.models.readers.checkpoint.json_scan import shown
from planner.models.readers.sources import ByteSource, check_span
from planner.units import MIB

_CHUNK_BYTES: Final = 1 * MIB
_HINT: Final = "Check that it is a whole GGUF file of version 2 or 3; download it again."


class Cursor:
    """A place in a file that only moves forward; `fail` raises the error about what stands there."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = self._start = 0
        self._chunk = b""
        self.fail = partial(_fail, source.place)

    @property
    def at(self) -> int:
        """Return how many bytes were passed."""
        return self._at

    @property
    def left(self) -> int:
        """Return how many bytes follow."""
        return self._source.size - self._at

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        begin = self._at - self._start
        if begin + count > len(self._chunk):
            check_span(self._source, self._at, count)
            self._chunk = self._source.read(self._at, min(max(count, _CHUNK_BYTES), self.left))
            self._start, begin = self._at, 0
        self._at += count
        return self._chunk[begin : begin + count]

    def skip(self, count: int) -> None:
        """Pass `count` bytes without reading them."""
        check_span(self._source, self._at, count)
        self._at += count

    def numbers(self, code: str, count: int = 1) -> tuple[int | float, ...]:
        """Return the next `count` numbers of the kind that `struct` calls `code`."""
        layout = f"<{count}{code}"
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def count(self, size: int = 8) -> int:
        """Return the next unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self, limit: int, what: str) -> str:
        """Return the next string, which has its length before it."""
        length = self.count()
        if length > limit:
            self.fail(f"{what} has {length:,} bytes, more than {limit:,}")
        raw = self.take(length)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.fail(f"{what} is not text in UTF-8: {shown(raw.decode('utf-8', 'replace'))}")

    def skip_strings(self, count: int) -> None:
        """Pass `count` strings, reading only their lengths."""
        while count:
            chunk = self._ahead()
            at, last = 0, len(chunk) - 8
            while count and at <= last:
                at += 8 + int.from_bytes(chunk[at : at + 8], "little")
                count -= 1
            self.skip(at)

    def _ahead(self) -> bytes:
        """Return a large piece of what follows, at least the eight bytes of a length."""
        self.take(8)
        self._at -= 8
        return self._chunk[self._at - self._start :]


def _fail(place: str, reason: str) -> NoReturn:
    raise ModelFileError(place, reason, _HINT)
