"""A plain shell: a script that starts the program on this machine."""

from typing import Final

from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace
from planner.launch.text import script_lines

_HEAD: Final = ("#!/usr/bin/env bash", "set -euo pipefail")
_UNEXPRESSED: Final = {"gpu": "the script runs on the GPUs of its machine"}


def _write(_facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    lines = (*_HEAD, f"# Needs {job.requirement}", *script_lines(job))
    return (LaunchFile(name="run.sh", text="".join(f"{line}\n" for line in lines)),)


SHELL: Final = LaunchPlace("shell", "shell", "bash 4", _write, unexpressed=_UNEXPRESSED)
