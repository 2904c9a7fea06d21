"""Obstacles to buying cards, and to placing them where they are to stand."""

from collections.abc import Iterable, Iterator
from typing import Final

from planner.cost.catalog import CostCatalog
from planner.cost.figure import Figure
from planner.cost.terms import PlaceKind
from planner.hardware.gpu import Gpu
from planner.hardware.system import System, SystemKind

_NOT_SOLD: Final = "not for sale"
_WHOLE_SERVERS: Final = "only sold in whole servers"
_NOT_AT_A_DESK: Final = "cannot be placed at a desk"
_ONE_COMPUTER: Final = "a whole computer, which cannot be combined with others"
_NO_LICENCE: Final = "its driver is not licensed for data centers"
SEVERAL_MACHINES: Final = "a desk has room for one machine"
OVER_CIRCUIT: Final = "over the power of one circuit"

_MODULE_COUNTS: Final = {"SXM": 8, "OAM": 8, "APU socket": 4, "Superchip module": 1}
"""Modules on one board, where the catalog has no system with them: NVIDIA HGX, OCP's universal baseboard for OAM, and
servers with MI300A and GH200."""
_SOLD_KINDS: Final[tuple[SystemKind, ...]] = ("server", "baseboard", "rack", "workstation")
_CIRCUITS: Final = {"US": "120-v-15-a", "CA": "120-v-15-a", "MX": "120-v-15-a", "JP": "100-v-15-a", "GB": "230-v-13-a"}
_USUAL_CIRCUIT: Final = "230-v-16-a"


def ownership_obstacle(gpu: Gpu, cards: int, place: PlaceKind, systems: Iterable[System]) -> str | None:
    """Return why `cards` of this kind cannot be bought or placed at `place`, or None if they can.

    **Source** GeForce driver licence, 2.1.3: no data center deployment
    """
    return next(_obstacles(gpu, cards, place, systems), None)


def _obstacles(gpu: Gpu, cards: int, place: PlaceKind, systems: Iterable[System]) -> Iterator[str]:
    form = gpu.form_factor or ""
    if form == "Cloud only" or gpu.preliminary:
        yield _NOT_SOLD
    if gpu.is_whole_computer and cards > 1:
        yield _ONE_COMPUTER
    if place == "desk" and gpu.segment == "datacenter":  # modules, and boards that are cooled by a server's fans
        yield _NOT_AT_A_DESK
    together = _cards_sold_together(gpu, systems)
    if cards % together:
        yield _WHOLE_SERVERS
    if place in ("colocation", "data-centre") and gpu.vendor == "NVIDIA" and gpu.segment == "consumer":
        yield _NO_LICENCE


def _cards_sold_together(gpu: Gpu, systems: Iterable[System]) -> int:
    """Return the number of cards on one board or in one system: 1 for cards in slots."""
    default = next((count for form, count in _MODULE_COUNTS.items() if (gpu.form_factor or "").startswith(form)), None)
    if default is None:
        return 1
    sold = (one.gpu_count for one in systems if one.gpu_id == gpu.id and one.kind in _SOLD_KINDS)
    return min(filter(None, sold), default=default)


def circuit_watts(region: str, catalog: CostCatalog) -> Figure:
    """Return the power of one circuit in a home or an office of `region`, in watts."""
    return catalog.constant(f"circuit-{_CIRCUITS.get(region.partition('-')[0], _USUAL_CIRCUIT)}")
