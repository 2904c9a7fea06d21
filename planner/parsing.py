"""The door for text from anywhere: JSON, YAML, metrics and packed files, parsed within the same limits.

A reader gets the bytes of a file from `storage.read_regular`, or from the network, and their values from here. What it
is given has a bounded depth, number of values and size of numbers, so that nothing that is computed from it runs away.
What breaks a limit, or is no such text, is an `UnreadableFileError`, of which the reader makes its own error.

| limit | value | why |
|---|---|---|
| nesting | 64 | a plan has 12 |
| values | 1,000,000; a trace more, YAML and metrics less | each takes up to 200 bytes of memory |
| numbers | below 10³⁰ | the largest trainings took 10²⁶ operations; products of a few such numbers are finite |
| unpacked bytes | what the reader allows | a packed file may state a wrong size |
"""

import json
import math
import operator
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache, partial
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from planner.storage import UnreadableFileError
from planner.units import MIB

if TYPE_CHECKING:
    import gzip

    import yaml

MOST_DEPTH: Final = 64
"""Deepest nesting of lists and objects."""
MOST_VALUES: Final = 1_000_000
"""Most values in a file, counting lists, objects and what they hold."""
MAGNITUDE_LIMIT: Final = 10**30
"""A number that no quantity of this program reaches."""

_MOST_YAML_EVENTS: Final = 20_000
_MOST_YAML_DEPTH: Final = 32
_YAML_TAGS: Final = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))
_MOST_SAMPLES: Final = 200_000
_MOST_SAMPLE_LINE: Final = 16_384
_LABEL: Final = r'(?P<name>[A-Za-z_]\w*)="(?P<value>(?:[^"\\]|\\.)*)"'
_SAMPLE: Final = (
    r"(?P<name>[A-Za-z_:][\w:]*)"
    r'(?:\{(?P<labels>(?:[A-Za-z_]\w*="(?:[^"\\]|\\.)*",?\s*)*)\})?'
    r"\s+(?P<value>[-+.\w]{1,40})(?:\s+-?[\d.]{1,20})?(?:\s+#.*)?"
)
_PIECE_BYTES: Final = 1 * MIB
_SHOWN: Final = 60
_SURROGATE: Final = "[\ud800-\udfff]"
_BETWEEN: Final = re.compile(r"[\s,]*")
_CORRECT_IT: Final = "Correct the file in an editor, or take it from its source again."


class _RepeatedKeyError(ValueError):
    """Error for a key that occurs twice in one object or section."""


