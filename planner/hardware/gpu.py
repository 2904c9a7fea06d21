"""Accelerator records: specifications, dense arithmetic rates, and the provenance of each figure."""

import re
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from typing import Annotated, Final, Literal, Self, get_args
from unicodedata import category

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from planner.base import Spec

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DAY_OR_LESS: Final = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?", re.ASCII)
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of refused characters: control, format, surrogates, and line and paragraph separators."""
_FIRST: Final = "-01-01"


def _require_one_line(text: str) -> str:
    """Refuse blank text and characters that a terminal would interpret."""
    if not text.strip():
        raise ValueError(f"{text!r} is blank")
    unseen = next((each for each in text if category(each) in _UNSEEN), "") if not text.isprintable() else ""
    if unseen:
        raise ValueError(f"contains {unseen!a}, which is not allowed in a line of text")
    return text


def _require_date(text: str) -> str:
    if not _DAY.fullmatch(text) or not _is_date(text):
        raise ValueError(f"{text!r} is not a date, such as 2026-11-22")
    return text


def _require_date_or_part(text: str) -> str:
    if not _DAY_OR_LESS.fullmatch(text) or not _is_date(f"{text}{_FIRST[len(text) - 4 :]}"):
        raise ValueError(f"{text!r} is not a year, month or date, such as 2026, 2026-11 or 2026-11-22")
    return text


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


Line = Annotated[str, AfterValidator(_require_one_line)]
"""A non-blank text of one line, without control characters."""
Day = Annotated[str, AfterValidator(_require_date)]
"""A calendar date in ISO format."""
DayOrLess = Annotated[str, AfterValidator(_require_date_or_part)]
"""A date, a month or a year in ISO format."""

GpuVendor = Literal["NVIDIA", "AMD", "Intel", "Apple"]
"""Vendors of GPUs for which PyTorch has builds of its own."""
_VENDORS_WITH_BUILD: Final = get_args(GpuVendor)
Vendor = Literal[
    GpuVendor,
    "Google",
    "AWS",
    "Huawei",
    "Cambricon",
    "Moore Threads",
    "MetaX",
    "Tenstorrent",
    "Groq",
    "Cerebras",
    "Qualcomm",
    "Microsoft",
    "Meta",
]
Segment = Literal["consumer", "workstation", "datacenter", "edge", "soc", "tpu"]
Basis = Literal["published", "derived", "measured", "yours"]
Certainty = Literal["confirmed", "single-source", "conflicting", "preliminary", "yours"]

_SEGMENT_WORDS: Final[dict[Segment, tuple[str, ...]]] = {
    "consumer": ("consumer", "gaming", "graphics"),
    "workstation": ("workstation", "professional", "graphics"),
    "datacenter": ("data", "center", "centre", "datacenter", "datacentre"),
    "edge": ("edge", "embedded"),
    "soc": ("integrated", "graphics", "igpu", "apu", "soc"),
    "tpu": ("asic", "data", "center", "centre", "datacenter", "datacentre"),
}
"""Words that people use for each segment."""
# At least a hundred times the largest card: a higher figure was entered in the wrong unit.
_COMPUTERS: Final = ("Laptop", "SoC", "SoC in mini PC", "SoM")
"""Form factors of what is sold with its processor and memory, if only as a developer kit."""
_MOST_BYTES: Final = 2**50
_MOST_BYTES_PER_S: Final = 1e16
_MOST_OPS_PER_S: Final = 1e19
_MOST_HZ: Final = 1e12
_MOST_UNITS: Final = 10_000_000
MOST_WATTS: Final = 1e5
MOST_USD: Final = 1e7
_BF16_CAPABILITY: Final = 8.0


class Provenance(Spec):
    """The origin of a figure: its basis, certainty, source and date."""

    basis: Basis = Field(
        description="basis of the figure: published in a document, derived by a formula, measured on a GPU, or yours"
    )
    certainty: Certainty = Field(
        description="certainty of the figure, such as confirmed (two documents agree) or yours (entered by the user)"
    )
    source: Line = Field(min_length=3)
    as_of: Day = Field(description="day on which the figure was read or entered")
    formula: Line | None = Field(default=None, description="formula of a derived figure")

    @model_validator(mode="after")
    def _check_derived_has_formula(self) -> Self:
        if self.basis == "derived" and not self.formula:
            raise ValueError("a derived figure needs its formula")
        return self

    @model_validator(mode="after")
    def _check_yours_in_both_fields(self) -> Self:
        if (self.basis == "yours") != (self.certainty == "yours"):
            raise ValueError("a figure of your own is 'yours' in both basis and certainty")
        return self

    @classmethod
    def own(cls, source: str, day: str) -> Self:
        """Return the provenance of a figure that the user entered on `day`."""
        return cls(basis="yours", certainty="yours", source=source, as_of=day)


class FigureNote(Spec):
    """The provenance of one field that differs from the record's provenance."""

    field: str
    provenance: Provenance


