"""Reader of YAML without references, tags and repeated keys, within the limits of all texts."""

from collections.abc import Hashable
from typing import Any, Final

import yaml

from planner.parsing import CORRECT_IT, MOST_SHOWN, RepeatedKeyError, check_values, shortened
from planner.storage import UnreadableFileError

_MOST_YAML_EVENTS: Final = 20_000
_MOST_YAML_DEPTH: Final = 32
_YAML_TAGS: Final = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))
_SafeLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader, which reads the largest file in less than a second, or PyYAML's own."""


class _StrictLoader(_SafeLoader):  # type: ignore[misc]  # the class depends on what PyYAML was built with
    """Loader that rejects repeated keys, which YAML forbids and PyYAML accepts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                line = key.start_mark.line + 1
                raise RepeatedKeyError(f"the key {shortened(name)} occurs a second time in line {line:,}")
            seen.add(name)
        mapping: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
        return mapping


def parse_yaml(data: bytes) -> Any:  # noqa: ANN401  # whatever the file holds
    """Return the value of a YAML text in UTF-8, without references, tags and repeated keys.

    Raises:
        UnreadableFileError: If it is not such YAML, or breaks a limit; the reason names the line.
    """
    try:
        text = data.decode("utf-8-sig")
        _check_yaml_events(text)
        value = yaml.load(text, Loader=_StrictLoader)  # a subclass of the safe loader
    except UnicodeDecodeError as error:
        raise UnreadableFileError("is not YAML: it is not text in UTF-8", CORRECT_IT) from error
    except RepeatedKeyError as error:
        raise UnreadableFileError(str(error), "Keep one of them.") from error
    except (yaml.YAMLError, ValueError, OverflowError, IndexError) as error:
        raise UnreadableFileError(f"is not YAML: {_yaml_error_reason(error)}", CORRECT_IT) from error
    check_values(value)
    return value


def _check_yaml_events(text: str) -> None:
    """Reject YAML with references, tags or deep nesting, or too much of it, event by event before it is loaded.

    Raises:
        ValueError: If the text contains one of them.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_SafeLoader)):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line:,} uses the reference *{event.anchor[:MOST_SHOWN]}; write the value out")
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
