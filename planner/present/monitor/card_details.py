"""Everything else that a card reports, as titles with texts: links, errors, memory, pipes, and how it is shared."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from planner.errors import PlannerError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.mig import MigProfile
from planner.hardware.names import resolve_gpu
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import SharingKind, card_sharing
from planner.monitor.readings.metrics import BY_NAME, DEVICE_METRICS
from planner.monitor.readings.reading import EXPLANATIONS, Cause, Reading
from planner.monitor.readings.sample import Link
from planner.present import format as fmt
from planner.present.monitor.readings import CardReadings, number_ranges

SHARING: Final[dict[SharingKind, str]] = {
    "mig": (
        "The GPU is divided (MIG): its utilization is not reported, and what its engine was active for, from GPM on "
        "Hopper and later, stands in for it."
    ),
    "mps": (
        "Processes share the GPU at the same time (MPS): utilization says that any of them runs, not how much of the "
        "GPU each gets."
    ),
    "time-slicing": (
        "Several processes take turns on the GPU (time slicing): while one runs the others wait, and utilization is "
        "that of all together."
    ),
}
"""Consequences of each way of sharing a card for its readings."""
_UNIFIED: Final = "The GPU uses the memory of the CPU; what is used is used by everything on this machine."
_COMPUTE_MODES: Final = ("default", "one thread at a time", "prohibited", "one process at a time")
_POWER_SOURCES: Final = ("mains", "battery", "mains adapter that is too weak")
_FABRIC_STATES: Final = ("", "not joined", "joining", "joined")
_PIPES: Final = (
    ("graphics_active_fraction", "engine"),
    ("sm_active_fraction", "SMs"),
    ("tensor_active_fraction", "tensor cores"),
    ("fp64_active_fraction", "FP64"),
    ("fp32_active_fraction", "FP32"),
    ("fp16_active_fraction", "FP16"),
)
# `monitor --doctor` names all.
_MOST_TITLES: Final = 8


class CardDetail(NamedTuple):
    """One line about a card: a title and a text."""

    title: str
    text: str


def card_details(row: CardReadings, hardware: HardwareCatalog | None = None) -> tuple[CardDetail, ...]:
    """Return what a card reports beside its line; `hardware` tells where a MIG instance of its kind may lie."""
    if row.device.state != "running":
        return ()
    return tuple(detail for detail in _details(row, hardware) if detail.text)


def details_text(details: Sequence[CardDetail]) -> str:
    """Return details as lines."""
    return "\n".join(f"{detail.title}: {detail.text}" for detail in details)


def _details(row: CardReadings, hardware: HardwareCatalog | None) -> Iterator[CardDetail]:
    device = row.device
    sharing = card_sharing(device, row.latest)
    yield CardDetail("Read by", device.driver)
    yield CardDetail("MIG instance", _mig_text(device, hardware))
    yield CardDetail("Sharing", "" if sharing is None else SHARING[sharing])
    yield CardDetail("Memory", _UNIFIED if device.fact("unified_memory") else "")
    yield CardDetail(
        "RAM used by the GPU", _used_of_total(row, "shared_memory_used_bytes", "shared_memory_total_bytes")
    )
    yield CardDetail("Mapped for the CPU (BAR1)", _used_of_total(row, "bar1_used_bytes", "bar1_total_bytes"))
    yield CardDetail("Hotspot", _number_text(row.value("hotspot_temperature_celsius"), "°C"))
    yield CardDetail("Memory temperature", _number_text(row.value("memory_temperature_celsius"), "°C"))
    yield CardDetail("Active", _pipes_text(row))
    yield CardDetail("Compute mode", _named_state(row, "compute_mode", _COMPUTE_MODES))
    yield CardDetail("Power source", _named_state(row, "power_source", _POWER_SOURCES))
    yield CardDetail("PCIe", _pcie_text(row))
    yield from _link_details(row.latest.links.get(device.uuid, ()))
    yield CardDetail("NVLink fabric", _named_state(row, "fabric_state", _FABRIC_STATES))
    yield CardDetail("Memory errors", _errors_text(row))
    yield CardDetail("Retired pages", _retired_text(row))
    for cause, titles in _missing_titles(row):
        more = f" and {fmt.integer(len(titles) - _MOST_TITLES)} more" if len(titles) > _MOST_TITLES else ""
        yield CardDetail(fmt.capitalized(EXPLANATIONS[cause]), f"{', '.join(titles[:_MOST_TITLES])}{more}")


def _mig_text(device: Device, hardware: HardwareCatalog | None) -> str:
    """Return a MIG instance's profile and where it lies, or where one like it may lie."""
    if device.mig_parent is None:
        return ""
    parts = [device.mig_profile or device.name]
    first, size = device.fact("mig_first_slice"), device.fact("mig_memory_slices")
    profile = None if hardware is None else _catalog_profile(hardware, device)
    if first is not None and size is not None:
        parts.append(f"memory slices {first:.0f} to {first + size - 1:.0f}")
    elif profile is not None:
        starts = fmt.listing(tuple(map(str, profile.starts)), "or")
        slices = fmt.plural(profile.memory_slices, "memory slice")
        reading = device.facts.get("mig_first_slice", Reading(None, Cause.NOT_SUPPORTED))
        why = EXPLANATIONS[reading.cause or Cause.NOT_SUPPORTED]
        parts.append(f"{slices} from {starts} on (which one is {why})")
    multiprocessors = device.fact("multiprocessors")
    parts.append("" if multiprocessors is None else fmt.plural(int(multiprocessors), "SM"))
    return ", ".join(filter(None, parts))


