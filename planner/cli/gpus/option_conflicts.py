"""Which options of `gpu-planner gpus` go together: one that would do nothing is refused, never ignored."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Final

from planner.errors import SpecError

_LIST: Final = frozenset(("words", "where", "fits", "limit", "sort", "json", "csv"))
_TAKEN: Final[Mapping[str, frozenset[str]]] = {
    "compare": frozenset(("fits", "json", "csv")),
    "show": frozenset(("json",)),
    "systems": frozenset(("words", "where", "fits", "limit", "sort", "json", "csv")),
    "here": frozenset(("json",)),
    "build": frozenset(("host_watts", "supply", "circuit", "power_limit", "json")),
    "add": frozenset(),
    "change": frozenset(("paid", "power_limit", "note")),
    "remove": frozenset(),
    "own": frozenset(("json",)),
    "export": frozenset(),
}
"""What is asked for instead of a list, with the options that each of them takes."""
_NAMES: Final = ("where", "fits", "sort", "compare", "show", "build", "add", "change", "remove", "export")
_SEE_HELP: Final = "`gpu-planner gpus --help` says what each option is for."


def check_together(arguments: argparse.Namespace) -> None:
    """Look whether every option that is given has something to do.

    Raises:
        SpecError: If one is empty, belongs to something that is not asked for, or would stand in another's way.
    """
    given = [name for name, value in vars(arguments).items() if value not in (None, False, [])]
    for name in _NAMES:
        if name in given and _is_empty(getattr(arguments, name)):
            raise SpecError(_option(name), "is empty", f"Leave it out, or say what is meant. {_SEE_HELP}")
    asked = [name for name in given if name in _TAKEN]
    if len(asked) > 1:
        raise SpecError(_option(asked[0]), f"does not go together with {_option(asked[1])}", "Ask one after the other.")
    taken = _TAKEN[asked[0]] if asked else _LIST
    for name in given:
        if name not in taken and name not in asked:
            raise _left_over(name, asked)
    if arguments.json and arguments.csv:
        raise SpecError("--json", "does not go together with --csv", "Choose one of them.")


def _is_empty(value: object) -> bool:
    """Return whether an option, or one of its values, is a text without any word."""
    values: Iterable[object] = value if isinstance(value, list) else (value,)
    return any(isinstance(each, str) and not each.strip() for each in values)


def _left_over(name: str, asked: list[str]) -> SpecError:
    homes = [_option(home) for home, taken in _TAKEN.items() if name in taken]
    if name in _LIST:
        homes.insert(0, "a list")
    where = f"is for {' and '.join((', '.join(homes[:-1]), homes[-1]) if len(homes) > 1 else homes)}"
    said = f", not for {_option(asked[0])}" if asked else ""
    return SpecError(_option(name), f"{where}{said}", _SEE_HELP)


def _option(name: str) -> str:
    return "WORDS" if name == "words" else f"--{name.replace('_', '-')}"
