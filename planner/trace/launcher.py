"""Command lines that start a script: `python train.py`, `torchrun --nproc_per_node=8 train.py`, `accelerate launch`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from planner.errors import SpecError
from planner.trace.request import Target

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
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}
"""Environment variables of the first rank.

**Source**: `_start_workers` in torch/distributed/elastic/agent/server/local_elastic_agent.py.
"""
_HINT: Final = "Write the command as it is run: -- torchrun --nproc_per_node=8 train.py --lr 0.1"


def parse_command(words: Sequence[str]) -> Target:
    """Return the target that a command line runs; what is before the script is kept as its launcher.

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


def launched_ranks(target: Target) -> int:
    """Return how many processes the launcher of a script starts, at least 1."""
    options = dict(_options(target.launcher))
    nodes = _number(options.get(_NODE_OPTION, "1"))
    return nodes * next((_number(options[name]) for name in _RANK_OPTIONS if name in options), 1)


def launcher_environment(target: Target) -> dict[str, str]:
    """Return the environment variables that the launcher sets for the first rank of its script."""
    options = dict(_options(target.launcher))
    assigned = dict(word.split("=", 1) for word in target.launcher if _ASSIGNMENT.fullmatch(word))
    passed_on = {variable: options[name] for name, variable in _ENVIRONMENT_OPTIONS.items() if options.get(name)}
    ranks = launched_ranks(target)
    sets_ranks = ranks > 1 or any(word.startswith(_RANK_LAUNCHERS) for word in target.launcher)
    return assigned | passed_on | (_RANK_VARIABLES | {"WORLD_SIZE": str(ranks)} if sets_ranks else {})


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
