"""Setup check of the NVML binding, the driver, the readings of every GPU, and active faults, with advice."""

from collections import defaultdict
from collections.abc import Mapping
from importlib import metadata
from typing import Final, Literal, NamedTuple

from planner.errors import MonitorUnavailableError
from planner.installation import package_command
from planner.monitor.host.environment import HostEnvironment, PowerState, is_same_pci_address
from planner.monitor.readings.faults import LINK_FAULTS, Fault, Severity
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.metrics import DEVICE_METRICS, HOST_METRICS
from planner.monitor.readings.reading import EXPLANATIONS, Cause, Reading

Outcome = Literal["works", "partly", "fails", "note"]

_DISTRIBUTION: Final = "nvidia-ml-py"
_OUTCOMES: Final[Mapping[Severity, Outcome]] = {"error": "fails", "warning": "partly", "note": "note"}


class SetupCheck(NamedTuple):
    """Result of the setup check of `subject`, such as a GPU, as text (`found`), with advice if action is needed."""

    subject: str
    outcome: Outcome
    found: str
    advice: str = ""


def check_setup(
    latest: Latest, environment: HostEnvironment, pci_cards: Mapping[str, PowerState], binding_version: str | None
) -> tuple[SetupCheck, ...]:
    """Return the results of all checks; `pci_cards` are the GPUs that the system lists without the driver."""
    return (
        _binding_check(binding_version),
        _driver_check(latest),
        _pci_check(latest, pci_cards),
        *(_card_check(latest, device) for device in latest.inventory.devices),
        *(_fault_check(latest, fault) for fault in latest.inventory.faults),
        _readings_check(
            "Host (CPU, RAM, disks, network)",
            {metric.title: latest.host[metric.name] for metric in HOST_METRICS if metric.name in latest.host},
        ),
        SetupCheck("System", "note", _system_text(environment)),
        *_sampling_cost_checks(latest),
    )


def binding_version() -> str | None:
    """Return the version of the package nvidia-ml-py, None if it is not installed."""
    try:
        return metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None


def _binding_check(version: str | None) -> SetupCheck:
    if version is None:
        return SetupCheck("nvidia-ml-py", "fails", "not installed", f"Run: {package_command(_DISTRIBUTION)}")
    return SetupCheck("nvidia-ml-py", "works", f"version {version}")


def _driver_check(latest: Latest) -> SetupCheck:
    inventory = latest.inventory
    if inventory.driver_version:
        versions = f"{inventory.driver_version}, NVML {inventory.nvml_version}, CUDA {inventory.cuda_version}"
        return SetupCheck("Driver", "works", versions)
    others = dict.fromkeys(name for device in inventory.devices for name in device.driver.split(", ") if name)
    if others:
        return SetupCheck("Driver", "works", ", ".join(others))
    return SetupCheck("Driver", "fails", "cannot be reached; see State below")


def _pci_check(latest: Latest, pci_cards: Mapping[str, PowerState]) -> SetupCheck:
    if not pci_cards:
        return SetupCheck("PCI", "note", "the system lists no NVIDIA GPU")
    listed = [device.pci_bus_id for device in latest.inventory.devices]
    unknown = [address for address in pci_cards if not any(is_same_pci_address(bus_id, address) for bus_id in listed)]
    addresses = ", ".join(f"{address} ({state})" for address, state in pci_cards.items())
    if not unknown:
        return SetupCheck("PCI", "works", addresses)
    return SetupCheck(
        "PCI", "partly", addresses, f"The driver does not list {', '.join(unknown)}: check dmesg for NVRM lines."
    )


def _card_check(latest: Latest, device: Device) -> SetupCheck:
    subject = f"GPU {device.index} {device.name}" if device.mig_parent is None else f"Instance {device.name}"
    if device.state != "running":
        return SetupCheck(subject, "note" if device.state == "asleep" else "fails", device.state)
    readings = {metric.title: latest.reading(device.uuid, metric.name) for metric in DEVICE_METRICS}
    return _readings_check(subject, readings)


def _readings_check(subject: str, readings: Mapping[str, Reading]) -> SetupCheck:
    by_cause: defaultdict[Cause, list[str]] = defaultdict(list)
    for title, reading in readings.items():
        if reading.value is None:
            by_cause[reading.cause or Cause.NOT_YET].append(title)
    missing_count = sum(map(len, by_cause.values()))
    summary = f"{len(readings) - missing_count} of {len(readings)} readings available"
    reasons = (f"{EXPLANATIONS[cause]}: {', '.join(titles)}" for cause, titles in by_cause.items())
    return SetupCheck(subject, "works" if missing_count < len(readings) else "fails", "; ".join([summary, *reasons]))


def _fault_check(latest: Latest, fault: Fault) -> SetupCheck:
    names = {device.uuid: device.name for device in latest.inventory.devices}
    subject = names.get(fault.uuid or "", "State")
    detail = f" ({fault.detail})" if fault.detail else ""
    return SetupCheck(
        subject, _OUTCOMES[fault.description.severity], f"{fault.description.title}{detail}", fault.description.remedy
    )


def _system_text(environment: HostEnvironment) -> str:
    parts = [environment.system]
    if environment.is_container:
        parts.append("in a container")
    if environment.is_wsl:
        parts.append("under WSL")
    if environment.has_own_pids:
        parts.append("in its own PID namespace")
    return ", ".join(parts)


def _sampling_cost_checks(latest: Latest) -> tuple[SetupCheck, ...]:
    cost = latest.cost
    if cost is None:
        return ()
    summary = (
        f"a reading takes {cost.sweep_seconds * 1e3:.1f} ms, of which {cost.driver_seconds * 1e3:.1f} ms "
        f"in {cost.calls} driver {'call' if cost.calls == 1 else 'calls'}; {cost.memory_bytes / 2**20:.0f} MiB"
    )
    return (SetupCheck("This monitor", "note", summary),)


def current_blocking_fault(latest: Latest) -> Fault | None:
    """Return the fault that prevents reading all GPUs; None if a GPU can be read or no fault is known."""
    if any(device.state == "running" for device in latest.inventory.devices):
        return None
    return _worst_fault(latest)


def readings_blocking_fault(latest: Latest) -> Fault | None:
    """Return the fault that prevented reading all GPUs; None if any GPU has been read."""
    if any(latest.readings(device.uuid) for device in latest.inventory.devices):
        return None
    return _worst_fault(latest)


def unavailable_error(fault: Fault) -> MonitorUnavailableError:
    """Return the error for a fault that prevents reading all GPUs."""
    detail = f" ({fault.detail})" if fault.detail else ""
    see_also = "" if fault.kind in LINK_FAULTS else "See also: gpu-planner monitor --doctor"
    hint = " ".join(filter(None, (fault.description.remedy, see_also)))
    return MonitorUnavailableError(f"{fault.description.title}{detail}", hint, fault.kind.value)


def _worst_fault(latest: Latest) -> Fault | None:
    order: tuple[Severity, ...] = ("error", "warning", "note")
    return min(latest.inventory.faults, key=lambda fault: order.index(fault.description.severity), default=None)
