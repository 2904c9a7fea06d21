"""SkyPilot: a task in the cloud.

**Source**: SkyPilot 0.14.1 `sky/utils/schemas.py`, `docs/source/reference/yaml-spec.rst`, and the names of accelerators
in `sky/catalog/data_fetchers`; `H100` and `A100-80GB` alone are of several form factors.
"""

from collections.abc import Mapping
from typing import Any, Final

from planner.launch.places.clouds import SHARED_NAMES, card_name, node_script
from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, yaml_text

_NAMES: Final = {
    **SHARED_NAMES,
    "h100-sxm5-80gb": "H100-SXM",
    "a100-sxm4-80gb": "A100-80GB-SXM",
    "rtx-a6000": "RTXA6000",
}
_MASTER: Final = 'export MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)'


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = card_name(facts.gpu, _NAMES, SKYPILOT.title)
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
        "run": node_script(facts, job, _MASTER),
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
