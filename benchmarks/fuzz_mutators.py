"""Mutators of `fuzz.py`: each changes an input where its format has its structure, and sometimes byte by byte."""

import gzip
import io
import json
import random
import re
import shlex
import zipfile
import zlib
from collections.abc import Callable, Sequence

Mutator = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
"""Returns a changed copy of an input; the other inputs of the same reader lend it their parts."""

_INTEGERS = (0, 1, -1, 2, 7, 8, 127, 255, 256, 65_535, 2**20, 2**31 - 1, 2**31, 2**32, 10**9, 2**53, 2**63 - 1)
_INTEGERS = (*_INTEGERS, 2**63, 2**64 - 1, 10**30, 10**60, 10**99, 10**101, 10**400)
_FLOATS = (0.5, -0.5, 1e-9, 1e-320, 1e9, 1e30, 1e300, float("inf"), float("-inf"), float("nan"))
_TEXTS = ("", " ", "a", "\0", "\ud800", "é", "∞", "٣", "1", "1e9", "-1", "9" * 5000, "null", "true", "auto", "../../x")
_TEXTS = (*_TEXTS, "bf16", "fp8", "2026-02-30", "2026-01-01", "x" * 300, "(a+)+$", "{}", "%s%n", "rtx-4090", "llama")
_VALUES = (None, True, False, *_INTEGERS, *_FLOATS, *_TEXTS)
_PIECES = (b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"\\", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"\n")
_PIECES = (*_PIECES, b"1e999", b"-1", b"NaN", b"Infinity", b"9" * 4301, b"null", b"[" * 2000, b'{"a":' * 2000, b"\r\n")
_PIECES = (*_PIECES, b"&a [*a]", b"!!python/object:os.system", b"<<: *a", b"|2-", b"- - - ", b"? ", b"%", b"'", b"\t;")
_WORDS = re.compile(rb"[A-Za-z_][\w.-]*|-?\d[\d.,]*|[^\w\s]")