def _catalog_profile(hardware: HardwareCatalog, device: Device) -> MigProfile | None:
    try:
        gpu = resolve_gpu(hardware, device.name)
    except PlannerError:
        return None
    tables = (table for table in hardware.mig if gpu.mig_slice is not None and gpu.mig_slice.gpu in table.gpus)
    profiles = (profile for table in tables for profile in table.profiles if profile.name == device.mig_profile)
    return next(profiles, None)


def _used_of_total(row: CardReadings, used: str, total: str) -> str:
    value, size = row.value(used), row.device.fact(total)
    if value is None:
        return ""
    return fmt.size(int(value)) if size is None else f"{fmt.size(int(value))} of {fmt.size(int(size))}"


def _number_text(value: float | None, unit: str) -> str:
    return "" if value is None else fmt.quantity(value, unit)


def _pipes_text(row: CardReadings) -> str:
    known = [(title, value) for name, title in _PIPES if (value := row.value(name)) is not None]
    return ", ".join(f"{title} {fmt.percent(value)}" for title, value in known)


def _named_state(row: CardReadings, name: str, names: Sequence[str]) -> str:
    value = row.value(name)
    return "" if value is None or not 0 <= value < len(names) else names[int(value)]


def _pcie_text(row: CardReadings) -> str:
    generation, width = row.value("pcie_generation"), row.value("pcie_width")
    if generation is None or width is None:
        return ""
    most = row.device.fact("pcie_generation_most"), row.device.fact("pcie_width_most")
    best = "" if None in most else f" of at most {most[0]:.0f}.0 × {most[1]:.0f}"
    replays = row.value("pcie_replays")
    again = f", {fmt.plural(int(replays), 'replay')}" if replays else ""
    return f"{generation:.0f}.0 × {width:.0f}{best}{again}"


def _link_details(links: Sequence[Link]) -> Iterator[CardDetail]:
    """Yield one line for links that are alike, such as `NVLink 0 to 17`, and one for each with errors."""
    groups: dict[str, list[int]] = {}
    for link in links:
        groups.setdefault(_link_text(link), []).append(link.number)
    for text, numbers in groups.items():
        yield CardDetail(f"NVLink {', '.join(number_ranges(numbers))}", text)


def _link_text(link: Link) -> str:
    if not link.is_active:
        return "not active"
    speed = "active" if link.bytes_per_s is None else f"{fmt.quantity(link.bytes_per_s / 1e9, 'GB/s')} each way"
    errors = (("replay", link.replay_errors), ("recovery", link.recovery_errors), ("CRC error", link.crc_errors))
    counted = [f"{fmt.integer(count)} × {name}" for name, count in errors if count]
    return f"{speed}, {', '.join(counted)}" if counted else f"{speed}, no errors"


def _errors_text(row: CardReadings) -> str:
    since = _pair_text(row, "ecc_corrected", "ecc_uncorrected")
    life = _pair_text(row, "ecc_corrected_lifetime", "ecc_uncorrected_lifetime")
    return "; ".join(
        part for part in (since and f"{since} since the driver was loaded", life and f"{life} in its life") if part
    )


def _pair_text(row: CardReadings, corrected: str, uncorrected: str) -> str:
    counts = ((row.value(corrected), "corrected"), (row.value(uncorrected), "uncorrected"))
    return ", ".join(f"{fmt.integer(int(count))} {name}" for count, name in counts if count is not None)


def _retired_text(row: CardReadings) -> str:
    counts = (
        (row.value("retired_corrected"), "after corrected errors"),
        (row.value("retired_uncorrected"), "after uncorrected errors"),
    )
    parts = [f"{fmt.integer(int(count))} {cause}" for count, cause in counts if count is not None]
    if row.value("retirement_pending"):
        parts.append("more at the next reboot")
    return ", ".join(parts)


def _missing_titles(row: CardReadings) -> Iterator[tuple[Cause, list[str]]]:
    """Yield the titles of the quantities that are missing, by cause, without those that its vendor never reports."""
    never = "nvidia" if row.device.driver else "others"
    by_cause: dict[Cause, list[str]] = {}
    for metric in DEVICE_METRICS:
        cause = row.reading(metric.name).cause
        if cause is not None and cause is not Cause.NOT_YET and metric.reported_by != never:
            by_cause.setdefault(cause, []).append(BY_NAME[metric.name].title)
    yield from by_cause.items()