def find_provenance(notes: Iterable[FigureNote], field: str, record: Provenance) -> Provenance:
    """Return the provenance of `field` from `notes`, by default `record`, the provenance of the whole record."""
    return next((note.provenance for note in notes if note.field == field), record)


class Rate(Spec):
    """The dense arithmetic rate of a GPU in one number format; sparse rates are not stored."""

    model_config = ConfigDict(allow_inf_nan=False)

    dtype: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"]
    ops_per_s: float = Field(
        gt=0, le=_MOST_OPS_PER_S, description="rate in FLOP/s, or in integer operations per second for int8"
    )
    unit: Literal["vector", "tensor"] = Field(
        description="units that reach the rate: vector for shader cores, tensor for matrix units"
    )
    accumulate: Literal["fp16", "fp32", "int32"] | None = Field(
        default=None, description="number format of the accumulator; None if the source does not state it"
    )
    provenance: Provenance | None = Field(
        default=None, description="provenance of the rate, if it differs from the record's"
    )


class MigSlice(Spec):
    """The slice of a GPU (MIG) that a record describes."""

    gpu: Line = Field(description="catalog id of the whole GPU")
    profile: Line = Field(description="profile in nvidia-smi, such as 3g.40gb")
    memory_share: float = Field(gt=0, le=1, description="share of the GPU's memory slices")
    compute_share: float = Field(gt=0, le=1, description="share of the GPU's multiprocessors")
    most: int = Field(ge=1, description="number of such slices on one GPU")


