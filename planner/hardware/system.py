"""A whole machine as it is sold: a DGX, an NVL72 rack, a TPU slice."""

from typing import Literal

from pydantic import Field

from planner.base import Spec
from planner.hardware.gpu import FigureNote, Provenance, provenance_in

SystemKind = Literal["server", "baseboard", "rack", "workstation", "cloud instance", "pod slice", "pod"]
"""What is sold or rented as one: a baseboard goes into a server, a rack may be several, a slice is part of a pod."""
Topology = Literal["switch", "full mesh", "hybrid cube mesh", "hypercube", "2D torus", "3D torus"]
PriceKind = Literal["list", "street", "used", "estimate"]


class System(Spec):
    """A machine with a fixed number of one accelerator."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    name: str
    vendor: str
    kind: SystemKind
    released: str | None = Field(default=None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")
    gpu_id: str | None = Field(default=None, description="the accelerator's id in the catalog")
    gpu_count: int | None = Field(default=None, ge=1)
    memory_label: str | None = Field(default=None, description="accelerator memory as marketed")
    memory_bytes: int | None = Field(default=None, gt=0, description="accelerator memory, all together")
    host_cpu: str | None = None
    host_memory_bytes: int | None = Field(default=None, gt=0)
    interconnect: str | None = None
    topology: Topology | None = Field(default=None, description="how the links join the accelerators")
    performance_label: str | None = Field(default=None, description="as marketed; see performance_basis")
    performance_basis: str | None = Field(default=None, description="dense, sparse, vector or tensor, and of what")
    max_power_watts: float | None = Field(default=None, gt=0, description="of the whole machine, at its input")
    price_usd: float | None = Field(default=None, gt=0)
    price_kind: PriceKind | None = None
    price_date: str | None = Field(default=None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")
    provenance: Provenance
    figure_notes: tuple[FigureNote, ...] = ()
    notes: tuple[str, ...] = ()

    def provenance_of(self, field: str) -> Provenance:
        """Return where the figure in `field` comes from."""
        return provenance_in(self.figure_notes, field, self.provenance)