def mutate_bytes(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change a few places of any file: bits, numbers of one to eight bytes, pieces of text, cuts and copies."""
    found = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 3, 8))):
        at = int(len(found) * source.random() ** source.choice((1, 3)))  # often near the beginning
        match source.randrange(8):
            case 0 if found:
                found[at] ^= 1 << source.randrange(8)
            case 1:
                found[at : at + 1] = bytes([source.randrange(256)])
            case 2:
                width = source.choice((1, 2, 4, 8))
                found[at : at + width] = (source.choice(_INTEGERS) & (2 ** (8 * width) - 1)).to_bytes(width, "little")
            case 3:
                del found[at : at + source.choice((1, 4, 8, 64, 1000))]
            case 4:
                found[at:at] = source.choice(_PIECES)
            case 5:
                other = source.choice((found, *others)) if others else found
                begin = source.randrange(len(other) + 1)
                found[at:at] = other[begin : begin + source.choice((4, 16, 100, 1000))]
            case 6:
                found[at : at + source.choice((1, 2, 3))] = str(source.choice(_INTEGERS)).encode()
            case _:
                found[at : at + source.choice((1, 2, 3))] = source.choice(_PIECES)
    return bytes(found[: source.randrange(len(found) + 1)] if source.random() < 0.05 else found)


def mutate_text(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change lines and words of YAML, CSV, a log or a table: swapped, repeated, left out, replaced."""
    if source.random() < 0.2:
        return mutate_bytes(data, source, others)
    lines = data.split(b"\n")
    for _ in range(source.choice((1, 1, 2, 3, 6))):
        at = source.randrange(len(lines))
        match source.randrange(7):
            case 0:
                lines.insert(at, source.choice(lines))
            case 1 if len(lines) > 1:
                del lines[at]
            case 2:
                lines.insert(at, source.choice(source.choice((*others, data)).split(b"\n")))
            case 3:
                lines[at] = source.choice((b"  ", b"\t", b"- ", b"#", b"")) + lines[at]
            case _:
                lines[at] = _with_another_word(lines[at], source)
    return b"\n".join(lines)


def _with_another_word(line: bytes, source: random.Random) -> bytes:
    places = [found.span() for found in _WORDS.finditer(line)]
    begin, end = source.choice(places) if places else (0, 0)
    kind = source.randrange(5)
    if kind == 0:
        new = source.choice(_PIECES)
    elif kind == 1 and places:
        other, last = source.choice(places)
        new = line[other:last]
    else:
        new = str(source.choice(_VALUES)).encode("utf-8", "surrogatepass")
    return line[:begin] + new + line[end:]


def mutate_json(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change values, keys and whole branches of a JSON document, or its text."""
    if source.random() < 0.1:
        return mutate_bytes(data, source, others)
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, source, others)
    holder = [tree]
    for _ in range(source.choice((1, 1, 1, 2, 2, 3, 5))):
        _change_tree(holder, source, others)
    try:
        text = json.dumps(holder[0], ensure_ascii=source.random() < 0.9)
    except (ValueError, RecursionError):
        return data
    if source.random() < 0.03:
        text = re.sub(r"\d+", "9" * 4301, text, count=1)
    return text.encode("utf-8", "surrogatepass")


def _change_tree(holder: list[object], source: random.Random, others: Sequence[bytes]) -> None:  # noqa: C901  # a case each
    place, key = source.choice(_places(holder))
    old = place[key]
    match source.randrange(11):
        case 0 | 1 | 2:
            place[key] = source.choice(_VALUES)
        case 3 if isinstance(place, dict) and place:
            del place[key]
        case 4 if isinstance(place, dict):
            place[source.choice([*place, *_TEXTS[:12]])] = old
        case 5 if isinstance(old, int | float) and not isinstance(old, bool):
            place[key] = _another_number(old, source)
        case 6:
            place[key] = [old] * source.choice((0, 1, 2, 50))
        case 7:
            place[key] = {str(source.choice(_TEXTS)): old}
        case 8:
            other, name = source.choice(_places(holder))
            place[key] = _copied(other[name])
        case 9 if others:
            place[key] = _part_of(source.choice(others), source)
        case 10:
            nested: object = old
            for _ in range(source.choice((5, 40, 70, 300))):
                nested = [nested] if source.random() < 0.5 else {"a": nested}
            place[key] = nested
        case _:
            if isinstance(place, list) and len(place) > 1:
                place.insert(source.randrange(len(place)), _copied(old))


def _another_number(old: float, source: random.Random) -> object:
    try:
        return source.choice((-old, old * 2, old / 2, old * 10**9, old + 1, old - 1, old * 1e-9, str(old)))
    except OverflowError:
        return -old


def _places(holder: list[object]) -> list[tuple[list[object] | dict[str, object], int | str]]:
    """Return where the values of a tree stand: their list or object, and their index or key."""
    found: list[tuple[list[object] | dict[str, object], int | str]] = []
    rest: list[object] = [holder]
    while rest and len(found) < 5000:
        node = rest.pop()
        inside = list(enumerate(node)) if isinstance(node, list) else list(node.items())
        for key, value in inside:
            found.append((node, key))
            if isinstance(value, list | dict):
                rest.append(value)
    return found


def _copied(value: object) -> object:
    try:
        return json.loads(json.dumps(value))
    except (ValueError, RecursionError):
        return None


def _part_of(data: bytes, source: random.Random) -> object:
    try:
        place, key = source.choice(_places([json.loads(data)]))
    except (ValueError, RecursionError):
        return None
    return place[key]


def mutate_json_lines(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change one of several JSON lines as a document, or the lines as text."""
    lines = data.split(b"\n")
    if source.random() < 0.2:
        return mutate_text(data, source, others)
    at = source.randrange(len(lines))
    lines[at] = mutate_json(lines[at], source, lines)
    return b"\n".join(lines)


def mutate_gzip(mutate: Mutator) -> Mutator:
    """Return the mutator of gzip files with contents of another format, packed again or damaged."""

    def mutated(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
        if source.random() < 0.2:
            return mutate_bytes(data, source, others)
        try:
            content = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        except (OSError, EOFError, zlib.error):
            return mutate_bytes(data, source, others)
        changed = mutate(content, source, [])
        return gzip.compress(changed, 1, mtime=0) if data.startswith(b"\x1f\x8b") else changed

    return mutated


def mutate_zip(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change a table in a zip archive, the name of the table, or the bytes of the archive."""
    if source.random() < 0.3:
        return mutate_bytes(data, source, others)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            name = archive.namelist()[0]
            table = archive.read(name)
    except Exception:  # noqa: BLE001  # whatever a damaged archive makes of it
        return mutate_bytes(data, source, others)
    if source.random() < 0.05:
        name = str(source.choice(_TEXTS)).strip("\ud800\0") or "x"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", source.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        archive.writestr(name, mutate_text(table, source, []))
    return packed.getvalue()


def mutate_safetensors(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the JSON header of a safetensors file, and state its new length or a wrong one."""
    length = int.from_bytes(data[:8], "little")
    if source.random() < 0.2 or length > len(data):
        return mutate_bytes(data, source, others)
    header = mutate_json(data[8 : 8 + length], source, [])
    stated = len(header) if source.random() < 0.9 else source.choice(_INTEGERS) & (2**64 - 1)
    return stated.to_bytes(8, "little") + header + data[8 + length :]


def mutate_arguments(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the words of a command line, one after the other in a line of a shell."""
    try:
        words = shlex.split(data.decode("utf-8", "surrogateescape"))
    except ValueError:
        return mutate_bytes(data, source, others)
    pool = shlex.split(source.choice(others).decode("utf-8", "surrogateescape")) if others else words
    for _ in range(source.choice((1, 1, 2, 3))):
        at = source.randrange(len(words) + 1)
        match source.randrange(6):
            case 0 if at < len(words):
                del words[at]
            case 1:
                words.insert(at, source.choice(pool or ["x"]))
            case 2 if at < len(words):
                words[at] = str(source.choice(_VALUES))
            case 3 if at < len(words):
                changed = _with_another_word(words[at].encode("utf-8", "surrogatepass"), source)
                words[at] = changed.decode("utf-8", "surrogateescape")
            case 4 if at < len(words):
                words[at] = source.choice(pool or ["x"])
            case _:
                words.insert(at, str(source.choice(_TEXTS)))
    return shlex.join(words).encode("utf-8", "surrogatepass")
