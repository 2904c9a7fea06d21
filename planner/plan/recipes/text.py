"""YAML and JSON of strangers: text, no references, no key twice, not deep, and nothing but plain values."""

import json
from collections.abc import Hashable, Mapping
from typing import Final

import yaml

from planner.errors import RecipeError

MAX_BYTES: Final = 256 * 2**10
_MOST_NODES: Final = 20_000
_DEEPEST: Final = 32
_HINT: Final = "Open the file that the training program itself takes."
_PLAIN_TAGS: Final = tuple(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")
)
# libyaml reads a file of the largest size in less than a second; the same in Python is there where it is not.
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _DuplicateKeyError(ValueError):
    """A key that stands twice in one section."""


class _CarefulLoader(_Loader):  # type: ignore[misc,valid-type]  # the class depends on what PyYAML was built with
    """Refuses a key that stands twice, which YAML forbids and PyYAML does not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """Return the section as a mapping."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise _DuplicateKeyError(f"the key {name[:60]!r} stands twice in line {key.start_mark.line + 1:,}")
            seen.add(name)
        found: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
        return found


def parse_recipe(data: bytes, source: str, *, is_json: bool) -> Mapping[str, object]:
    """Return the keys of a training file in YAML or JSON; `source` names it in errors.

    Raises:
        RecipeError: If it is no text in UTF-8, larger than 256 KiB, no YAML or JSON, holds a key twice, refers to its
            own parts, is nested too deep, or is no section of keys.
    """
    if len(data) > MAX_BYTES:
        reason = f"is {len(data):,} bytes; a training file has at most {MAX_BYTES:,}"
        raise RecipeError(source, reason, _HINT)
    kind = "JSON" if is_json else "YAML"
    try:
        text = data.decode("utf-8-sig")
        found = _from_json(text) if is_json else _from_yaml(text)
    except UnicodeDecodeError as error:
        raise RecipeError(source, "is not text in UTF-8", _HINT) from error
    except RecursionError as error:
        raise RecipeError(source, "is nested too deep", _HINT) from error
    except _DuplicateKeyError as error:
        raise RecipeError(source, str(error), "Keep one of them.") from error
    except (yaml.YAMLError, ValueError, OverflowError, IndexError) as error:
        raise RecipeError(source, f"is not {kind}: {_reason(error)}", _HINT) from error
    if not isinstance(found, dict):
        raise RecipeError(source, f"holds no keys, but {_called(found)}", _HINT)
    return {str(key): value for key, value in found.items()}


def _from_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(f"the key {key[:60]!r} stands twice")
        found[key] = value
    return found


def _from_yaml(text: str) -> object:
    _check_events(text)
    return yaml.load(text, Loader=_CarefulLoader)  # a subclass of the safe loader


def _check_events(text: str) -> None:
    """Refuse what would grow or recurse when it is loaded, by its parts, which are read one by one.

    Raises:
        ValueError: If there is such a thing.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line:,} refers to another part by *{event.anchor[:60]}; write it out")
        if isinstance(event, yaml.NodeEvent) and _is_strange(event):
            raise ValueError(f"line {line:,} has a tag, and values are plain")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST or number > _MOST_NODES:
            raise ValueError(f"line {line:,} is nested too deep, or there is too much of it")


def _is_strange(event: yaml.NodeEvent) -> bool:
    tag = getattr(event, "tag", None)
    return tag is not None and tag not in _PLAIN_TAGS


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        where = "" if mark is None else f" in line {mark.line + 1:,}"
        return f"{error.problem}{where}"[:200]
    return str(error).replace("\n", " ")[:200]


def _called(found: object) -> str:
    """Return what a file holds instead of keys, in words that do not need Python."""
    return "nothing" if found is None else "a list" if isinstance(found, list) else "one value"
