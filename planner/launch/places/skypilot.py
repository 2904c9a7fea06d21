"""SkyPilot: a task in the cloud.

**Source**: SkyPilot 0.14.1 `sky/utils/schemas.py`, `docs/source/reference/yaml-spec.rst`, and the names of accelerators
in `sky/catalog/data_fetchers`; `H100` and `A100-80GB` alone are of several form factors.
"""

from collections.abc import Mapping
from typing import Any, Final

from planner.launch.places.card_names import card_name
from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, script_lines, yaml_text

_NAMES: Final = {
    "h100-sxm5-80gb": "H100-SXM",
    "a100-sxm4-80gb": "A100-80GB-SXM",
    "l4": "L4",
    "l40": "L40",
    "l40s": "L40S",
    "a10": "A10",
    "a10g": "A10G",
    "a40": "A40",
    "tesla-t4": "T4",
    "rtx-a6000": "RTXA6000",
    "rtx-3090": "RTX3090",
    "rtx-4090": "RTX4090",
    "rtx-5090": "RTX5090",
}
_MASTER: Final = 'export MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)'


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = card_name(facts.gpu, _NAMES, SKYPILOT.title)
    several = facts.nodes > 1
    body = job._replace(arguments=(*job.arguments, *job.rendezvous)) if several else job
    lines = ("set -euo pipefail", *((_MASTER,) if several else ()), *script_lines(body))
    resources: dict[str, Any] = {
        "accelerators": Commented(f"{name}:{facts.cards_per_node}", f"{facts.gpu.name} on each node"),
    }
    if job.port is not None:
        resources["ports"] = job.port
    document: dict[str, Any] = {
        "name": "plan",
        "num_nodes": Commented(facts.nodes, "nodes of the plan"),
        "workdir": ".",
        "resources": resources,
        "setup": Commented(f"pip install {job.requirement}" if "==" in job.requirement else "true", job.requirement),
        "run": "".join(f"{line}\n" for line in lines),
    }
    return (LaunchFile(name="sky.yaml", text=yaml_text(document)),)


def _read(document: Mapping[str, Any]) -> PlacedJob | None:
    if "run" not in document or "resources" not in document:
        return None
    name, _, count = str(document["resources"]["accelerators"]).partition(":")
    cards = int(count or 1) * int(document.get("num_nodes", 1))
    return PlacedJob(script=document["run"], cards=cards, card_name=name)


SKYPILOT: Final = LaunchPlace(
    "skypilot", "SkyPilot", "SkyPilot 0.14.1", _write, _read, card_names=_NAMES, spans_nodes=True
)
