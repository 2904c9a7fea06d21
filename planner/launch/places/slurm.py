"""Slurm: a batch script with the resources of the plan.

**Source**: Slurm 25.05 `sbatch` manual; accelerate `examples/slurm/submit_multinode_fsdp.sh`.
"""

from typing import Final

from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace
from planner.launch.text import script_lines

_MASTER: Final = 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)'
_UNEXPRESSED: Final = {
    "gpu": "each cluster names its GPUs itself (`sinfo -o %G`): write its name, as in --gres=gpu:h100:8",
}


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    several = facts.nodes > 1
    runner = ("srun", "--kill-on-bad-exit=1") if several else ("srun",)
    lines = (
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
    return (LaunchFile(name="job.sbatch", text="".join(f"{line}\n" for line in lines)),)


SLURM: Final = LaunchPlace("slurm", "Slurm", "Slurm 25.05", _write, unexpressed=_UNEXPRESSED, spans_nodes=True)
