"""Discovery of GPUs and MIG instances, with their fixed properties."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import ceil
from typing import Any, Final, NamedTuple

import psutil

from planner.monitor.nvml import Handle, Nvml, NvmlFailure, missing_reading_cause
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sampler.nvml_queries import FACT_QUERIES, CardLostError, CardQueries

_WDDM: Final = 0
_COMPUTED_FACTS: Final[tuple[tuple[str, str, Callable[[Any], float]], ...]] = (
    ("compute_capability", "nvmlDeviceGetCudaComputeCapability", lambda version: version[0] + version[1] / 10),
    ("windows_display_driver", "nvmlDeviceGetDriverModel", lambda models: int(models[0] == _WDDM)),
)


class DiscoveredDevice(NamedTuple):
    """A GPU or MIG instance that responds, with its NVML handle."""

    device: Device
    handle: Handle
    parent_handle: Handle | None = None


class UnreachableCard(NamedTuple):
    """A GPU that the driver counts but cannot open, with its index."""

    number: int
    failure: NvmlFailure


def find_devices(nvml: Nvml) -> Iterator[DiscoveredDevice | UnreachableCard]:
    """Yield every GPU that the driver counts, each followed by its MIG instances.

    Raises:
        NvmlFailure: If the GPUs cannot be counted.
        SessionOverError: If the NVML session becomes invalid.
    """
    for index in range(nvml.call("nvmlDeviceGetCount", "")):
        try:
            handle = nvml.call("nvmlDeviceGetHandleByIndex", str(index), index)
            uuid = nvml.call_for_text("nvmlDeviceGetUUID", str(index), handle)
            pci = _read_pci_bus_id(nvml, uuid, handle)
            name, raw = _read_name(nvml, uuid, handle, pci)
            card = Device(uuid, name, index, pci, raw_name=raw, facts=_read_facts(nvml, uuid, handle))
        except NvmlFailure as failure:
            yield UnreachableCard(index, failure)
        except CardLostError as error:
            yield UnreachableCard(index, error.failure)
        else:
            yield DiscoveredDevice(card, handle)
            yield from _discover_instances(nvml, card, handle)


def instance_uuids(nvml: Nvml, uuid: str, handle: Handle) -> frozenset[str]:
    """Return the UUIDs of a GPU's current MIG instances.

    Raises:
        NvmlFailure: If the GPU does not report its MIG mode.
    """
    if not nvml.call("nvmlDeviceGetMigMode", uuid, handle)[0]:
        return frozenset()
    return frozenset(
        nvml.call_for_text("nvmlDeviceGetUUID", uuid, instance) for _, instance in _instance_handles(nvml, uuid, handle)
    )


def _discover_instances(nvml: Nvml, card: Device, handle: Handle) -> Iterator[DiscoveredDevice]:
    if not card.fact("mig_enabled"):
        return
    for index, instance in _instance_handles(nvml, card.uuid, handle):
        with suppress(NvmlFailure):
            yield DiscoveredDevice(_read_instance(nvml, card, index, instance, handle), instance, handle)


def _instance_handles(nvml: Nvml, uuid: str, handle: Handle) -> Iterator[tuple[int, Handle]]:
    try:
        max_count = nvml.call("nvmlDeviceGetMaxMigDeviceCount", uuid, handle)
    except NvmlFailure:
        return
    for index in range(max_count):
        with suppress(NvmlFailure):
            yield index, nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", uuid, handle, index)


def _read_instance(nvml: Nvml, card: Device, index: int, handle: Handle, parent: Handle) -> Device:
    uuid = nvml.call_for_text("nvmlDeviceGetUUID", card.uuid, handle)
    name, raw = _read_name(nvml, uuid, handle, f"{card.name} MIG {index}")
    ids = tuple(
        int(nvml.call(call, uuid, handle)) for call in ("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId")
    )
    attributes = _read_quantities(_INSTANCE_ATTRIBUTES, lambda: nvml.call("nvmlDeviceGetAttributes", uuid, handle))
    facts = {
        "memory_total_bytes": _total_memory_reading(nvml, uuid, handle),
        **{fact: attributes[fact] for fact in ("multiprocessors", "mig_compute_slices")},
        # The driver tells only administrators where an instance lies.
        **_read_quantities(_PLACEMENT, lambda: _placement(nvml, card.uuid, parent, ids[0])),
    }
    profile = _PROFILE.search(name)
    return Device(
        uuid,
        name,
        index,
        card.pci_bus_id,
        card.uuid,
        (ids[0], ids[1]),
        raw,
        facts=facts,
        mig_profile=profile[0] if profile else _profile_name(attributes),
    )


_PROFILE: Final = re.compile(r"(\dc\.)?\dg\.\d+gb\S*")
_INSTANCE_ATTRIBUTES: Final = {
    "multiprocessors": "multiprocessorCount",
    "mig_compute_slices": "computeInstanceSliceCount",
    "gpu_slices": "gpuInstanceSliceCount",
    "megabytes": "memorySizeMB",
}
_PLACEMENT: Final = {"mig_first_slice": "start", "mig_memory_slices": "size"}


def _read_quantities(members: Mapping[str, str], call: Callable[[], Any]) -> dict[str, Reading]:
    """Return the members of the structure that `call` returns, by name, or the cause of their absence."""
    try:
        answer = call()
    except NvmlFailure as failure:
        return dict.fromkeys(members, missing(missing_reading_cause(failure.code)))
    return {name: Reading(getattr(answer, member)) for name, member in members.items()}


def _placement(nvml: Nvml, card_uuid: str, handle: Handle, instance: int) -> Any:
    found = nvml.call("nvmlDeviceGetGpuInstanceById", card_uuid, handle, instance)
    return nvml.call("nvmlGpuInstanceGetInfo", card_uuid, found).placement


def _profile_name(attributes: Mapping[str, Reading]) -> str:
    """Return an instance's profile as nvidia-smi names it, empty if the driver does not report its size."""
    slices, megabytes = attributes["gpu_slices"].value, attributes["megabytes"].value
    return f"{slices:.0f}g.{ceil(megabytes / 1024)}gb" if slices and megabytes else ""


