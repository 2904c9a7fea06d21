"""Card names and node scripts shared by the places that rent cards."""

from collections.abc import Mapping
from typing import Final

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.launch.settings import Job, LaunchFacts
from planner.launch.text import script_lines

SHARED_NAMES: Final = {
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
"""Names that mean one card each, and the same one everywhere, by the card's catalog id."""


def card_name(gpu: Gpu, names: Mapping[str, str], title: str) -> str:
    """Return the only name of `gpu` in a place, which `title` names.

    Raises:
        SpecError: If the place has no name that means this card alone.
    """
    if gpu.id not in names:
        hint = f"Names that are unambiguous there: {', '.join(names)}."
        raise SpecError("gpu", f"{title} has no name that means {gpu.name} and no other card", hint)
    return names[gpu.id]


def node_script(facts: LaunchFacts, job: Job, address: str) -> str:
    """Return the script that runs on each node; `address` is the line that names the first of several."""
    several = (address,) if facts.nodes > 1 else ()
    lines = ("set -euo pipefail", *several, *script_lines(job.on_nodes(facts.nodes)))
    return "".join(f"{line}\n" for line in lines)
