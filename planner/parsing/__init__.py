"""The door for text from anywhere: JSON here, YAML, metrics and packed files beside it, parsed within the same limits.

A reader gets the bytes of a file from `storage.read_regular`, or from the network, and their values from here. What it
is given has a bounded depth, number of values and size of numbers, so that nothing that is computed from it runs away.
What breaks a limit, or is not such a text, is an `UnreadableFileError`, of which the reader makes its own error.

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
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from planner.storage import UnreadableFileError

MOST_DEPTH: Final = 64
"""Deepest nesting of lists and objects."""
MOST_VALUES: Final = 1_000_000
"""Most values in a file, counting lists, objects and what they hold."""
MAGNITUDE_LIMIT: Final = 10**30
"""A number that no quantity of this program reaches."""

MOST_SHOWN: Final = 60
"""Most characters of a text that a message repeats."""
CORRECT_IT: Final = "Use another copy of the file, or correct it in a text editor."
_JSON_PROBLEMS: Final = {
    "Expecting value": "a value is missing",
    "Expecting property name enclosed in double quotes": "a field name in double quotes is missing",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Extra data": "there is more text after its end",
}
"""Messages of Python's parser in plain words."""
_SURROGATE: Final = "[\ud800-\udfff]"
_BETWEEN: Final = re.compile(r"[\s,]*")


class RepeatedKeyError(ValueError):
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
        raise UnreadableFileError("is not JSON: it is not text in UTF-8", CORRECT_IT) from error
    except json.JSONDecodeError as error:
        raise UnreadableFileError(f"is not JSON: {_json_problem(error)}", CORRECT_IT) from error
    except RepeatedKeyError as error:
        raise UnreadableFileError(str(error), "Keep one of them.") from error
    except RecursionError as error:
        raise _depth_error() from error
    check_values(value, allow_infinity=allow_infinity)
    if not allow_surrogates and ("\\ud" in text or "\\uD" in text or _has_surrogate(text)):
        _check_texts(value)
    return value


def _json_problem(error: json.JSONDecodeError) -> str:
    """Return in plain words what keeps a text from being JSON: `a comma is missing in line 7, column 3`."""
    if not error.doc.strip():
        return "it is empty"
    if not error.doc[: error.pos].strip():
        return "it starts with other text"
    if error.pos >= len(error.doc.rstrip()):
        return f"it ends too early, in line {error.lineno:,}"
    problem = _JSON_PROBLEMS.get(error.msg, "there is a mistake")
    return f"{problem} in line {error.lineno:,}, column {error.colno:,}"


def flattened(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested fields by their path, such as `workload.parallel.data`."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _check_texts(value: object) -> None:
    """Check that the texts in a JSON value, keys among them, can be written again.

    Raises:
        UnreadableFileError: If one has half of a character; the reason names the field.
    """
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
    except (json.JSONDecodeError, RepeatedKeyError):
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
            check_values(value)
        except (ValueError, RecursionError, UnreadableFileError):
            return
        yield value
        index = _next_value_index(text, index)


def _next_value_index(text: str, index: int) -> int:
    """Return the index at which the next of several JSON values begins."""
    match = _BETWEEN.match(text, index)
    return index if match is None else match.end()


def _integer_or_infinity(digits: str) -> float:
    return int(digits) if len(digits) <= MOST_SHOWN else math.copysign(math.inf, -1 if digits[0] == "-" else 1)


def _dict_of_distinct_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return key-value pairs as a dictionary; a repeated key is an error."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise RepeatedKeyError(f"the key {shortened(repeated)} occurs twice")
    return found


def check_values(value: object, *, allow_infinity: bool = False) -> None:
    """Check the depth of nested lists and dictionaries, and the size of the numbers in them.

    Raises:
        UnreadableFileError: If one is beyond its limit; the reason names the field.
    """
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
                    reason = f"{field}: {shortened(child)} is not a number below 10³⁰"
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
        name = str(key)[:MOST_SHOWN].encode("utf-8", "backslashreplace").decode()
        yield from _fields_where(is_wanted, child, (*names, name))


def shortened(value: object) -> str:
    """Return a value for a message; an integer may have more digits than Python prints."""
    if isinstance(value, int) and abs(value) >= MAGNITUDE_LIMIT:
        return "an integer of more than 30 digits"
    if value in (math.inf, -math.inf):
        return "a number of too many digits"
    return repr(value if not isinstance(value, str) else value[:MOST_SHOWN])


def _depth_error() -> UnreadableFileError:
    return UnreadableFileError(f"is nested too deep: more than {MOST_DEPTH} levels", CORRECT_IT)
