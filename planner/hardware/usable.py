"""Usable memory of a device: measured, or estimated from measured devices of the same family.

The marketed size, the physical memory and the usable memory are three different numbers. Usable memory is the total
that `cudaMemGetInfo` reports on Linux (and PyTorch prints as "total capacity"), after the share of the driver, error
correction and page tables. Windows reports nearly the physical memory, but withholds some of it from each process.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from planner.hardware.gpu import Gpu
from planner.units import GIB

DeviceFamily = tuple[str, ...]

_MIN_DEVICES: Final = 3
_APPLE_LARGE_BYTES: Final = 32 * GIB


class UsableMemory(NamedTuple):
    """Usable memory of one device in bytes, with its uncertainty interval; plans use `bytes`."""

    bytes: int
    low_bytes: int
    high_bytes: int
    certainty: Literal["measured", "assumed", "yours"]
    source: str
    explanation: str


class FamilySpread(NamedTuple):
    """Lowest, median and highest value of a memory loss among the measured devices of one family."""

    low: float
    middle: float
    high: float
    devices: int


class MemoryLosses(NamedTuple):
    """Memory losses of measured devices, by device family.

    `lost_share` is 1 − usable ÷ physical bytes; `smi_gap_bytes` is nvidia-smi's total minus the usable bytes.
    """

    lost_share: Mapping[DeviceFamily, FamilySpread]
    smi_gap_bytes: Mapping[DeviceFamily, FamilySpread]


def measured_memory_losses(records: Iterable[Gpu]) -> MemoryLosses:
    """Return the memory losses of every device family with measured devices in `records`."""
    lost: dict[DeviceFamily, list[float]] = {}
    gaps: dict[DeviceFamily, list[float]] = {}
    for gpu in records:
        if gpu.usable_memory_bytes is None:
            continue
        for family in _families(gpu):
            if gpu.device_memory_bytes is not None:
                lost.setdefault(family, []).append(1 - gpu.usable_memory_bytes / gpu.device_memory_bytes)
            if gpu.smi_memory_bytes is not None:
                gaps.setdefault(family, []).append(gpu.smi_memory_bytes - gpu.usable_memory_bytes)
    return MemoryLosses(
        lost_share={family: _family_spread(values) for family, values in lost.items()},
        smi_gap_bytes={family: _family_spread(values) for family, values in gaps.items()},
    )


def usable_memory(gpu: Gpu, losses: MemoryLosses) -> UsableMemory | None:
    """Return the usable memory of one device of `gpu`, or None if there is no basis for an estimate.

    **Formula** The first that is known of: the measured figure; the platform's default limit for unified memory;
    nvidia-smi's total minus the family's median gap; physical bytes × (1 − the family's median loss). The interval of
    an estimate is the range over the family's measured devices; with a single one, from no loss to twice its loss.
    **Assumes** that devices of one family (vendor, architecture, market segment, type of memory) have similar losses;
    if fewer than three of them were measured, those of a wider family count.
    """
    if gpu.usable_memory_bytes is not None:
        return _measured_usable_memory(gpu, gpu.usable_memory_bytes)
    return _unified_memory_limit(gpu) or _estimate_from_smi(gpu, losses) or _estimate_from_physical(gpu, losses)


def _measured_usable_memory(gpu: Gpu, usable: int) -> UsableMemory:
    high = gpu.usable_memory_high_bytes or usable
    spread = "" if high == usable else f", up to {high / GIB:.2f} by driver version"
    provenance = gpu.provenance_of("usable_memory_bytes")
    certainty: Literal["measured", "assumed", "yours"] = (
        "yours" if provenance.basis == "yours" else "assumed" if provenance.basis == "derived" else "measured"
    )
    return UsableMemory(
        bytes=usable,
        low_bytes=usable,
        high_bytes=high,
        certainty=certainty,
        source=provenance.source,
        explanation=f"{certainty}: {usable / GIB:.2f} GiB{spread}",
    )


def _unified_memory_limit(gpu: Gpu) -> UsableMemory | None:
    """Return the usable part of unified memory under the platform's default limit, or None for other devices.

    **Source** Apple: macOS wires about 67 % of 32 GB or less, and 75 % above. Ryzen AI Max: Windows assigns at most
    75 % (96 of 128 GB), Linux about 108 to 120 of 128 GB. MI300A: the ROCm documentation, 96 of 128 GiB.
    """
    memory = gpu.memory_bytes
    if not gpu.unified_memory or memory is None:
        return None
    if gpu.vendor == "Apple":
        lost = 1 / 3 if memory <= _APPLE_LARGE_BYTES else 1 / 4
        text = "macOS lets the GPU wire about 67 % of memory up to 32 GB and 75 % above"
        return _assumed_memory(memory, FamilySpread(1 / 4, lost, 1 / 3, 0), "macOS default GPU memory limit", text)
    if gpu.vendor == "AMD" and gpu.segment == "soc":
        text = "Windows assigns the GPU at most 75 % of memory, Linux about 108 to 120 of 128 GB"
        return _assumed_memory(
            memory, FamilySpread(8 / 128, 1 / 4, 1 / 4, 0), "Ryzen AI Max default GPU memory limit", text
        )
    if gpu.vendor == "AMD":
        text = "ROCm lets device allocators have 96 of 128 GiB unless the limit is raised"
        return _assumed_memory(
            memory, FamilySpread(0.0, 1 / 4, 1 / 4, 0), "https://github.com/ROCm/legacy-rocm-build/pull/3587", text
        )
    return None


def _estimate_from_smi(gpu: Gpu, losses: MemoryLosses) -> UsableMemory | None:
    """Return usable memory estimated as nvidia-smi's total minus the family's gap, or None if unknown."""
    found = _nearest_spread(gpu, losses.smi_gap_bytes)
    if found is None or gpu.smi_memory_bytes is None:
        return None
    family, gap = found
    return UsableMemory(
        bytes=round(gpu.smi_memory_bytes - gap.middle),
        low_bytes=round(gpu.smi_memory_bytes - gap.high),
        high_bytes=round(gpu.smi_memory_bytes - gap.low),
        certainty="assumed",
        source=gpu.provenance_of("smi_memory_bytes").source,
        explanation=f"assumed: nvidia-smi's total minus {gap.middle / GIB:.2f} GiB, as on {_family_text(family, gap)}",
    )


def _estimate_from_physical(gpu: Gpu, losses: MemoryLosses) -> UsableMemory | None:
    """Return usable memory estimated as physical memory minus the family's lost share, or None if unknown."""
    found = _nearest_spread(gpu, losses.lost_share)
    if found is None or gpu.device_memory_bytes is None:
        return None
    family, lost = found
    text = f"physical memory minus {lost.middle:.1%}, as on {_family_text(family, lost)}"
    return _assumed_memory(gpu.device_memory_bytes, lost, gpu.provenance_of("memory_bytes").source, text)


def _assumed_memory(memory_bytes: int, loss: FamilySpread, source: str, text: str) -> UsableMemory:
    """Return the usable memory left by the lost share `loss` of `memory_bytes`, with its bounds and source."""
    return UsableMemory(
        bytes=round(memory_bytes * (1 - loss.middle)),
        low_bytes=round(memory_bytes * (1 - loss.high)),
        high_bytes=round(memory_bytes * (1 - loss.low)),
        certainty="assumed",
        source=source,
        explanation=f"assumed: {text}",
    )


def _families(gpu: Gpu) -> tuple[DeviceFamily, ...]:
    """Return the device families that `gpu` belongs to, the narrowest first.

    Each includes the type of memory, because error correction takes a sixteenth of GDDR but nothing of HBM.
    """
    kind = _memory_kind(gpu)
    return (
        (gpu.vendor, gpu.architecture, gpu.segment, kind),
        (gpu.vendor, gpu.segment, kind),
        (gpu.vendor, kind),
    )


def _memory_kind(gpu: Gpu) -> str:
    """Return the kind of memory that distinguishes device families: shared memory, HBM or GDDR."""
    if gpu.unified_memory:
        return "shared memory"
    return "HBM" if (gpu.memory_type or "").startswith("HBM") else "GDDR"


def _nearest_spread(gpu: Gpu, spreads: Mapping[DeviceFamily, FamilySpread]) -> tuple[DeviceFamily, FamilySpread] | None:
    """Return the narrowest family with at least three measured devices, else the widest with any, and its spread."""
    known = [(family, spreads[family]) for family in _families(gpu) if family in spreads]
    several = [found for found in known if found[1].devices >= _MIN_DEVICES]
    return next(iter(several or reversed(known)), None)


def _family_spread(values: list[float]) -> FamilySpread:
    """Return the lowest, median and highest of the measured losses `values`; one value spans from 0 to twice itself."""
    if len(values) == 1:
        return FamilySpread(low=0.0, middle=values[0], high=2 * values[0], devices=1)
    from statistics import median  # of a measured card, nothing is estimated

    return FamilySpread(low=min(values), middle=median(values), high=max(values), devices=len(values))


def _family_text(family: DeviceFamily, spread: FamilySpread) -> str:
    devices = "1 measured device" if spread.devices == 1 else f"{spread.devices} measured devices"
    return f"{devices} of {' '.join(family)}"
