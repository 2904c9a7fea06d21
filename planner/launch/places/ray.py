"""Ray: a script that submits the program as a job to a cluster.

**Source**: Ray 2.50 `python/ray/dashboard/modules/job/cli.py` (`ray job submit`).
"""

from typing import Final

from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace
from planner.launch.text import command_line, script_lines

_UNEXPRESSED: Final = {"gpu": "a cluster names its GPUs by resources of its own: add --entrypoint-resources"}


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    assigned = tuple(f"{setting.key}={setting.value}" for setting in job.environment)
    runner = (
        *("ray", "job", "submit", "--entrypoint-num-gpus", str(facts.cards_per_node)),
        *("--working-dir", ".", "--"),
        *(("env", *assigned) if assigned else ()),
    )
    comments = [
        f"# {command_line((word,))}: {setting.comment}" for word, setting in zip(assigned, job.environment, strict=True)
    ]
    lines = (
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        f"# Needs {job.requirement} on the cluster",
        *comments,
        *script_lines(job._replace(environment=()), runner),
    )
    return (LaunchFile(name="ray.sh", text="".join(f"{line}\n" for line in lines)),)


RAY: Final = LaunchPlace("ray", "Ray", "Ray 2.50", _write, unexpressed=_UNEXPRESSED)
