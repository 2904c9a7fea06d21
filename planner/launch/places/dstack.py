"""dstack: a service for a server, a task for a training.

**Source**: dstack 0.22.5 `_internal/core/models/{configurations,resources}.py`; cards by gpuhunt 0.1.34
`_internal/constraints.py`, in which `H100` and `A100` are of several form factors.
"""

from collections.abc import Mapping
from typing import Any, Final

from planner.launch.places.clouds import SHARED_NAMES, card_name, node_script
from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, install_lines, yaml_text

_NAMES: Final = {
    **SHARED_NAMES,
    "h100-nvl-94gb": "H100NVL",
    "h200-sxm-141gb": "H200",
    "h200-nvl-141gb": "H200NVL",
    "rtx-a6000": "A6000",
}
_MASTER: Final = 'export MASTER_ADDR="$DSTACK_MASTER_NODE_IP"'


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = card_name(facts.gpu, _NAMES, DSTACK.title)
    document: dict[str, Any] = {
        "type": "task" if job.port is None else "service",
        "name": "plan",
        "image": Commented(job.image, job.requirement),
        "commands": [*install_lines(job), node_script(facts, job, _MASTER)],
    }
    if job.port is not None:
        document["port"] = job.port
    else:
        document["nodes"] = Commented(facts.nodes, "nodes of the plan")
    if job.configs:
        document["files"] = [config.name for config in job.configs]
    gpu = {"name": Commented(name, facts.gpu.name), "count": Commented(facts.cards_per_node, "GPUs of each node")}
    document["resources"] = {"gpu": gpu, "shm_size": "16GB"}
    return (LaunchFile(name="plan.dstack.yml", text=yaml_text(document)),)


def _read(document: Mapping[str, Any]) -> PlacedJob | None:
    if document.get("type") not in ("task", "service") or "commands" not in document:
        return None
    gpu = document["resources"]["gpu"]
    cards = int(gpu["count"]) * int(document.get("nodes", 1))
    return PlacedJob(script="\n".join(document["commands"]), cards=cards, card_name=gpu["name"])


DSTACK: Final = LaunchPlace("dstack", "dstack", "dstack 0.22.5", _write, _read, card_names=_NAMES, spans_nodes=True)
