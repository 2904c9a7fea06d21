"""Places that run a script: a plain shell, Slurm and Ray.

**Source**: Slurm 25.05 `sbatch` manual; accelerate `examples/slurm/submit_multinode_fsdp.sh`; Ray 2.50
`python/ray/dashboard/modules/job/cli.py` (`ray job submit`).
"""

from typing import Final

from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace
from planner.launch.text import command_line, lines_text, script_lines

_HEAD: Final = ("#!/usr/bin/env bash", "set -euo pipefail")
_MASTER: Final = 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)'


def _write_shell(_facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    return (LaunchFile(name="run.sh", text=lines_text(*_HEAD, f"# Needs {job.requirement}", *script_lines(job))),)


def _write_slurm(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    several = facts.nodes > 1
    runner = ("srun", "--kill-on-bad-exit=1") if several else ("srun",)
    text = lines_text(
        "#!/bin/bash",
        "#SBATCH --job-name=plan",
        f"#SBATCH --nodes={facts.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gres=gpu:{facts.cards_per_node}",
        "#SBATCH --mem=0",
        "set -euo pipefail",
        f"# {facts.nodes} × {facts.cards_per_node} {facts.gpu.name}; one launcher on each node starts its processes",
        f"# Needs {job.requirement}",
        *((f"{_MASTER}\nexport MASTER_ADDR",) if several else ()),
        *script_lines(job.on_nodes(facts.nodes), runner),
    )
    return (LaunchFile(name="job.sbatch", text=text),)


def _write_ray(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    """Return a script that submits the program as a job to a cluster."""
    assigned = tuple(f"{setting.key}={setting.value}" for setting in job.environment)
    runner = (
        *("ray", "job", "submit", "--entrypoint-num-gpus", str(facts.cards_per_node)),
        *("--working-dir", ".", "--"),
        *(("env", *assigned) if assigned else ()),
    )
    comments = [
        f"# {command_line((word,))}: {setting.comment}" for word, setting in zip(assigned, job.environment, strict=True)
    ]
    needs = f"# Needs {job.requirement} on the cluster"
    text = lines_text(*_HEAD, needs, *comments, *script_lines(job._replace(environment=()), runner))
    return (LaunchFile(name="ray.sh", text=text),)


SHELL: Final = LaunchPlace(
    "shell", "shell", "bash 4", _write_shell, unexpressed={"gpu": "the script runs on the GPUs of its machine"}
)
SLURM: Final = LaunchPlace(
    "slurm",
    "Slurm",
    "Slurm 25.05",
    _write_slurm,
    unexpressed={"gpu": "each cluster names its GPUs itself (`sinfo -o %G`): write its name, as in --gres=gpu:h100:8"},
    spans_nodes=True,
)
RAY: Final = LaunchPlace(
    "ray",
    "Ray",
    "Ray 2.50",
    _write_ray,
    unexpressed={"gpu": "a cluster names its GPUs by resources of its own: add --entrypoint-resources"},
)
