"""Command lines that start a script: `python train.py`, `torchrun --nproc_per_node=8 train.py`, `accelerate launch`."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from planner.errors import SpecError
from planner.trace.request import Target, TraceRequest

_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*w?(\.exe)?", re.IGNORECASE)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SCRIPT_SUFFIX: Final = ".py"
_MODULE_OPTIONS: Final = ("-m", "--module")
_LAUNCHER_MODULES: Final = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "deepspeed.launcher.runner",
)
"""Packages' modules that are launchers themselves, as in `python -m torch.distributed.run train.py`."""

_RANK_OPTIONS: Final = ("--nproc_per_node", "--num_processes", "--num_gpus")
_NODE_OPTION: Final = "--nnodes"
_ENVIRONMENT_OPTIONS: Final[Mapping[str, str]] = {
    "--mixed_precision": "ACCELERATE_MIXED_PRECISION",
    "--gradient_accumulation_steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
}
"""Options that accelerate passes on to the script as environment variables.

**Source**: `prepare_simple_launcher_cmd_env` in accelerate/utils/launch.py.
"""
_RANK_LAUNCHERS: Final = ("torchrun", "torch.distributed.")
"""Launchers that number their processes even if there is only one."""
_RANK_VARIABLES: Final = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "GROUP_RANK": "0",
    "ROLE_RANK": "0",
    "ROLE_NAME": "default",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}
"""Environment variables of the first rank.

**Source**: `_start_workers` in torch/distributed/elastic/agent/server/local_elastic_agent.py.
"""
_HINT: Final = "Write the command that runs a .py file or a module: torchrun --nproc_per_node=8 train.py --lr 0.1."
_CONTINUED_LINE: Final = re.compile(r"\\\s*\n")
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*"|\\.""", re.DOTALL)
_SHELL_OPERATOR: Final = re.compile(r"[|&;<>]+")


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a command line as a shell splits them; a backslash continues it on the next line.

    A word that starts with `~` is a path in the home folder.

    Raises:
        SpecError: If a quotation mark is not closed, or the text has more than one command.
    """
    operator = _SHELL_OPERATOR.search(_QUOTED.sub("", text))
    if operator is not None:
        hint = "Give only the command that starts the script, or quote what belongs to an argument."
        raise SpecError("command", f"{operator[0]!r} is for a shell", hint)
    lexer = shlex.shlex(_CONTINUED_LINE.sub(" ", text), posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    # Backslashes separate the folders of a path on Windows.
    lexer.escape = "" if os.name == "nt" else lexer.escape
    try:
        return tuple(map(os.path.expanduser, lexer))
    except ValueError as error:
        raise SpecError(
            "command", "a quotation mark is not closed", "Close it, or quote the whole argument."
        ) from error


def join_words(words: Sequence[str]) -> str:
    """Return the words as the text of a command line, quoted for this system's shell where necessary."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def parse_command(words: Sequence[str]) -> Target:
    """Return the target that a command line runs; the words before the script are its launcher.

    Raises:
        SpecError: If the command line names no script.
    """
    for index, word in enumerate(words):
        if word in _MODULE_OPTIONS and index + 1 < len(words):
            if words[index + 1] not in _LAUNCHER_MODULES:
                return Target(
                    kind="program",
                    place=words[index + 1],
                    command_arguments=tuple(words[index + 2 :]),
                    launcher=tuple(words[:index]),
                )
        elif word.endswith(_SCRIPT_SUFFIX) and not word.startswith("-"):
            return Target(
                kind="script", place=word, command_arguments=tuple(words[index + 1 :]), launcher=tuple(words[:index])
            )
    raise SpecError("TARGET", f"{' '.join(words)!r} names no script", _HINT)


def command_words(target: Target) -> tuple[str, ...]:
    """Return the command line that runs a script, which `parse_command` reads."""
    option = ("-m",) if target.kind == "program" else ()
    return (*target.launcher, *option, target.place, *target.command_arguments)


def traced_ranks(request: TraceRequest) -> int:
    """Return how many processes the traced run has, of which one is traced."""
    return launched_ranks(request.target) if request.target.is_script else request.parallel.ranks


def launched_ranks(target: Target) -> int:
    """Return how many processes the launcher of a script starts, at least 1."""
    return _nodes(target) * _ranks_of_a_node(target)


def _nodes(target: Target) -> int:
    return _number(dict(_options(target.launcher)).get(_NODE_OPTION, "1"))


def _ranks_of_a_node(target: Target) -> int:
    options = dict(_options(target.launcher))
    return next((_number(options[name]) for name in _RANK_OPTIONS if name in options), 1)


def launcher_environment(target: Target) -> dict[str, str]:
    """Return the environment variables that the launcher sets for the first rank of its script."""
    options = dict(_options(target.launcher))
    assigned = dict(word.split("=", 1) for word in target.launcher if _ASSIGNMENT.fullmatch(word))
    passed_on = {variable: options[name] for name, variable in _ENVIRONMENT_OPTIONS.items() if options.get(name)}
    nodes, ranks_of_a_node = _nodes(target), _ranks_of_a_node(target)
    sets_ranks = nodes * ranks_of_a_node > 1 or any(word.startswith(_RANK_LAUNCHERS) for word in target.launcher)
    if not sets_ranks:
        return assigned | passed_on
    all_ranks = dict.fromkeys(("WORLD_SIZE", "ROLE_WORLD_SIZE"), str(nodes * ranks_of_a_node))
    sizes = {"LOCAL_WORLD_SIZE": str(ranks_of_a_node), "GROUP_WORLD_SIZE": str(nodes)}
    return assigned | passed_on | _RANK_VARIABLES | all_ranks | sizes


def launcher_notes(target: Target) -> list[str]:
    """Return a note for each thing that the launcher would do and the trace does differently."""
    ranks = launched_ranks(target)
    notes = [f"One of {ranks:,} ranks is traced; the others are not started."] if ranks > 1 else []
    known = (*_RANK_OPTIONS, _NODE_OPTION, *_ENVIRONMENT_OPTIONS)
    launcher = next((PurePath(word).name for word in target.launcher if not _ASSIGNMENT.fullmatch(word)), "")
    skipped = [f"{name}={value}" if value else name for name, value in _options(target.launcher) if name not in known]
    if skipped and not _PYTHON.fullmatch(launcher):
        notes.append(f"Options of {launcher} without effect on the trace: {' '.join(skipped)}.")
    return notes


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each option among a launcher's words, names with underscores, the value may be empty."""
    for word, following in zip(words, (*words[1:], "-"), strict=False):
        if word.startswith("-") and word not in _MODULE_OPTIONS:
            name, equals, value = word.partition("=")
            name = "--" + name[2:].replace("-", "_") if name.startswith("--") else name
            yield name, value if equals else "" if following.startswith("-") else following


def _number(text: str) -> int:
    """Return the number in an option's value, 1 for words such as `gpu` or `auto`; of `1:4` nodes the most."""
    last = text.rpartition(":")[2]
    return max(int(last), 1) if last.isdecimal() else 1