def _read_name(nvml: Nvml, uuid: str, handle: Handle, fallback: str) -> tuple[str, str | None]:
    """Return a printable name of a GPU, and the driver's raw name if that is not valid text."""
    try:
        return nvml.call_for_text("nvmlDeviceGetName", uuid, handle), None
    except NvmlFailure as failure:
        raw = failure.raw.decode("ascii", "backslashreplace") if failure.raw else None
        return fallback or uuid, raw


def _read_pci_bus_id(nvml: Nvml, uuid: str, handle: Handle) -> str:
    try:
        place = nvml.call("nvmlDeviceGetPciInfo", uuid, handle).busId
    except (NvmlFailure, UnicodeDecodeError):
        return ""
    return place.decode("ascii", "replace") if isinstance(place, bytes) else str(place)


def _read_facts(nvml: Nvml, uuid: str, handle: Handle) -> dict[str, Reading]:
    queries = CardQueries(nvml, uuid, handle)
    facts = {query.name: queries.read(query) for query in FACT_QUERIES}
    total = facts["memory_total_bytes"] = _total_memory_reading(nvml, uuid, handle)
    if total.cause is Cause.NOT_SUPPORTED:
        # GB10 and Jetson have no memory but the CPU's, and NVML then reports none.
        facts |= {"unified_memory": Reading(1), "memory_total_bytes": Reading(psutil.virtual_memory().total)}
    for name, call, value_of in _COMPUTED_FACTS:
        try:
            facts[name] = checked_reading(BY_NAME[name], value_of(nvml.call(call, uuid, handle)))
        except NvmlFailure as failure:
            facts[name] = queries.reading_after_failure(name, failure)
    return facts


def _total_memory_reading(nvml: Nvml, uuid: str, handle: Handle) -> Reading:
    try:
        return checked_reading(BY_NAME["memory_total_bytes"], nvml.memory_bytes(uuid, handle)[0])
    except NvmlFailure as failure:
        return missing(missing_reading_cause(failure.code))
