"""How much of a device's memory a process can use: measured where it was, else assumed from the device's family.

The label on the box, the physical bytes and the usable bytes are three different numbers. The usable bytes are the
total that `cudaMemGetInfo` reports (and PyTorch prints as "total capacity"): the driver, error correction and page
tables have taken their part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.units import GIB

Family = tuple[str, ...]

_ROUNDING_BYTES: Final = round(0.005 * GIB)  # measured figures are printed in GiB with two decimals
_APPLE_LARGE_BYTES: Final = 32 * GIB


class UsableMemory(Spec):
    """The memory that a process can use on one device, as an interval; `bytes` is the figure to plan with."""

    bytes: int
    low_bytes: int
    high_bytes: int
    certainty: Literal["measured", "assumed"]
    source: str
    explanation: str


@dataclass(frozen=True)
class Spread:
    """The lowest, middle and highest of one quantity over the measured devices of a family."""

    low: float
    middle: float
    high: float
    count: int


@dataclass(frozen=True, eq=False)
class UsableShares:
    """What the measured devices of each family say.

    `share` is usable ÷ physical bytes; `smi_gap_bytes` is what nvidia-smi's total has above the usable bytes.
    """

    share: Mapping[Family, Spread]
    smi_gap_bytes: Mapping[Family, Spread]


def measured_shares(records: Iterable[Gpu]) -> UsableShares:
    """Return the spreads of every family in `records` that has measured devices."""
    shares: dict[Family, list[float]] = {}
    gaps: dict[Family, list[float]] = {}
    for gpu in records:
        if gpu.usable_memory_bytes is None:
            continue
        for family in _families(gpu):
            if gpu.device_memory_bytes is not None:
                shares.setdefault(family, []).append(gpu.usable_memory_bytes / gpu.device_memory_bytes)
            if gpu.smi_memory_bytes is not None:
                gaps.setdefault(family, []).append(gpu.smi_memory_bytes - gpu.usable_memory_bytes)
    return UsableShares(
        share={family: _spread(values) for family, values in shares.items()},
        smi_gap_bytes={family: _spread(values) for family, values in gaps.items()},
    )


def usable_memory(gpu: Gpu, shares: UsableShares) -> UsableMemory | None:
    """Return what a process can see of one device of `gpu`, or None where nothing is known to tell it from.

    **Formula** In this order: the measured figure; the limit of the platform for shared memory; nvidia-smi's total
    minus the family's median gap; physical bytes × the family's median share. The interval of an assumed figure is
    the spread of the family's measured devices.
    **Assumes** that devices of one family (maker, architecture, market segment, kind of memory) lose alike, and where
    fewer than two of them were measured, that those of a wider family do.
    """
    if gpu.usable_memory_bytes is not None:
        return _measured(gpu, gpu.usable_memory_bytes)
    return _shared_limit(gpu) or _from_smi(gpu, shares) or _from_physical(gpu, shares)


def _measured(gpu: Gpu, usable: int) -> UsableMemory:
    return UsableMemory(
        bytes=usable,
        low_bytes=usable - _ROUNDING_BYTES,
        high_bytes=usable + _ROUNDING_BYTES,
        certainty="measured",
        source=gpu.provenance_of("usable_memory_bytes").source,
        explanation=f"measured on a card: {usable / GIB:.2f} GiB, as printed with two decimals",
    )


def _shared_limit(gpu: Gpu) -> UsableMemory | None:
    """Return the limit that the operating system sets for a processor and GPU with one memory.

    **Source** Apple: macOS wires about 67 % of 32 GB or less, and 75 % above, by default. Ryzen AI Max: Windows
    assigns at most 75 % (96 of 128 GB), Linux about 108 to 120 of 128 GB.
    """
    memory = gpu.memory_bytes
    if not gpu.unified_memory or memory is None:
        return None
    if gpu.vendor == "Apple":
        share = 2 / 3 if memory <= _APPLE_LARGE_BYTES else 3 / 4
        text = "macOS lets the GPU wire about 67 % of memory up to 32 GB and 75 % above"
        return _assumed(memory, Spread(2 / 3, share, 3 / 4, 0), "macOS default GPU memory limit", text)
    if gpu.vendor == "AMD" and gpu.segment == "soc":
        text = "Windows assigns the GPU at most 75 % of memory, Linux about 108 to 120 of 128 GB"
        return _assumed(memory, Spread(3 / 4, 3 / 4, 120 / 128, 0), "Ryzen AI Max default GPU memory limit", text)
    return None


def _from_smi(gpu: Gpu, shares: UsableShares) -> UsableMemory | None:
    found = _nearest(gpu, shares.smi_gap_bytes)
    if found is None or gpu.smi_memory_bytes is None:
        return None
    family, gap = found
    return UsableMemory(
        bytes=round(gpu.smi_memory_bytes - gap.middle),
        low_bytes=round(gpu.smi_memory_bytes - gap.high),
        high_bytes=round(gpu.smi_memory_bytes - gap.low),
        certainty="assumed",
        source=gpu.provenance_of("smi_memory_bytes").source,
        explanation=f"assumed: nvidia-smi's total less {gap.middle / GIB:.2f} GiB, as on {_cards(family, gap)}",
    )


def _from_physical(gpu: Gpu, shares: UsableShares) -> UsableMemory | None:
    found = _nearest(gpu, shares.share)
    if found is None or gpu.device_memory_bytes is None:
        return None
    family, share = found
    text = f"{share.middle:.1%} of the physical memory, as on {_cards(family, share)}"
    return _assumed(gpu.device_memory_bytes, share, gpu.provenance_of("memory_bytes").source, text)


def _assumed(memory_bytes: int, share: Spread, source: str, text: str) -> UsableMemory:
    return UsableMemory(
        bytes=round(memory_bytes * share.middle),
        low_bytes=round(memory_bytes * share.low),
        high_bytes=round(memory_bytes * share.high),
        certainty="assumed",
        source=source,
        explanation=f"assumed: {text}",
    )


def _families(gpu: Gpu) -> tuple[Family, ...]:
    """Return the families of a device from the narrowest to the widest.

    The kind of memory belongs to each, because error correction takes a sixteenth of GDDR but nothing of HBM.
    """
    kind = _memory_kind(gpu)
    return (
        (gpu.vendor, gpu.architecture, gpu.segment, kind),
        (gpu.vendor, gpu.segment, kind),
        (gpu.vendor, kind),
    )


def _memory_kind(gpu: Gpu) -> str:
    if gpu.unified_memory:
        return "shared memory"
    return "HBM" if (gpu.memory_type or "").startswith("HBM") else "GDDR"


def _nearest(gpu: Gpu, spreads: Mapping[Family, Spread]) -> tuple[Family, Spread] | None:
    """Return the narrowest family with two measured devices, else the widest with any."""
    known = [(family, spreads[family]) for family in _families(gpu) if family in spreads]
    several = [found for found in known if found[1].count > 1]
    return next(iter(several or reversed(known)), None)


def _spread(values: list[float]) -> Spread:
    return Spread(low=min(values), middle=median(values), high=max(values), count=len(values))


def _cards(family: Family, spread: Spread) -> str:
    devices = "1 measured device" if spread.count == 1 else f"{spread.count} measured devices"
    return f"{devices} of {' '.join(family)}"