def parse_json(
    data: bytes | str,
    *,
    most_values: int = MOST_VALUES,
    unique_keys: bool = False,
    allow_infinity: bool = False,
    allow_surrogates: bool = False,
) -> Any:  # noqa: ANN401  # whatever the file holds
    """Return the value of a JSON text, in UTF-8 if it is in bytes.

    Args:
        data: The text; a byte order mark before it is skipped.
        most_values: How many values it may have.
        unique_keys: Whether a key that occurs twice in an object is an error; else the last one counts.
        allow_infinity: Whether numbers may be `Infinity`, which Python writes and JSON does not know.
        allow_surrogates: Whether texts may have bytes that are no UTF-8, such as names of processes, as surrogates.

    Raises:
        UnreadableFileError: If it is no JSON or breaks a limit; the reason names the line or the field.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        _check_count(text, most_values)
        value = _loaded_json(text, unique_keys=unique_keys)
    except UnicodeDecodeError as error:
        raise UnreadableFileError("is not JSON: it is not text in UTF-8", _CORRECT_IT) from error
    except json.JSONDecodeError as error:
        raise UnreadableFileError(f"is not JSON: {error.msg} in line {error.lineno:,}", _CORRECT_IT) from error
    except _RepeatedKeyError as error:
        raise UnreadableFileError(str(error), "Keep one of them.") from error
    except RecursionError as error:
        raise _depth_error() from error
    _check_values(value, allow_infinity=allow_infinity)
    if not allow_surrogates and ("\\ud" in text or "\\uD" in text or _has_surrogate(text)):
        _check_texts(value)
    return value


def flattened(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested fields by their path, such as `workload.parallel.data`."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


class MetricSample(NamedTuple):
    """A value of a metric with its labels, as in Prometheus' text format; a bucket may be infinite."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse_prometheus(data: bytes | str) -> tuple[MetricSample, ...]:
    """Return the samples of a scrape in Prometheus' text format, comments and times left out.

    Values that are not finite, as of a gauge that was never set, are left out, too.

    **Source**: prometheus.io, Exposition formats, text-based format 0.0.4; OpenMetrics ends with `# EOF`.

    Raises:
        UnreadableFileError: If a line is no sample, or there are too many; the reason names the line.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFileError("is not a scrape of metrics: it is not text in UTF-8", _CORRECT_IT) from error
    samples: list[MetricSample] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(samples) >= _MOST_SAMPLES:
            raise UnreadableFileError(f"has more than {_MOST_SAMPLES:,} samples", "Choose a smaller file.")
        found = re.fullmatch(_SAMPLE, line.strip()) if len(line) <= _MOST_SAMPLE_LINE else None
        value = _sample_value(found["value"]) if found else None
        if found is None or value is None:
            raise UnreadableFileError(f"is not a scrape of metrics: line {number:,} is no sample", _CORRECT_IT)
        if math.isnan(value) or abs(value) >= MAGNITUDE_LIMIT:
            continue
        labels = {one["name"]: _unescaped(one["value"]) for one in re.finditer(_LABEL, found["labels"] or "")}
        samples.append(MetricSample(found["name"], labels, value))
    return tuple(samples)


def _sample_value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text


def _check_texts(value: object) -> None:
    """Check that the texts in a JSON value, keys among them, can be written again."""
    for field in _fields_where(_has_surrogate, value):
        reason = f"{field}: has half of a character (a surrogate)".removeprefix(": ")
        raise UnreadableFileError(reason, "Correct that field.")


def _has_surrogate(value: object) -> bool:
    texts = value if isinstance(value, dict) else (value,)
    return any(
        isinstance(text, str) and not text.isascii() and re.search(_SURROGATE, text) is not None for text in texts
    )


def _check_count(text: str, most_values: int = MOST_VALUES) -> None:
    """Check how many values a JSON text can have, before they take memory."""
    if text.count(",") + text.count("[") + text.count("{") > most_values:
        raise UnreadableFileError(f"has more than {most_values:,} values", "Choose a smaller file.")


def _loaded_json(text: str, *, unique_keys: bool) -> object:
    pairs_hook = _dict_of_distinct_keys if unique_keys else None
    try:
        return json.loads(text, object_pairs_hook=pairs_hook)
    except (json.JSONDecodeError, _RepeatedKeyError):
        raise
    except ValueError:
        # An integer of more digits than Python reads: the check of the values names its field.
        return json.loads(text, object_pairs_hook=pairs_hook, parse_int=_integer_or_infinity)


def json_values(text: str) -> Iterator[Any]:
    """Yield the values of consecutive JSON texts, with or without commas, up to the first that `parse_json` refuses."""
    decoder, index = json.JSONDecoder(), _next_value_index(text, 0)
    if text.count("{") + text.count("[") > MOST_VALUES:
        return
    while index < len(text):
        try:
            value, index = decoder.raw_decode(text, index)
            _check_values(value)
        except (ValueError, RecursionError, UnreadableFileError):
            return
        yield value
        index = _next_value_index(text, index)


def _next_value_index(text: str, index: int) -> int:
    """Return the index at which the next of several JSON values begins."""
    match = _BETWEEN.match(text, index)
    return index if match is None else match.end()


def _integer_or_infinity(digits: str) -> float:
    return int(digits) if len(digits) <= _SHOWN else math.copysign(math.inf, -1 if digits[0] == "-" else 1)


def _dict_of_distinct_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return key-value pairs as a dictionary; a repeated key is an error."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise _RepeatedKeyError(f"the key {_shortened(repeated)} occurs twice")
    return found


def _check_values(value: object, *, allow_infinity: bool = False) -> None:
    """Check the depth of nested lists and dictionaries, and the size of the numbers in them."""
    level: list[Any] = [[value]]
    for _ in range(MOST_DEPTH + 1):
        inner = []
        for parent in level:
            for child in parent.values() if type(parent) is dict else parent:
                kind = type(child)
                if kind is dict or kind is list:
                    inner.append(child)
                # NaN fails every comparison.
                elif (kind is float or kind is int) and not (
                    -MAGNITUDE_LIMIT < child < MAGNITUDE_LIMIT or (allow_infinity and child == math.inf)
                ):
                    field = next(_fields_where(partial(operator.is_, child), value))
                    reason = f"{field}: {_shortened(child)} is no number below 10³⁰"
                    raise UnreadableFileError(reason.removeprefix(": "), "Correct that field.")
        if not inner:
            return
        level = inner
    raise _depth_error()


def _fields_where(is_wanted: Callable[[object], bool], value: object, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the field of each of nested values that is wanted, such as `cards.0.memory_bytes`."""
    if is_wanted(value):
        yield ".".join(names)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items if len(names) <= MOST_DEPTH else ():
        name = str(key)[:_SHOWN].encode("utf-8", "backslashreplace").decode()
        yield from _fields_where(is_wanted, child, (*names, name))