class Gpu(Spec):
    """An accelerator as it is sold: a card, a module or a chip.

    Memory and rates are totals of the whole product; `device_count` is the number of devices that frameworks see
    (2 for a Tesla K80, 4 for an A16). Unknown figures are `None`; `notes` gives the reason where it is known.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    name: Line
    vendor: Vendor
    segment: Segment
    architecture: Line
    aliases: tuple[Line, ...] = ()
    machines: tuple[Line, ...] = Field(
        default=(), description="computers that are sold with the chip, such as Mac Studio"
    )
    announced: DayOrLess | None = Field(default=None, description="when the vendor presented the GPU, if long before")
    released: DayOrLess | None = Field(default=None, description="when the GPU was first sold or rented")

    memory_label: Line = Field(description="memory size as marketed, such as 24 GB; not for computing")
    memory_bytes: int | None = Field(
        gt=0, le=_MOST_BYTES, description="physical memory of the GPU, without disabled DRAM"
    )
    usable_memory_bytes: int | None = Field(
        default=None,
        gt=0,
        le=_MOST_BYTES,
        description="total memory that a process sees on one device (cudaMemGetInfo)",
    )
    usable_memory_high_bytes: int | None = Field(
        default=None,
        gt=0,
        le=_MOST_BYTES,
        description="highest total of several measurements on one device; usable_memory_bytes is the lowest",
    )
    smi_memory_bytes: int | None = Field(
        default=None, gt=0, le=_MOST_BYTES, description="total memory of one device in nvidia-smi"
    )
    memory_type: Line | None = None
    memory_bus_bits: int | None = Field(default=None, gt=0, le=_MOST_UNITS)
    bandwidth_bytes_per_s: float | None = Field(default=None, gt=0, le=_MOST_BYTES_PER_S)
    unified_memory: bool = Field(default=False, description="whether GPU and CPU share the memory")
    device_count: int = Field(default=1, ge=1, le=_MOST_UNITS)

    rates: tuple[Rate, ...] = ()
    shader_cores: int | None = Field(default=None, gt=0, le=_MOST_UNITS)
    tensor_cores: int | None = Field(default=None, gt=0, le=_MOST_UNITS)
    l1_cache_bytes: int | None = Field(
        default=None, gt=0, le=_MOST_BYTES, description="first-level cache and shared memory of all compute units"
    )
    l2_cache_bytes: int | None = Field(default=None, gt=0, le=_MOST_BYTES, description="second-level cache of the chip")
    boost_clock_hz: float | None = Field(default=None, gt=0, le=_MOST_HZ)
    compute_capability: Line | None = Field(
        default=None, description="NVIDIA compute capability (8.9) or AMD target (gfx942)"
    )

    board_power_watts: float | None = Field(default=None, gt=0, le=MOST_WATTS)
    power_limit_watts: float | None = Field(
        default=None, gt=0, le=MOST_WATTS, description="power limit set by the user; the rates assume no limit"
    )
    form_factor: Line | None = None
    interconnect: Line | None = None
    mig: bool | None = None
    mig_slice: MigSlice | None = Field(default=None, description="slice of a GPU (MIG), if the record is of one")
    ecc: bool | None = None
    launch_price_usd: float | None = Field(default=None, gt=0, le=MOST_USD)

    preliminary: bool = Field(
        default=False, description="whether the GPU is only announced, so that figures may change"
    )
    own: bool = Field(default=False, description="whether the user added or changed the GPU")
    purchase_price_usd: float | None = Field(
        default=None, gt=0, le=MOST_USD, description="price in USD that the user paid for one GPU"
    )
    provenance: Provenance
    figure_notes: tuple[FigureNote, ...] = ()
    notes: tuple[Line, ...] = ()

    @model_validator(mode="after")
    def _check_power_limit(self) -> Self:
        if self.power_limit_watts is not None and self.power_limit_watts > (self.board_power_watts or MOST_WATTS):
            raise ValueError(f"power_limit_watts is above the board power of {self.board_power_watts:,.0f} W")
        return self

    @property
    def drawn_watts(self) -> float | None:
        """Return the maximum power draw in watts: the power limit if set, else the board power."""
        return self.board_power_watts if self.power_limit_watts is None else self.power_limit_watts

    @property
    def year(self) -> int | None:
        """Return the year of release, of the announcement where no sale is known."""
        known = self.released or self.announced
        return int(known[:4]) if known else None

    @property
    def is_laptop(self) -> bool:
        """Return whether this is a laptop GPU, which shares its name with a card but not its clocks or cores."""
        return "laptop" in self.name.lower()

    @property
    def is_whole_computer(self) -> bool:
        """Return whether it is sold as a computer of its own, such as a laptop, a Mac or a Jetson, not as a card."""
        return self.form_factor in _COMPUTERS

    @property
    def has_pytorch_build(self) -> bool:
        """Return whether a build of PyTorch itself runs on it, not a plugin with a compiler of its own."""
        return self.vendor in _VENDORS_WITH_BUILD and self.architecture != "Gaudi"

    @property
    def device_memory_bytes(self) -> int | None:
        """Return the physical memory of one device of the card in bytes, or None if unknown."""
        return None if self.memory_bytes is None else self.memory_bytes // self.device_count

    def rate(self, dtype: str) -> Rate | None:
        """Return the card's dense rate in `dtype`: of its tensor cores, else of its shader cores; None if unknown."""
        return self._rates_by_dtype.get(dtype)

    @cached_property
    def _rates_by_dtype(self) -> dict[str, Rate]:
        # Cached because every time estimate reads several rates of each card: ten times as fast as a search.
        vector_first = sorted(self.rates, key=lambda rate: rate.unit == "tensor")
        return {rate.dtype: rate for rate in vector_first}

    @property
    def search_text(self) -> str:
        """Return the text that a search matches, in lower case: names, machines, vendor and architecture."""
        squeezed = self.id.replace("-", "")  # people type rtx4090
        names = self.name, *self.aliases, self.id, squeezed, *self.machines
        return "\n".join((*names, self.vendor, self.architecture)).lower()

    @property
    def kind_words(self) -> frozenset[str]:
        """Return the words for the card's kind that a search finds: its use, its memory, its links and its cores."""
        memory = (self.memory_type or "").lower().split()
        found = [*_SEGMENT_WORDS[self.segment], *memory]
        found += [kind for kind in ("gddr", "hbm") if any(each.startswith(kind) for each in memory)]
        found += [] if self.is_whole_computer or self.unified_memory else ["vram", "card", "cards"]
        found += ["gpu", "gpus"] if self.shader_cores else []
        if self.vendor == "NVIDIA" and self.shader_cores:
            found += [
                "cuda",
                "core",
                "cores",
                *(["tensor"] if any(each.unit == "tensor" for each in self.rates) else []),
            ]
        found += ["nvlink"] if "nvlink" in (self.interconnect or "").lower() else []
        found += ["silicon"] if self.vendor == "Apple" else []
        return frozenset(found)

    def ops_per_s(self, dtype: str) -> float | None:
        """Return the card's dense rate in `dtype` in operations per second, or None if unknown."""
        rate = self.rate(dtype)
        return None if rate is None else rate.ops_per_s

    def provenance_of(self, field: str) -> Provenance:
        """Return the provenance of the figure in `field`; rates are named `rate.bf16`."""
        if field.startswith("rate."):
            rate = self.rate(field.removeprefix("rate."))
            return (rate.provenance if rate else None) or self.provenance
        return find_provenance(self.figure_notes, field, self.provenance)


_LINKS: Final = r"(?:NVLink\d|NVLink-C2C|Fabric|ICI|NeuronLink-v\d|scale-up|RoCE)[^;]*?(\d+(?:\.\d+)?) GB/s"


def parse_link_bytes_per_s(interconnect: str | None) -> float | None:
    """Return an accelerator's link bandwidth in bytes per second, both directions together.

    None if the text names no links or no bandwidth.
    """
    found = re.search(_LINKS, interconnect or "")
    return float(found[1]) * 1e9 if found else None


def computes_bf16(gpu: Gpu) -> bool:
    """Return whether `gpu` has native BF16 arithmetic; NVIDIA's cards before Ampere emulate it.

    **Source**: CUDA C++ Programming Guide, arithmetic instructions by compute capability: bf16 from 8.0 on.
    """
    if gpu.vendor != "NVIDIA" or not gpu.compute_capability:
        return True
    return float(gpu.compute_capability) >= _BF16_CAPABILITY
