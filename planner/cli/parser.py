"""What every command's parser has in common: tables of options, errors as people see them, and help to learn from."""

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, NoReturn

from planner.errors import PlannerError, SpecError


class Parser(argparse.ArgumentParser):
    """A parser that raises `PlannerError` for wrong arguments, and never guesses shortened options."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )

    def add_general(self) -> None:
        """Add what every command has, last, so that its help starts with what is its own."""
        group = self.add_argument_group("general")
        group.add_argument("--json", action="store_true", help="print the result as JSON")
        group.add_argument("-h", "--help", action="help", help="print this and stop")

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found wrong.

        Raises:
            PlannerError: Always.
        """
        raise PlannerError(message, f"Try: {self.prog} --help")


def with_descending(argv: list[str]) -> list[str]:
    """Join `--sort -price`, which argparse would take for two options."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] == "--sort" and word.startswith("-"):
            joined[-1] = f"--sort={word}"
        else:
            joined.append(word)
    return joined


class Option(NamedTuple):
    """An option and the field that it sets; `task` is None for those that every task has."""

    name: str
    field: str
    metavar: str
    help: str
    task: Literal["training", "inference"] | None = None

    @property
    def key(self) -> str:
        """Return the attribute that argparse gives it."""
        return self.name.removeprefix("--").replace("-", "_")

    def given(self, arguments: argparse.Namespace) -> str | None:
        """Return its value as it was written; None where it was not."""
        value: str | None = getattr(arguments, self.key)
        return value


def add_options(options: Iterable[Option], groups: "Mapping[str | None, argparse._ArgumentGroup]") -> None:
    """Add `options` to the group of their task."""
    for option in options:
        groups[option.task].add_argument(option.name, metavar=option.metavar, help=option.help)


def named_value(option: str, text: str, example: str) -> tuple[str, object]:
    """Return the name and the value, JSON or else text, that `NAME=VALUE` writes.

    Raises:
        SpecError: If it is not written so; it names the option.
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise SpecError(option, f"{text!r} is not NAME=VALUE", f"Write it such as {option} {example}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
