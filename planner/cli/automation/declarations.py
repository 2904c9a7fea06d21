"""All commands with their options as data, from the parsers that read them, with the values that an option takes."""

import argparse
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, Literal, NamedTuple, get_args

from planner.cli.advice import SOLVABLE
from planner.cli.commands import COMMANDS
from planner.cli.money_options import TERM_OPTIONS
from planner.cli.parser import Parser
from planner.cost.price_feeds.registry import SOURCES
from planner.cost.terms import CostTerms
from planner.hardware.query_fields import GPU_QUERY_SCHEMA
from planner.launch.places import PLACES
from planner.launch.software import LAUNCHERS
from planner.plan.recipes import load_presets
from planner.present.cost.offers import OFFER_COLUMNS
from planner.workload.choices import Task
from planner.workload.fields import all_fields

Source = Literal["cards", "models", "files", "folders"]
"""What a value is, besides the words of an option: a card or system, a model or file, any file, or a folder."""
_SOURCES: Final[Mapping[str, Source]] = {
    "GPU": "cards",
    "MODEL": "models",
    "OTHER": "models",
    "TARGET": "models",
    "FILE": "files",
    "FILE.json": "files",
    "PLAN.json": "files",
    "LOG": "files",
    "OUT": "files",
    "DIR": "folders",
}
"""What the placeholder of a value stands for."""


class DeclaredOption(NamedTuple):
    """An option, or an argument without a name: its names, its placeholder and its help.

    `takes` is the number of values, where 2 stands for any number; `words` are the values that it is known to take.
    """

    names: tuple[str, ...]
    placeholder: str
    help: str
    takes: int
    is_repeatable: bool
    words: tuple[str, ...]
    source: Source | None
    group: str


class DeclaredCommand(NamedTuple):
    """A command with its description, its options, its arguments without a name, and the text below its help."""

    name: str
    about: str
    description: str
    epilog: str
    options: tuple[DeclaredOption, ...]
    arguments: tuple[DeclaredOption, ...]


def declared_commands() -> tuple[DeclaredCommand, ...]:
    """Return all commands, in the order of the help."""
    return tuple(_declared(name) for name in COMMANDS)


def parser_of(name: str) -> Parser:
    """Return the parser of a command."""
    parser: Parser = importlib.import_module(COMMANDS[name].module).make_parser()
    return parser


def _declared(name: str) -> DeclaredCommand:
    parser = parser_of(name)
    declared = tuple(_options(name, parser))
    return DeclaredCommand(
        name,
        COMMANDS[name].about,
        parser.description or "",
        parser.epilog or "",
        tuple(option for option in declared if option.names),
        tuple(option for option in declared if not option.names),
    )


def _options(command: str, parser: Parser) -> Iterator[DeclaredOption]:
    for group in parser._action_groups:  # noqa: SLF001  # argparse has no public list of its options
        for action in group._group_actions:  # noqa: SLF001
            if action.help != argparse.SUPPRESS:
                yield _option(command, action, group.title or "")


def _option(command: str, action: argparse.Action, group: str) -> DeclaredOption:
    placeholder = action.metavar if isinstance(action.metavar, str) else ""
    takes = 0 if action.nargs == 0 else 2 if action.nargs in ("*", "+") else 1
    return DeclaredOption(
        tuple(action.option_strings),
        placeholder,
        (action.help or "").replace("%%", "%"),
        takes,
        isinstance(action, argparse._AppendAction),  # noqa: SLF001  # the only name of this kind of action
        _words(command, action) if takes else (),
        _SOURCES.get(placeholder) if takes else None,
        group,
    )


def _words(command: str, action: argparse.Action) -> tuple[str, ...]:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    name = action.option_strings[-1] if action.option_strings else ""
    return _OWN_WORDS.get((command, name)) or _shared_words().get(name, ())


_OWN_WORDS: Final = {
    ("launch", "--for"): tuple(LAUNCHERS),
    ("launch", "--on"): tuple(PLACES),
    ("gpus", "--sort"): tuple(GPU_QUERY_SCHEMA.fields),
    ("prices", "--sort"): tuple(column.key for column in OFFER_COLUMNS),
    ("prices", "--refresh"): tuple(source.key for source in SOURCES),
}
"""Values of options that mean something else in another command."""


@cache
def _shared_words() -> Mapping[str, tuple[str, ...]]:
    """Return the values of the options of a workload and of its cost, and of those of a plan."""
    words: dict[str, dict[str, None]] = {"--task": dict.fromkeys(get_args(Task)), "--solve": dict.fromkeys(SOLVABLE)}
    words["--preset"] = dict.fromkeys(preset.id for preset in load_presets())
    for field in all_fields():
        if field.option.flag:
            shown = (str(choice).lower() if isinstance(choice, bool) else str(choice) for choice in field.choices(None))
            words.setdefault(field.option.flag, {}).update(dict.fromkeys(word for word in shown if word != "None"))
    for option in TERM_OPTIONS:
        words[option.name] = dict.fromkeys(_literals(option.field))
    return {flag: tuple(found) for flag, found in words.items()}


def _literals(field: str) -> tuple[str, ...]:
    """Return the words that a field of the cost's terms accepts, none for another type."""
    *outer, name = field.split(".")
    terms = type(getattr(CostTerms(), outer[0])) if outer else CostTerms
    annotation = terms.model_fields[name].annotation
    words = (annotation, *get_args(annotation))
    return tuple(word for part in words for word in (part, *get_args(part)) if isinstance(word, str))
