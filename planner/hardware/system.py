"""Complete systems as they are sold or rented: servers, racks, workstations, cloud instances and TPU slices."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from pydantic import Field

from planner.base import Spec, record
from planner.hardware.gpu import DayOrLess, FigureNote, Gpu, Provenance, find_provenance, parse_link_bytes_per_s

SystemKind = Literal["server", "baseboard", "rack", "workstation", "cloud instance", "pod slice", "pod"]
"""Kinds of systems: a baseboard is part of a server, a rack holds several servers, a slice is part of a pod."""
Topology = Literal["switch", "full mesh", "hybrid cube mesh", "hypercube", "2D torus", "3D torus"]
PriceKind = Literal["list", "street", "used", "estimate"]
_MODULES_ON_A_BOARD: Final[Mapping[str, int]] = {"SXM": 8, "OAM": 8, "APU socket": 4, "Superchip module": 1}
"""Modules on one board, where the catalog has no system with them: NVIDIA HGX, OCP's universal baseboard for OAM, and
servers with MI300A and GH200."""
_SOLD_KINDS: Final[tuple[SystemKind, ...]] = ("server", "baseboard", "rack", "workstation")


class System(Spec):
    """A machine with a fixed number of one accelerator."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    name: str
    vendor: str
    kind: SystemKind
    announced: DayOrLess | None = Field(default=None, description="when it was presented, if long before")
    released: DayOrLess | None = Field(default=None, description="when it was first sold or rented")
    gpu_id: str | None = Field(default=None, description="catalog id of the accelerator")
    gpu_count: int | None = Field(default=None, ge=1)
    memory_label: str | None = Field(default=None, description="total accelerator memory as marketed")
    memory_bytes: int | None = Field(default=None, gt=0, description="total accelerator memory in bytes")
    host_cpu: str | None = None
    host_memory_bytes: int | None = Field(default=None, gt=0)
    interconnect: str | None = None
    topology: Topology | None = Field(default=None, description="topology of the links between accelerators")
    performance_label: str | None = Field(default=None, description="performance as marketed; see performance_basis")
    performance_basis: str | None = Field(
        default=None,
        description="meaning of performance_label: dense or sparse, vector or tensor, and the number format",
    )
    max_power_watts: float | None = Field(default=None, gt=0, description="maximum input power of the whole machine")
    price_usd: float | None = Field(default=None, gt=0)
    price_kind: PriceKind | None = None
    price_date: str | None = Field(default=None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")
    provenance: Provenance
    figure_notes: tuple[FigureNote, ...] = ()
    notes: tuple[str, ...] = ()

    def provenance_of(self, field: str) -> Provenance:
        """Return the provenance of the figure in `field`."""
        return find_provenance(self.figure_notes, field, self.provenance)


def modules_on_a_board(gpu: Gpu) -> int | None:
    """Return how many modules of this form share a board, which is sold only in a system; None for cards in slots."""
    form = gpu.form_factor or ""
    return next((count for name, count in _MODULES_ON_A_BOARD.items() if form.startswith(name)), None)


def cards_sold_together(gpu: Gpu, systems: Iterable[System]) -> int | None:
    """Return the smallest number of these modules that a system or board is sold with; None for cards in slots."""
    default = modules_on_a_board(gpu)
    if default is None:
        return None
    sold = (one.gpu_count for one in systems if one.gpu_id == gpu.id and one.kind in _SOLD_KINDS)
    return min(filter(None, sold), default=default)


def total_of_equal(count: int | None, each: float | None) -> float | None:
    """Return `count` times the figure `each` of one accelerator, or None if one of the two is unknown."""
    return None if count is None or each is None else count * each


@record
class EquippedSystem:
    """A system with its accelerator's record, which is None if the catalog does not name the accelerator."""

    system: System
    gpu: Gpu | None

    @property
    def id(self) -> str:
        """Return the system's id."""
        return self.system.id

    @property
    def chip(self) -> str | None:
        """Return the name of the system's accelerator, or None if unknown."""
        return None if self.gpu is None else self.gpu.name

    @property
    def accelerators(self) -> str | None:
        """Return number and name of the accelerators, `8 × H100 SXM5 80 GB`, or the name if the number is unknown."""
        name, count = self.chip, self.system.gpu_count
        return f"{count:,} × {name}" if name and count else name

    @property
    def search_text(self) -> str:
        """Return the text that a search matches, in lower case: name, id, vendor, kind and accelerator."""
        system = self.system
        return "\n".join((system.name, system.id, system.vendor, system.kind, self.accelerators or "")).lower()

    @property
    def kind_words(self) -> frozenset[str]:
        """Return the words for the system's kind that a search finds: the links between its accelerators."""
        links = (self.system.interconnect or "").lower()
        return frozenset(word for word in ("nvlink", "nvswitch", "infiniband") if word in links)

    @property
    def year(self) -> int | None:
        """Return the system's year of release, of the announcement where no sale is known, or None if unknown."""
        known = self.system.released or self.system.announced
        return int(known[:4]) if known else None

    @property
    def provenance(self) -> Provenance:
        """Return the provenance of the system's record."""
        return self.system.provenance

    @property
    def preliminary(self) -> bool:
        """Return whether figures of the system or its accelerators may still change."""
        return self.system.provenance.certainty == "preliminary" or (self.gpu is not None and self.gpu.preliminary)

    @property
    def architecture(self) -> str | None:
        """Return the architecture of the system's accelerators, or None if unknown."""
        return None if self.gpu is None else self.gpu.architecture

    @property
    def memory_bytes_each(self) -> int | None:
        """Return the physical memory of one accelerator in bytes, or None if unknown."""
        return None if self.gpu is None else self.gpu.memory_bytes

    @property
    def links_bytes_per_s(self) -> float | None:
        """Return the link bandwidth of each accelerator in bytes per second, both directions together, or None."""
        return None if self.gpu is None else parse_link_bytes_per_s(self.gpu.interconnect)

    def total_of_all(self, each: float | None) -> float | None:
        """Return the system's total of a figure that is `each` for one accelerator, or None if unknown."""
        return total_of_equal(self.system.gpu_count, each)
