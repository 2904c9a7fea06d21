"""A system together with the accelerators in it: what can be asked of both."""

from dataclasses import dataclass

from planner.hardware.gpu import Gpu, Provenance, links_bytes_per_s
from planner.hardware.system import System


def together(count: int | None, each: float | None) -> float | None:
    """Return a figure of `count` equal accelerators, or None where the figure of one or their number is not known."""
    return None if count is None or each is None else count * each


@dataclass(frozen=True, slots=True)
class Machine:
    """A system and the accelerator in it, none where the catalog does not say which that is."""

    system: System
    gpu: Gpu | None

    @property
    def id(self) -> str:
        """Return the system's id."""
        return self.system.id

    @property
    def chip(self) -> str | None:
        """Return the name of its accelerator."""
        return None if self.gpu is None else self.gpu.name

    @property
    def accelerators(self) -> str | None:
        """Return `8 × H100 SXM5 80 GB`, or the name alone where the number is not known."""
        name, count = self.chip, self.system.gpu_count
        return f"{count:,} × {name}" if name and count else name

    @property
    def search_text(self) -> str:
        """Return what a word search looks at: name, id, vendor, kind and accelerator, in lower case."""
        system = self.system
        return "\n".join((system.name, system.id, system.vendor, system.kind, self.accelerators or "")).lower()

    @property
    def year(self) -> int | None:
        """Return the year of release."""
        return int(self.system.released[:4]) if self.system.released else None

    @property
    def provenance(self) -> Provenance:
        """Return where the system's record comes from."""
        return self.system.provenance

    @property
    def preliminary(self) -> bool:
        """Return whether figures of the system or of its accelerators may change."""
        return self.system.provenance.certainty == "preliminary" or (self.gpu is not None and self.gpu.preliminary)

    @property
    def architecture(self) -> str | None:
        """Return the family of its accelerators."""
        return None if self.gpu is None else self.gpu.architecture

    @property
    def memory_bytes_each(self) -> int | None:
        """Return the memory of one accelerator."""
        return None if self.gpu is None else self.gpu.memory_bytes

    @property
    def links_bytes_per_s(self) -> float | None:
        """Return what the links of each accelerator carry, both directions together, where its record tells it."""
        return None if self.gpu is None else links_bytes_per_s(self.gpu.interconnect)

    def together(self, each: float | None) -> float | None:
        """Return a figure of all its accelerators from that of one."""
        return together(self.system.gpu_count, each)
