"""MIG: the slices that a card can be divided into, each a card of its own, and which of them fit on one card.

**Source**: NVIDIA Multi-Instance GPU User Guide. A slice (GPU instance) has its own memory, multiprocessors, engines,
share of the L2 cache and share of the bandwidth; no other process slows it down or reads its memory. With time slicing
and MPS, processes share all of these. Slices have no peer access to other slices or cards, over PCIe or NVLink.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.errors import SpecError
from planner.hardware.gpu import FigureNote, Gpu, Line, MigSlice, Provenance

MIG_INFIX: Final = "-mig-"
"""Text between the id of a card and the profile in the id of a slice."""
_PROFILE: Final = r"(?i)(?P<card>.*?)[\s:/,-]*(?:\bmig[\s-]*)?\b(?P<profile>[1-9]g\.[0-9]+gb(?:[+.-][a-z.]+)?)\s*"
_LANES: Final = r"PCIe \d\.\d x\d+|NVLink-C2C \d+ GB/s"
_SIZE: Final = r"\.(\d+)gb"
ALONE: Final = (
    "slices of a card (MIG) have no direct access to each other, neither over PCIe nor over NVLink: plan one slice, "
    "and start the program once in each"
)
"""Reason why no plan uses several slices together."""


class MigProfile(Spec):
    """One kind of slice that a card can be divided into."""

    name: Line = Field(pattern=r"^\dg\.\d+gb([+-][a-z.]+)?$", description="name in nvidia-smi, such as 3g.40gb")
    compute_slices: int = Field(ge=1, le=8, description="slices of the multiprocessors that it has")
    memory_slices: int = Field(ge=1, le=8, description="slices of memory, L2 cache and bandwidth that it has")
    starts: tuple[int, ...] = Field(min_length=1, description="memory slices at which it can start on the card")
    most: int = Field(ge=1, le=8, description="number of such slices on one card")
    memory_bytes: int = Field(gt=0, description="memory in nvidia-smi, which is what a program sees")
    memory_high_bytes: int | None = Field(default=None, gt=0, description="highest memory in nvidia-smi, by driver")
    multiprocessors: int = Field(ge=1)
    decoders: int | None = Field(default=None, ge=0, description="video decoders (NVDEC)")
    copy_engines: int | None = Field(default=None, ge=0)
    extra: Line | None = Field(default=None, description="what it has or lacks beside other slices of its size")
    assumed: tuple[Literal["memory_bytes", "multiprocessors"], ...] = Field(
        default=(), description="figures that no source prints, which follow from those of similar cards"
    )


class MigTable(Spec):
    """The profiles of some cards that are divided alike."""

    id: str
    gpus: tuple[str, ...] = Field(min_length=1, description="catalog ids of the cards")
    memory_slices: int = Field(ge=1, le=8, description="slices into which the memory is divided")
    multiprocessors: int = Field(ge=1, description="multiprocessors of the whole card")
    profiles: tuple[MigProfile, ...] = Field(min_length=1)
    provenance: Provenance

    @model_validator(mode="after")
    def _check_placements(self) -> Self:
        for each in self.profiles:
            if max(each.starts) + each.memory_slices > self.memory_slices or each.most > len(each.starts):
                raise ValueError(f"{each.name} does not fit on the card")
        return self

    def profile(self, name: str) -> MigProfile:
        """Return the profile with the name `name` in any case.

        Raises:
            SpecError: If there is none.
        """
        found = next((each for each in self.profiles if each.name == name.strip().lower()), None)
        if found is None:
            listed = ", ".join(each.name for each in self.profiles)
            raise SpecError("slices", f"the card has no MIG profile {name!r}", f"Its profiles: {listed}.")
        return found


class PlacedSlice(Spec):
    """A slice and the memory slice of the card at which it starts."""

    profile: str
    start: int
    size: int


def place_slices(table: MigTable, names: Sequence[str]) -> tuple[PlacedSlice, ...]:
    """Return where the slices `names` lie on one card, by the memory slice at which each starts.

    Raises:
        SpecError: If a profile is unknown, or they do not fit on one card together; it names the rule.
    """
    wanted = [table.profile(name) for name in names]
    for profile in wanted:
        if wanted.count(profile) > profile.most:
            raise SpecError(
                "slices", f"a card has at most {profile.most} of {profile.name}, not {wanted.count(profile)}"
            )
    media = [each.name for each in wanted if "+me" in each.name]
    if len(media) > 1:
        raise SpecError("slices", f"only one slice of a card has its media engines, not {' and '.join(media)}")
    needed = sum(each.memory_slices for each in wanted)
    if needed > table.memory_slices:
        raise SpecError("slices", f"they take {needed} memory slices, and the card has {table.memory_slices}")
    # The largest first: they have the fewest places.
    order = sorted(wanted, key=lambda each: (-each.memory_slices, len(each.starts)))
    placed = next(_placements(order, frozenset()), None)
    if placed is None:
        starts = "; ".join(
            f"{each.name} takes {each.memory_slices} from {', '.join(map(str, each.starts))}"
            for each in dict.fromkeys(order)
        )
        raise SpecError("slices", f"they overlap wherever they are placed. Memory slices of the card: {starts}")
    return tuple(sorted(placed, key=lambda each: each.start))


def _placements(wanted: Sequence[MigProfile], taken: frozenset[int]) -> Iterator[tuple[PlacedSlice, ...]]:
    """Yield every placement of the profiles `wanted` beside the memory slices `taken`."""
    if wanted:
        first, *rest = wanted
        for start in first.starts:
            cells = frozenset(range(start, start + first.memory_slices))
            if not cells & taken:
                placed = PlacedSlice(profile=first.name, start=start, size=first.memory_slices)
                yield from ((placed, *others) for others in _placements(rest, taken | cells))
    else:
        yield ()


def slice_card(gpu: Gpu, table: MigTable, profile: MigProfile) -> Gpu:
    """Return the slice `profile` of `gpu` as a card.

    **Formula**: memory as nvidia-smi prints it; bandwidth, bus and L2 cache × memory slices ÷ the card's; rates, shader
    cores, matrix units, L1 cache and board power × multiprocessors ÷ the card's.
    """
    memory_share = profile.memory_slices / table.memory_slices
    compute_share = profile.multiprocessors / table.multiprocessors

    def part(value: int | None, share: float) -> int | None:
        return None if value is None else max(1, round(value * share))

    source = table.provenance.source
    memory = Provenance(
        basis="derived" if "memory_bytes" in profile.assumed else "published",
        certainty="single-source",
        source=source,
        as_of=table.provenance.as_of,
        formula="usable bytes of the card × lowest share that slices of this size have on other cards"
        if "memory_bytes" in profile.assumed
        else None,
    )
    scaled = Provenance(
        basis="derived",
        certainty="single-source",
        source=source,
        as_of=table.provenance.as_of,
        formula=f"figure of {gpu.name} × {profile.memory_slices} of {table.memory_slices} memory slices, or × "
        f"{profile.multiprocessors} of {table.multiprocessors} multiprocessors",
    )
    size = re.search(_SIZE, profile.name)
    kept = re.search(_LANES, gpu.interconnect or "")
    return gpu.evolve(
        id=slice_id(gpu, profile),
        name=f"{gpu.name} MIG {profile.name}",
        aliases=(),
        machines=(),
        memory_label=f"{size[1]} GB" if size else gpu.memory_label,
        memory_bytes=profile.memory_high_bytes or profile.memory_bytes,
        usable_memory_bytes=profile.memory_bytes,
        usable_memory_high_bytes=profile.memory_high_bytes,
        smi_memory_bytes=None,
        memory_bus_bits=part(gpu.memory_bus_bits, memory_share),
        bandwidth_bytes_per_s=None if gpu.bandwidth_bytes_per_s is None else gpu.bandwidth_bytes_per_s * memory_share,
        rates=tuple(rate.evolve(ops_per_s=rate.ops_per_s * compute_share, provenance=scaled) for rate in gpu.rates),
        shader_cores=part(gpu.shader_cores, compute_share),
        tensor_cores=part(gpu.tensor_cores, compute_share),
        l1_cache_bytes=part(gpu.l1_cache_bytes, compute_share),
        l2_cache_bytes=part(gpu.l2_cache_bytes, memory_share),
        board_power_watts=None if gpu.board_power_watts is None else gpu.board_power_watts * compute_share,
        power_limit_watts=None if gpu.power_limit_watts is None else gpu.power_limit_watts * compute_share,
        interconnect=kept[0] if kept else None,
        mig=False,
        mig_slice=MigSlice(
            gpu=gpu.id, profile=profile.name, memory_share=memory_share, compute_share=compute_share, most=profile.most
        ),
        launch_price_usd=None,
        purchase_price_usd=None,
        figure_notes=(
            *(FigureNote(field=name, provenance=memory) for name in _MEMORY_FIELDS),
            *(FigureNote(field=name, provenance=scaled) for name in _SCALED_FIELDS),
        ),
        notes=(
            _NOTE.format(most=profile.most, name=gpu.name),
            *((_ASSUMED,) if "multiprocessors" in profile.assumed else ()),
        ),
    )


_MEMORY_FIELDS: Final = ("memory_bytes", "usable_memory_bytes", "usable_memory_high_bytes")
_SCALED_FIELDS: Final = (
    *("memory_bus_bits", "bandwidth_bytes_per_s", "shader_cores", "tensor_cores", "l1_cache_bytes", "l2_cache_bytes"),
    "board_power_watts",
)
_ASSUMED: Final = "The number of its multiprocessors is assumed to have the proportion of similar cards."
_NOTE: Final = (
    "A slice of {name}, which holds at most {most} of this kind. Its memory, cache, bandwidth and multiprocessors are "
    "its own. Time slicing and MPS isolate no memory: processes that share a card so also share all of these."
)


def slice_id(gpu: Gpu, profile: MigProfile) -> str:
    """Return the id of the slice `profile` of `gpu`, such as `h100-sxm5-80gb-mig-3g.40gb`."""
    return f"{gpu.id}{MIG_INFIX}{profile.name.replace('+', '.')}"


def sliced_card_id(gpu_id: str) -> str | None:
    """Return the id of the card of which the card `gpu_id` is a slice, or None for a whole card."""
    card, infix, _ = gpu_id.partition(MIG_INFIX)
    return card if infix else None


def split_profile(text: str) -> tuple[str, str] | None:
    """Split `H100 80GB 3g.40gb` into the card's name and the profile; None if `text` names no profile."""
    found = re.fullmatch(_PROFILE, text)
    return (found["card"].strip(), found["profile"].lower()) if found and found["card"].strip() else None
