"""`gpu-planner gpus --here`: the cards of this machine beside what the catalog knows of them."""

from collections.abc import Iterator

from pydantic_core import to_json

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.monitor.doctor import unavailable, what_blocked
from planner.monitor.readings.inventory import Device
from planner.monitor.supervisor.gathering import look_once
from planner.plan.measured import matching_gpus
from planner.present import format as fmt
from planner.present.catalog.detected_cards import fact_lines


def print_here(hardware: HardwareCatalog, *, as_json: bool) -> int:
    """Print the cards of this machine, matched with the catalog by name and memory.

    Raises:
        MonitorUnavailableError: If no card can be read, with the reason.
    """
    devices = [device for device in _devices() if device.mig_parent is None]
    found = [(device, matching_gpus(hardware, device)) for device in devices]
    if as_json:
        print(to_json([_record(device, gpus) for device, gpus in found], indent=2).decode())
    else:
        print("\n\n".join("\n".join(_lines(device, gpus)) for device, gpus in found))
    return 0


def _devices() -> tuple[Device, ...]:
    latest = look_once()
    fault = what_blocked(latest)
    if fault is not None:
        raise unavailable(fault)
    return latest.inventory.devices


def _record(device: Device, gpus: tuple[Gpu, ...]) -> dict[str, object]:
    return {
        "index": device.index,
        "uuid": device.uuid,
        "name": device.name,
        "facts": {name: reading.value for name, reading in device.facts.items()},
        "gpus": [gpu.id for gpu in gpus],
    }


def _lines(device: Device, gpus: tuple[Gpu, ...]) -> Iterator[str]:
    total = device.fact("memory_total_bytes")
    size = fmt.size(None if total is None else int(total))
    yield f"{device.index}: {device.name}, {size} reported by the driver"
    if len(gpus) == 1:
        gpu = gpus[0]
        figures = (fmt.bandwidth(gpu.bandwidth_bytes_per_s), fmt.power(gpu.board_power_watts))
        yield f"   in the catalog: {gpu.id} ({gpu.name}), {gpu.memory_label}, {', '.join(figures)}"
    elif gpus:
        yield f"   in the catalog one of: {', '.join(gpu.id for gpu in gpus)} (same name and memory)"
    else:
        yield "   not in the catalog under this name and memory; reported by the driver:"
        yield from (f"     {line}" for line in fact_lines(device))
