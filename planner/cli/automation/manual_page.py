"""`gpu-planner man`: the manual page, for `man`, from the help of all commands."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Final

from planner import __version__
from planner.cli.automation.declarations import DeclaredCommand, DeclaredOption, declared_commands
from planner.cli.parser import Parser

_DESCRIPTION: Final = "Print the manual page of all commands with their options, for man."
_EPILOG: Final = """\
examples:
  gpu-planner man > ~/.local/share/man/man1/gpu-planner.1

exit codes: 0 done, 2 invalid input"""
_ABOUT: Final = """\
GPU Planner tells which GPU a model needs and whether it fits the one you have, how long a run takes and what it costs,
and shows what the GPUs of this machine do. Without a command it opens its window, with a FILE in it: a plan, a model or
a recording. Each command prints a table, or with --json the result as JSON, which gpu-planner schema describes."""
_EXIT: Final = (
    ("0", "done"),
    ("1", "it does not fit; only with --check"),
    ("2", "invalid input"),
    ("3", "the environment lacks something: a driver, a package, a network"),
    ("70", "a bug"),
    ("130", "interrupted"),
    ("141", "the output pipe was closed"),
)
_ENVIRONMENT: Final = (
    ("GPU_PLANNER_HOME", "folder for settings, fetched prices, own hardware and the log, instead of the system's own"),
    ("NO_COLOR", "no colors in a terminal"),
    ("COLUMNS", "width of tables and texts"),
)


def run(argv: list[str], today: date | None = None) -> int:
    """Run `gpu-planner man` for a page dated `today`, by default the current day, and return the exit code."""
    arguments = make_parser().parse_args(argv)
    page = manual_page(declared_commands(), today or datetime.now(UTC).date())
    print(json.dumps({"page": page}) if arguments.json else page, end="")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner man", _DESCRIPTION, _EPILOG)
    parser.add_general_options()
    return parser


def manual_page(commands: Iterable[DeclaredCommand], day: date) -> str:
    """Return the manual page in the macros of man(7), which groff and mandoc read."""
    lines = [
        f'.TH GPU-PLANNER 1 "{day.isoformat()}" "GPU Planner {_escaped(__version__)}" "User Commands"',
        ".SH NAME",
        r"gpu\-planner \- which GPU a model needs, and whether it fits the one you have",
        ".SH SYNOPSIS",
        ".B gpu\\-planner",
        "[\\fIFILE\\fR]",
        ".br",
        ".B gpu\\-planner",
        "\\fICOMMAND\\fR [\\fIoptions\\fR]",
        ".SH DESCRIPTION",
        *_paragraphs(_ABOUT),
        ".SH COMMANDS",
    ]
    for command in commands:
        lines += _command_lines(command)
    lines += [".SH EXIT STATUS", *_terms(_EXIT), ".SH ENVIRONMENT", *_terms(_ENVIRONMENT)]
    return "\n".join(lines) + "\n"


def _command_lines(command: DeclaredCommand) -> Iterator[str]:
    yield f'.SS "gpu\\-planner {command.name}"'
    yield from _paragraphs(command.description)
    for group, options in groupby((*command.arguments, *command.options), key=lambda option: option.group):
        yield ".PP"
        yield f"\\fI{_escaped(group)}\\fR"
        yield from _terms((_heading(option), option.help) for option in options)
    if command.epilog:
        # Examples are lines that must not be filled.
        yield ".PP"
        yield ".nf"
        yield from (_line(text) for text in command.epilog.splitlines())
        yield ".fi"


def _heading(option: DeclaredOption) -> str:
    value = f" {option.placeholder}{'…' if option.takes > 1 else ''}" if option.placeholder else ""
    return ", ".join(f"{name}{value}" for name in option.names) or value.strip()


def _terms(terms: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, meaning in terms:
        yield ".TP"
        yield f"\\fB{_escaped(term)}\\fR"
        yield _line(meaning)


def _paragraphs(text: str) -> Iterator[str]:
    for number, part in enumerate(re.split(r"\n{2,}", text.strip())):
        if number:
            yield ".PP"
        yield from map(_line, part.splitlines())


def _line(text: str) -> str:
    """Return a line of text, which must not be read as a macro: that is one that begins with a dot or an apostrophe."""
    escaped = _escaped(text.rstrip())
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
