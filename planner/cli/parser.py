"""Argument parser of all commands, and tables of options."""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, NoReturn

from planner.errors import PlannerError, SpecError
from planner.numbers import COUNT, NumberKind, parse_number


class Parser(argparse.ArgumentParser):
    """Argument parser that raises `PlannerError` for wrong arguments and accepts no abbreviated options."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )

    def add_general_options(self) -> None:
        """Add the options of every command; call it last, so that the help starts with the command's own options."""
        group = self.add_argument_group("general")
        group.add_argument("--json", action="store_true", help="print the result as JSON")
        group.add_argument("-h", "--help", action="help", help="show this help and exit")

    def error(self, message: str) -> NoReturn:
        """Raise the error that argparse detected, as a `PlannerError`.

        Raises:
            PlannerError: Always.
        """
        raise PlannerError(message, f"Try: {self.prog} --help")


def join_descending_sort(argv: list[str]) -> list[str]:
    """Return `argv` with `--sort -price`, which argparse would parse as two options, joined to `--sort=-price`."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] == "--sort" and word.startswith("-"):
            joined[-1] = f"--sort={word}"
        else:
            joined.append(word)
    return joined


class CommandOption(NamedTuple):
    """A command-line option and the field that the option sets; `task` is None for options of both tasks."""

    name: str
    field: str
    metavar: str
    help: str
    task: Literal["training", "inference"] | None = None

    @property
    def key(self) -> str:
        """Return the option's attribute name in the parsed arguments."""
        return self.name.removeprefix("--").replace("-", "_")

    def given(self, arguments: argparse.Namespace) -> str | None:
        """Return the option's value from the parsed `arguments` as text, None if the option is absent."""
        value: str | None = getattr(arguments, self.key)
        return value


def add_options(options: Iterable[CommandOption], groups: "Mapping[str | None, argparse._ArgumentGroup]") -> None:
    """Add each option to the argument group of its task."""
    for option in options:
        groups[option.task].add_argument(option.name, metavar=option.metavar, help=option.help)


def option_value(option: str, text: str, kind: NumberKind | None) -> object:
    """Return the number in the text of an option, or the text itself if the option takes no number.

    Raises:
        SpecError: If the text is not a number of the kind; the error names the option.
    """
    if kind is None:
        return text
    try:
        return parse_number(text, kind)
    except SpecError as error:
        raise SpecError(option, error.reason, error.hint) from error


def number_type(kind: NumberKind, least: float, most: float, word: str = "") -> Callable[[str], Any]:
    """Return a function for argparse that parses a number within bounds, or accepts `word` as it is."""

    def parse(text: str) -> float | str:
        try:
            return text if word and text == word else parse_number(text, kind, least, most)
        except SpecError as error:
            problem = error.explanation
            raise argparse.ArgumentTypeError(f"{problem.removesuffix('.')}, or {word}." if word else problem) from error

    return parse


row_limit: Final = number_type(COUNT, 1, 1_000_000)
"""Parser of a number of rows to print."""
row_limit_or_none: Final = number_type(COUNT, 0, 1_000_000)
"""Parser of a number of rows to print, of which there may be none."""


def named_value(
    option: str, text: str, example: str, kind_of: Callable[[str], NumberKind | None] = lambda _name: None
) -> tuple[str, object]:
    """Return the name and the value in the text `NAME=VALUE`: a number of the kind of the name, or else JSON or text.

    Raises:
        SpecError: If `text` has another form; the error names the option.
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise SpecError(option, f"{text!r} is not NAME=VALUE", f"Example: {option} {example}.")
    kind = kind_of(name)
    if kind is not None and value != "null":
        return name, option_value(f"{option} {name}", value, kind)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
