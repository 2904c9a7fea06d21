"""One accelerator: what it is, what it can do, and how sure each figure is."""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec

Vendor = Literal["NVIDIA", "AMD", "Intel", "Apple", "Google", "AWS"]
Segment = Literal["consumer", "workstation", "datacenter", "edge", "soc", "tpu"]
Basis = Literal["published", "derived", "measured"]
Certainty = Literal["confirmed", "single-source", "conflicting", "preliminary"]


class Provenance(Spec):
    """Where one figure comes from."""

    basis: Basis = Field(description="published by a document, derived by a formula, or measured on a card")
    certainty: Certainty = Field(description="confirmed: two documents agree")
    source: str = Field(min_length=3)
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="the day the figure was read")
    formula: str | None = Field(default=None, description="for derived figures")

    @model_validator(mode="after")
    def _derived_has_formula(self) -> Self:
        if self.basis == "derived" and not self.formula:
            raise ValueError("a derived figure needs its formula")
        return self


class FigureNote(Spec):
    """The provenance of one field where it differs from that of the whole record."""

    field: str
    provenance: Provenance


def provenance_in(notes: Iterable[FigureNote], field: str, record: Provenance) -> Provenance:
    """Return where the figure in `field` comes from by `notes`, or else what holds for the whole `record`."""
    return next((note.provenance for note in notes if note.field == field), record)


class Rate(Spec):
    """A dense arithmetic rate; sparse rates are never stored."""

    dtype: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"]
    ops_per_s: float = Field(gt=0, description="FLOP/s, or integer operations per second for int8")
    unit: Literal["vector", "tensor"] = Field(description="vector: shader cores; tensor: matrix units")
    accumulate: Literal["fp16", "fp32", "int32"] | None = Field(
        default=None, description="the accumulator's format; none where the source does not say"
    )
    provenance: Provenance | None = Field(default=None, description="where it differs from the record's")


class Gpu(Spec):
    """An accelerator card, module or chip as it is sold.

    Memory and rates are totals of the card; `device_count` says into how many devices frameworks see it split
    (2 for a Tesla K80, 4 for an A16). Unknown figures are `None`; `notes` says why where the reason is known.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    name: str
    vendor: Vendor
    segment: Segment
    architecture: str
    aliases: tuple[str, ...] = ()
    released: str | None = Field(default=None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")

    memory_label: str = Field(description="as marketed, such as 24 GB; not a number to compute with")
    memory_bytes: int | None = Field(gt=0, description="physical bytes of the card, without DRAM that it disables")
    usable_memory_bytes: int | None = Field(
        default=None, gt=0, description="total a process sees on one device (cudaMemGetInfo)"
    )
    usable_memory_high_bytes: int | None = Field(
        default=None,
        gt=0,
        description="the highest such total where several were measured; the field above is the lowest",
    )
    smi_memory_bytes: int | None = Field(default=None, gt=0, description="nvidia-smi's total of one device")
    memory_type: str | None = None
    memory_bus_bits: int | None = Field(default=None, gt=0)
    bandwidth_bytes_per_s: float | None = Field(default=None, gt=0)
    unified_memory: bool = Field(default=False, description="shared with the host's processor")
    device_count: int = Field(default=1, ge=1)

    rates: tuple[Rate, ...] = ()
    shader_cores: int | None = Field(default=None, gt=0)
    tensor_cores: int | None = Field(default=None, gt=0)
    boost_clock_hz: float | None = Field(default=None, gt=0)
    compute_capability: str | None = Field(
        default=None, description="NVIDIA compute capability (8.9) or AMD target (gfx942)"
    )

    board_power_watts: float | None = Field(default=None, gt=0)
    form_factor: str | None = None
    interconnect: str | None = None
    mig: bool | None = None
    ecc: bool | None = None
    launch_price_usd: float | None = Field(default=None, gt=0)

    preliminary: bool = Field(default=False, description="announced; figures may change")
    own: bool = Field(default=False, description="added or changed by the person, not as bundled")
    purchase_price_usd: float | None = Field(default=None, gt=0, description="what the person paid for one")
    provenance: Provenance
    figure_notes: tuple[FigureNote, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def year(self) -> int | None:
        """Return the year of release."""
        return int(self.released[:4]) if self.released else None

    @property
    def is_laptop(self) -> bool:
        """Return whether this is a part of laptops: it shares its name with a card, but neither clocks nor cores."""
        return "laptop" in self.name.lower()

    @property
    def device_memory_bytes(self) -> int | None:
        """Return the physical bytes of one device of the card."""
        return None if self.memory_bytes is None else self.memory_bytes // self.device_count

    def rate(self, dtype: str) -> Rate | None:
        """Return the dense rate for `dtype`, the tensor units' where both are known."""
        return self._rates.get(dtype)

    @cached_property
    def _rates(self) -> dict[str, Rate]:
        vector_first = sorted(self.rates, key=lambda rate: rate.unit == "tensor")
        return {rate.dtype: rate for rate in vector_first}

    @cached_property
    def search_text(self) -> str:
        """Return what a word search looks at: name, aliases, id, vendor and architecture, in lower case."""
        squeezed = self.id.replace("-", "")  # people type rtx4090
        return "\n".join((self.name, *self.aliases, self.id, squeezed, self.vendor, self.architecture)).lower()

    def provenance_of(self, field: str) -> Provenance:
        """Return where the figure in `field` comes from; rates are named `rate.bf16`."""
        if field.startswith("rate."):
            rate = self.rate(field.removeprefix("rate."))
            return (rate.provenance if rate else None) or self.provenance
        return provenance_in(self.figure_notes, field, self.provenance)
