"""Read a large JSON object member by member, so that a hostile one takes no more memory than its own text.

Python's parser would build everything at once: sixteen million bytes of `[[],[],…` become a third of a gigabyte.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

_SPACE: Final = re.compile(r"[ \t\n\r]*")
# Possessive, so that nothing is kept for trying again.
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"')
_SHOWN: Final = 60


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


class JsonScanner:
    """The text of one JSON object, read from its beginning to its end; `fail` raises the error with a reason."""

    def __init__(self, text: str, fail: Callable[[str], NoReturn]) -> None:
        self._text, self._fail, self._at = text, fail, 0

    def members(self, most: int) -> Iterator[str]:
        """Yield the key of each member, of which there may be `most`.

        Its value must be read with `value`, `text` or `members` before the next.
        """
        self._take("{")
        if self._peek() == "}":
            self._at += 1
            return
        seen: set[str] = set()
        while True:
            key = self.text()
            if key in seen:
                self._fail(f"the key {shown(key)} is there twice")
            seen.add(key)
            if len(seen) > most:
                self._fail(f"has more than {most:,} keys")
            self._take(":")
            yield key
            if self._peek() == "}":
                self._at += 1
                return
            self._take(",")

    def text(self) -> str:
        """Return the string that comes next."""
        self._peek()
        found = _STRING.match(self._text, self._at)
        if found is None:
            self._fail(f"has no whole string at character {self._at:,}")
        self._at = found.end()
        return found[0][1:-1] if "\\" not in found[0] else self._unescaped(found[0])

    def value(self, limit: int) -> object:
        """Return the value that comes next, which may have up to `limit` characters."""
        self._peek()
        try:
            found, used = _DECODER.raw_decode(self._text[self._at : self._at + limit])
        except RecursionError:
            self._fail("is nested too deep")
        except ValueError as error:
            self._fail(_reason(error))
        self._at += used
        return found

    def _unescaped(self, literal: str) -> str:
        try:
            return str(json.loads(literal))
        except ValueError as error:
            self._fail(_reason(error))

    def end(self) -> None:
        """Require that nothing but space is left."""
        if self._peek():
            self._fail(f"has more after its object, at character {self._at:,}")

    def _peek(self) -> str:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, mark: str) -> None:
        found = self._peek()
        if found != mark:
            got = shown(found) if found else "the end"
            self._fail(f"has {got} where {mark!r} should be, at character {self._at:,}")
        self._at += 1


def shown(text: str) -> str:
    """Return `text` quoted, shortened and safe to print."""
    return ascii(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!a}…"


def _reason(error: ValueError) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)
