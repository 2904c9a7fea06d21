"""Argument parser of all commands, and tables of options."""

import argparse
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn

from planner.errors import PlannerError, SpecError
from planner.numbers import COUNT, NumberKind, parse_number
from planner.parsing import parse_json
from planner.storage import UnreadableFileError
from planner.validation import close_names

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_PREFERRED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("--batch-size", "--bs"), ("--batch", "--micro-batch")),
    **dict.fromkeys(("--max-length", "--max-seq-length"), ("--seq", "--context")),
    **dict.fromkeys(("--weights", "--context", "--batch", "--task", "--method"), ("--fits MODEL",)),
}
"""Options of two meanings, and those of another command, each with what may be meant here."""
_FEW_EXAMPLES: Final = 6
"""Lines of examples in the short help, with their heading."""
_HELP_WIDTH: Final = 96


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
        self._details: list[argparse._ArgumentGroup] = []

    def add_details(self, title: str, description: str | None = None) -> "argparse._ArgumentGroup":
        """Return a new group of options that `--help` only names, and `--help-all` explains."""
        group = self.add_argument_group(title, description)
        self._details.append(group)
        return group

    def add_general_options(self) -> None:
        """Add the options of every command; call it last, so that the help starts with the command's own options."""
        group = self.add_argument_group("general")
        group.add_argument("--json", action="store_true", help="print the result as JSON")
        group.add_argument("-h", "--help", action=_BriefHelp, nargs=0, help="show this help and exit")
        if self._details:
            group.add_argument("--help-all", action="help", help="explain every option, with its default, and exit")

    def format_brief_help(self) -> str:
        """Return the help within about a screen: what is less common by name only, and the first examples."""
        if not self._details:
            return self.format_help()
        formatter = self._get_formatter()
        arguments = self._get_positional_actions()
        names = (f"[{each.metavar}]" if each.nargs in ("?", "*") else str(each.metavar) for each in arguments)
        formatter.add_usage(" ".join((self.prog, "[options]", *names)), (), ())
        formatter.add_text(self.description)
        for group in self._action_groups:
            if group not in self._details:
                formatter.start_section(group.title)
                formatter.add_arguments(group._group_actions)  # noqa: SLF001  # argparse has no public list of its options
                formatter.end_section()
        formatter.start_section("more options, which --help-all explains")
        formatter.add_text("\n".join(filter(None, map(_options_line, self._details))))
        formatter.end_section()
        paragraphs = (self.epilog or "").split("\n\n")
        examples = (text for text in paragraphs if text.startswith("examples:"))
        formatter.add_text("\n".join("\n".join(text.splitlines()[:_FEW_EXAMPLES]) for text in examples))
        formatter.add_text("\n".join(text for text in paragraphs if text.startswith("exit codes:")))
        return formatter.format_help()

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help; a full disk is an error, unlike in argparse."""
        print(self.format_help(), end="", file=file)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse `args`; if some are left over, raise an error with what was probably meant.

        Raises:
            PlannerError: If an argument is wrong or unknown.
        """
        words = list(args or ())
        parsed, unknown = super().parse_known_args(words, namespace)
        if unknown:
            message = f"unrecognized arguments: {' '.join(unknown)}"
            hint, whole = self._hint_about(unknown[0], words), self._whole_command(words)
            raise PlannerError(message, " ".join(filter(None, (hint, whole or self._help_hint))))
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Raise the error that argparse detected, as a `PlannerError`.

        Raises:
            PlannerError: Always.
        """
        raise PlannerError(message.removeprefix("argument "), self._help_hint)

    @property
    def _help_hint(self) -> str:
        return f"Try: {self.prog} --help"

    def _whole_command(self, words: list[str]) -> str:
        """Return the command that was probably meant, if this one takes a model and `words` name it."""
        if not any(action.dest == "model" for action in self._get_positional_actions()):
            return ""
        from planner.cli.command_guess import suggested_command
        from planner.cli.user_catalog import user_catalog

        whole = suggested_command(words, user_catalog(), self.prog.rpartition(" ")[2], self._option_string_actions)
        return f"In full: {whole}" if whole else ""

    def _hint_about(self, unknown: str, words: list[str]) -> str:
        """Return the options that resemble an unknown one, or how to quote a name of several words; or ""."""
        options = self._option_string_actions
        if not unknown.startswith("-"):
            before = words[: words.index(unknown)]
            if len(before) > 1 and before[-2] in options and before[-2].startswith("--"):
                return f'Quote a name of several words: {before[-2]} "{before[-1]} {unknown}".'
            first = list(takewhile(lambda word: not word.startswith("-"), words))
            return f'Quote a name of several words: "{" ".join(first)}".' if unknown in first[1:] else ""
        from planner.cli.command_guess import option_here  # slow to import and rarely needed

        name = unknown.partition("=")[0]
        meant = (*_PREFERRED.get(name, ()), option_here(name))
        known = [option for option in meant if option and option.partition(" ")[0] in options]
        close = list(dict.fromkeys(known)) or close_names(name, options, 2, 0.75)
        return f"Did you mean {' or '.join(close)}?" if close else ""


class _BriefHelp(argparse.Action):
    """Option that prints the help within about a screen, and ends the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the help and exit."""
        assert isinstance(parser, Parser)  # only a `Parser` adds this option
        print(parser.format_brief_help(), end="")
        parser.exit()


def _options_line(group: "argparse._ArgumentGroup") -> str:
    """Return the title of a group and the names of its options; empty without options."""
    shown = (action for action in group._group_actions if action.help != argparse.SUPPRESS)  # noqa: SLF001
    names = " ".join(action.option_strings[-1] for action in shown)
    title = (group.title or "").partition(";")[0]
    return (
        textwrap.fill(f"{title}: {names}", _HELP_WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        if names
        else ""
    )


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

    def value_in(self, arguments: argparse.Namespace) -> str | None:
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
        return name, parse_json(value)
    except UnreadableFileError:
        return name, value


def comma_separated(text: str | None) -> list[str] | None:
    """Return the parts of a comma-separated option, None without the option."""
    return None if text is None else [part.strip() for part in text.split(",")]
