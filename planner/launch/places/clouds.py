"""Places that rent GPUs by name: SkyPilot with a task in a cloud, dstack with a service or a task.

**Source**: SkyPilot 0.14.1 `sky/utils/schemas.py`, `sky/clouds`, `docs/source/reference/yaml-spec.rst`, and the names
of accelerators in `sky/catalog/data_fetchers`; `H100` and `A100-80GB` alone are of several form factors.
`max_hourly_cost` is of each instance, against its spot price where `use_spot` is on. dstack 0.22.5
`_internal/core/models/{configurations,resources}.py`; GPUs by gpuhunt 0.1.34 `_internal/constraints.py`, in which
`H100` and `A100` are of several form factors.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, command_line, install_lines, lines_text, script_lines, yaml_text

_SHARED_NAMES: Final = {
    "l4": "L4",
    "l40": "L40",
    "l40s": "L40S",
    "a10": "A10",
    "a10g": "A10G",
    "a40": "A40",
    "tesla-t4": "T4",
    "rtx-3090": "RTX3090",
    "rtx-4090": "RTX4090",
    "rtx-5090": "RTX5090",
}
"""Names that mean one GPU each, and the same one everywhere, by the GPU's catalog id."""


def card_name(gpu: Gpu, names: Mapping[str, str], title: str) -> str:
    """Return the only name of `gpu` in a place, which `title` names.

    Raises:
        SpecError: If the place has no name that means this GPU alone.
    """
    if gpu.id not in names:
        hint = f"Names that are unambiguous there: {', '.join(names)}."
        raise SpecError("gpu", f"{title} has no name that means {gpu.name} and no other GPU", hint)
    return names[gpu.id]


def _node_script(facts: LaunchFacts, job: Job, address: str) -> str:
    """Return the script that runs on each node; `address` is the line that names the first of several."""
    several = (address,) if facts.nodes > 1 else ()
    return lines_text("set -euo pipefail", *several, *script_lines(job.on_nodes(facts.nodes)))


_SKYPILOT_NAMES: Final = {
    **_SHARED_NAMES,
    "h100-sxm5-80gb": "H100-SXM",
    "a100-sxm4-80gb": "A100-80GB-SXM",
    "rtx-a6000": "RTXA6000",
}
_SKYPILOT_MASTER: Final = 'export MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)'
_CLOUDS: Final = {
    "AWS": "aws",
    "Azure": "azure",
    "GCP": "gcp",
    "OCI": "oci",
    "Nebius": "nebius",
    "Lambda": "lambda",
    "RunPod Secure": "runpod",
    "RunPod Community": "runpod",
    "Vast.ai": "vast",
    "Paperspace": "paperspace",
    "FluidStack": "fluidstack",
    "Cudo Compute": "cudo",
    "DigitalOcean": "do",
    "Seeweb": "seeweb",
}
"""SkyPilot's clouds by the provider of an offer."""
_WITH_REGIONS: Final = ("aws", "azure", "gcp", "oci", "nebius")
_ANYWHERE: Final = "global"


def _rental(facts: LaunchFacts) -> dict[str, Any]:
    """Return cloud, region, spot and highest price of the offer that the plan names; spot alone without an offer."""
    mode, offer = facts.evaluation.plan.cost.rent.mode, facts.offer
    spot = {"use_spot": Commented(mode == "spot", "rented as the plan says")}
    if offer is None:
        return spot if mode == "spot" else {}
    cloud = _CLOUDS.get(offer.provider)
    if cloud is None or facts.gpu.id not in offer.cards:
        reason = f"SkyPilot does not rent from {offer.provider}" if cloud is None else "the offer is of other GPUs"
        raise SpecError("cost.rent.offer", reason, "Choose another offer, or none.")
    region = offer.region if cloud in _WITH_REGIONS and offer.region != _ANYWHERE else None
    rented: dict[str, Any] = {
        "infra": Commented("/".join(filter(None, (cloud, region))), f"offer of the plan: {offer.instance}"),
        **spot,
    }
    price = offer.price_usd_per_hour(mode)
    if price is not None and not mode.startswith("reserved"):
        cents = math.ceil(round(100 * price * facts.cards_per_node / offer.gpu_count, 6))
        rented["max_hourly_cost"] = Commented(cents / 100, "price of the offer, in USD an hour for each node")
    return rented


def _write_skypilot(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = card_name(facts.gpu, _SKYPILOT_NAMES, SKYPILOT.title)
    resources: dict[str, Any] = {
        "accelerators": Commented(f"{name}:{facts.cards_per_node}", f"{facts.gpu.name} on each node"),
    }
    resources |= _rental(facts)
    if job.port is not None:
        resources["ports"] = job.port
    document: dict[str, Any] = {
        "name": "plan",
        "num_nodes": Commented(facts.nodes, "nodes of the plan"),
        "workdir": ".",
        "resources": resources,
        "setup": command_line(("pip", "install", job.requirement)),
        "run": _node_script(facts, job, _SKYPILOT_MASTER),
    }
    return (LaunchFile(name="sky.yaml", text=yaml_text(document)),)


def _read_skypilot(document: Mapping[str, Any]) -> PlacedJob | None:
    if "run" not in document or "resources" not in document:
        return None
    name, _, count = str(document["resources"]["accelerators"]).partition(":")
    cards = int(count or 1) * int(document.get("num_nodes", 1))
    return PlacedJob(script=document["run"], cards=cards, card_name=name)


SKYPILOT: Final = LaunchPlace(
    "skypilot",
    "SkyPilot",
    "SkyPilot 0.14.1",
    _write_skypilot,
    _read_skypilot,
    card_names=_SKYPILOT_NAMES,
    spans_nodes=True,
)


_DSTACK_NAMES: Final = {
    **_SHARED_NAMES,
    "h100-nvl-94gb": "H100NVL",
    "h200-sxm-141gb": "H200",
    "h200-nvl-141gb": "H200NVL",
    "rtx-a6000": "A6000",
}
_DSTACK_MASTER: Final = 'export MASTER_ADDR="$DSTACK_MASTER_NODE_IP"'


def _write_dstack(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = card_name(facts.gpu, _DSTACK_NAMES, DSTACK.title)
    document: dict[str, Any] = {
        "type": "task" if job.port is None else "service",
        "name": "plan",
        "image": Commented(job.image, job.requirement),
        "commands": [*install_lines(job), _node_script(facts, job, _DSTACK_MASTER)],
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


def _read_dstack(document: Mapping[str, Any]) -> PlacedJob | None:
    if document.get("type") not in ("task", "service") or "commands" not in document:
        return None
    gpu = document["resources"]["gpu"]
    cards = int(gpu["count"]) * int(document.get("nodes", 1))
    return PlacedJob(script="\n".join(document["commands"]), cards=cards, card_name=gpu["name"])


DSTACK: Final = LaunchPlace(
    "dstack", "dstack", "dstack 0.22.5", _write_dstack, _read_dstack, card_names=_DSTACK_NAMES, spans_nodes=True
)
