"""What every command's parser has in common: errors as people see them, and help that can be learnt from."""

import argparse
from typing import NoReturn

from planner.errors import PlannerError


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