def _shortened(value: object) -> str:
    """Return a value for a message; an integer may have more digits than Python prints."""
    if isinstance(value, int) and abs(value) >= MAGNITUDE_LIMIT:
        return "an integer of more than 30 digits"
    if value in (math.inf, -math.inf):
        return "a number of too many digits"
    return repr(value if not isinstance(value, str) else value[:_SHOWN])


def _depth_error() -> UnreadableFileError:
    return UnreadableFileError(f"is nested too deep: more than {MOST_DEPTH} levels", _CORRECT_IT)


def parse_yaml(data: bytes) -> Any:  # noqa: ANN401  # whatever the file holds
    """Return the value of a YAML text in UTF-8, without references, tags and repeated keys.

    Raises:
        UnreadableFileError: If it is no such YAML, or breaks a limit; the reason names the line.
    """
    import yaml  # few readers need it

    try:
        text = data.decode("utf-8-sig")
        _check_yaml_events(text)
        value = yaml.load(text, Loader=_strict_loader())  # a subclass of the safe loader
    except UnicodeDecodeError as error:
        raise UnreadableFileError("is not YAML: it is not text in UTF-8", _CORRECT_IT) from error
    except _RepeatedKeyError as error:
        raise UnreadableFileError(str(error), "Keep one of them.") from error
    except (yaml.YAMLError, ValueError, OverflowError, IndexError) as error:
        raise UnreadableFileError(f"is not YAML: {_yaml_error_reason(error)}", _CORRECT_IT) from error
    _check_values(value)
    return value


@cache
def _safe_loader() -> "type[yaml.SafeLoader]":
    """Return libyaml's loader, which reads the largest file in less than a second, or PyYAML's own."""
    import yaml

    loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return loader


@cache
def _strict_loader() -> "type[yaml.SafeLoader]":
    """Return a loader that rejects repeated keys, which YAML forbids and PyYAML accepts."""

    class StrictLoader(_safe_loader()):  # type: ignore[misc]  # the class depends on what PyYAML was built with
        def construct_mapping(self, node: "yaml.MappingNode", deep: bool = False) -> dict[Hashable, object]:
            seen: set[str] = set()
            for key, _ in node.value:
                name = str(key.value)
                if name in seen:
                    line = key.start_mark.line + 1
                    raise _RepeatedKeyError(f"the key {_shortened(name)} occurs a second time in line {line:,}")
                seen.add(name)
            mapping: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
            return mapping

    return StrictLoader


def _check_yaml_events(text: str) -> None:
    """Reject YAML with references, tags or deep nesting, or too much of it, event by event before it is loaded."""
    import yaml

    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_safe_loader())):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line:,} uses the reference *{event.anchor[:_SHOWN]}; write the value out")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) not in (None, *_YAML_TAGS):
            raise ValueError(f"line {line:,} has a tag; only plain values are allowed")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_YAML_DEPTH or number > _MOST_YAML_EVENTS:
            raise ValueError(f"line {line:,} is nested too deep, or the file is too large")


def _yaml_error_reason(error: Exception) -> str:
    """Return what is wrong with a text, with the line if known."""
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"{getattr(error, 'problem', error)} in line {mark.line + 1:,}"[:200]
    return str(error).replace("\n", " ")[:200]


def unpack_zip(data: bytes, member: str, most_bytes: int) -> bytes:
    """Return the file `member` of a zip archive, in which it must be the only one.

    Raises:
        UnreadableFileError: If it is not such an archive, is truncated, or unpacks to more than `most_bytes`.
    """
    import zipfile
    import zlib

    broken = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            names = archive.namelist()
            if names != [member]:
                found = f"{len(names):,} files" if len(names) != 1 else names[0][:100]
                raise UnreadableFileError(f"contains {found} instead of {member}", _CORRECT_IT)
            with archive.open(member) as stream:
                return _unpacked(stream, most_bytes)
    except broken as error:
        raise UnreadableFileError(f"cannot be unpacked ({error})", _CORRECT_IT) from error


def unpack_gzip(data: bytes, most_bytes: int) -> bytes:
    """Return the content of a gzip file.

    Raises:
        UnreadableFileError: If it is damaged, or unpacks to more than `most_bytes`.
    """
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            return _unpacked(stream, most_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFileError(f"cannot be unpacked ({error})", _CORRECT_IT) from error


def _unpacked(stream: "IO[bytes] | gzip.GzipFile", most_bytes: int) -> bytes:
    """Return all that a stream unpacks to; the true size is limited, since the size that is stated may be wrong."""
    content = bytearray()
    while piece := stream.read(_PIECE_BYTES):
        content += piece
        if len(content) > most_bytes:
            raise UnreadableFileError(f"unpacks to more than {most_bytes:,} bytes", "Choose a smaller file.")
    return bytes(content)
