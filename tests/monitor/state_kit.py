"""Devices and states that several test files share."""

from planner.monitor.host.environment import HostEnvironment
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample, SamplingCost

A, B = "GPU-a", "GPU-b"
DEVICE = Device(A, "NVIDIA A", 0, "00000000:01:00.0", facts={"memory_total_bytes": Reading(100)})


PLAIN = HostEnvironment("Linux 6", is_container=False, is_wsl=False, has_own_pids=False)


HOST = HostProcess("python", "me", "python train.py", 0.0, 0.5, 2**30, is_own=True)


def latest_of(*devices, faults=(), **readings):
    latest = Latest()
    latest.note_inventory(Inventory("580", "13", "13.0", devices, faults))
    values = {name: value if isinstance(value, tuple) else Reading(value) for name, value in readings.items()}
    processes = (
        CardProcess(7, A, "compute", Reading(10), host=HOST),
        CardProcess(8, A, "compute", missing(Cause.HIDDEN)),
    )
    latest.note_sample(
        Sample(
            1.0,
            2.0,
            {A: values} if values else {},
            {"cpu_fraction": Reading(0.5), "io_wait_fraction": missing(Cause.NOT_SUPPORTED)},
            (0.5, 0.5),
            processes,
            cost=SamplingCost(0.002, 90, 0.001, 40, 0.003, 2**24),
        )
    )
    return latest
