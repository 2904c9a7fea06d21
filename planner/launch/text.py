"""Text of launch files: commands for a shell, YAML with comments, and JSON."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from planner.launch.settings import ConfigFile, Job, RawWord, Scalar, Setting

_TERMINATOR = "\n...\n"


class Commented(NamedTuple):
    """A value in YAML with a comment on its line."""

    value: Any
    comment: str


def quoted(word: str) -> str:
    """Return a word of a command, quoted for a shell unless the shell is to expand it.

    Commas are quoted, too: in an array of Bash they look like separators, against which shellcheck warns.
    """
    if isinstance(word, RawWord):
        return word
    return f"'{word}'" if "," in word and shlex.quote(word) == word else shlex.quote(word)


def command_line(words: Iterable[str]) -> str:
    """Return words as one line of a shell."""
    return " ".join(map(quoted, words))


def lines_text(*lines: str) -> str:
    """Return the text of a file with these lines."""
    return "".join(f"{line}\n" for line in lines)


def script_lines(job: Job, runner: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the lines of a shell script that runs `job`, behind the words of `runner`, such as `srun`.

    Options stand in an array, since a command that goes on in the next line has no room for comments.
    """
    for setting in job.environment:
        yield f"export {setting.key}={quoted(str(setting.value))}  # {setting.comment}"
    yield from job.before
    if job.arguments:
        yield "arguments=("
        for setting in job.arguments:
            yield f"  {command_line(setting.words)}  # {setting.comment}"
        yield ")"
    arguments = (RawWord('"${arguments[@]}"'),) if job.arguments else ()
    yield command_line((*runner, *job.start, *arguments, *job.rest))
    if job.keep_running:
        yield job.keep_running


def install_lines(job: Job) -> tuple[str, ...]:
    """Return the line that installs the job's program in a container of its image, none if the image has it."""
    return () if job.in_image else (command_line(("pip", "install", job.requirement)),)


def container_script(job: Job, *before: str) -> str:
    """Return the shell script that runs `job` in a container of its image, after the lines `before`."""
    return lines_text("set -euo pipefail", *before, *install_lines(job), *script_lines(job))


def job_words(job: Job) -> tuple[str, ...]:
    """Return the job's command as words, without its environment."""
    return (*job.start, *(word for setting in job.arguments for word in setting.words), *job.rest)


def server_words(job: Job) -> tuple[list[str], list[Commented | str]]:
    """Return the words that start a server in its container, and its arguments, each with a comment at its first word.

    The server listens to all addresses of the container.
    """
    words: list[Commented | str] = []
    for setting in job.arguments:
        first, *others = setting.words
        words += [Commented(first, setting.comment), *others]
    words += [*job.rest, "--host", "0.0.0.0", "--port", str(job.port)]
    return [*job.container_start, *job.start[1:]], words


def config_text(config: ConfigFile) -> str:
    """Return the text of a program's configuration file. JSON and so its file have no comments."""
    if config.form == "modelfile":
        return "".join(
            f"# {setting.comment}\n{'' if setting.key.isupper() else 'PARAMETER '}{setting.key} {setting.value}\n"
            for setting in config.settings
        )
    if config.form == "json":
        return f"{json.dumps(_nested(config.settings, comments=False), indent=2, ensure_ascii=False)}\n"
    return yaml_text(_nested(config.settings, comments=True))


def yaml_text(document: Mapping[str, Any]) -> str:
    """Return a document as YAML; a `Commented` value has its comment on its line."""
    return lines_text(*_yaml_lines(document, 0))


def _nested(settings: Iterable[Setting], *, comments: bool) -> dict[str, Any]:
    """Return settings with dotted keys as nested sections."""
    document: dict[str, Any] = {}
    for setting in settings:
        *sections, key = setting.key.split(".")
        place = document
        for section in sections:
            place = place.setdefault(section, {})
        value = list(setting.value) if isinstance(setting.value, tuple) else setting.value
        place[key] = Commented(value, setting.comment) if comments else value
    return document


def _yaml_lines(node: Mapping[str, Any] | list[Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    named = isinstance(node, Mapping)
    items: list[tuple[str, Any]] = (
        [(f"{_scalar(key)}:", item) for key, item in node.items()]
        if isinstance(node, Mapping)
        else [("-", item) for item in node]
    )
    for head, item in items:
        value, comment = item if isinstance(item, Commented) else (item, "")
        tail = f"  # {comment}" if comment else ""
        if isinstance(value, Mapping | list) and value:
            inner = list(_yaml_lines(value, depth + 1))
            if named:
                yield f"{pad}{head}{tail}"
                yield from inner
            else:
                first = inner[0].lstrip(" ")  # a key may begin with another blank
                yield f"{pad}- {first}"
                yield from inner[1:]
        elif isinstance(value, str) and "\n" in value:
            yield f"{pad}{head} |{tail}"
            yield from (f"{pad}  {line}".rstrip() for line in value.splitlines())
        else:
            yield f"{pad}{head} {_scalar(value)}{tail}"


def _scalar(value: Scalar) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("\n").removesuffix(_TERMINATOR.rstrip("\n"))
