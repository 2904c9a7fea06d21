"""SkyPilot: a task in the cloud.

**Source**: SkyPilot 0.14.1 `sky/utils/schemas.py`, `sky/clouds`, `docs/source/reference/yaml-spec.rst`, and the names
of accelerators in `sky/catalog/data_fetchers`; `H100` and `A100-80GB` alone are of several form factors.
`max_hourly_cost` is of each instance, against its spot price where `use_spot` is on.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from planner.errors import SpecError
from planner.launch.places.clouds import SHARED_NAMES, card_name, node_script
from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, command_line, yaml_text

_NAMES: Final = {
    **SHARED_NAMES,
    "h100-sxm5-80gb": "H100-SXM",
    "a100-sxm4-80gb": "A100-80GB-SXM",
    "rtx-a6000": "RTXA6000",
}
_MASTER: Final = 'export MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)'
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
    """Return cloud, region, spot and highest price of the offer that the plan names; spot alone without an offer.

    Raises:
        SpecError: If SkyPilot does not rent from the provider of the offer, or the offer is of other cards.
    """
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


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = card_name(facts.gpu, _NAMES, SKYPILOT.title)
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
