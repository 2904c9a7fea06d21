"""Current state of the GPUs and the host, accumulated from samples that each hold a part, and how GPUs are shared."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from planner.monitor.readings.faults import SILENCING_FAULTS, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, Link, Sample, SamplingCost

# Faults that prevent reading all GPUs. An imported log, which may list one GPU at a time, has none.
_BLOCKING_CAUSES: Final[Mapping[FaultKind, Cause]] = {
    FaultKind.RELEASED: Cause.RELEASED,
    FaultKind.NO_DRIVER: Cause.NO_ANSWER,
    FaultKind.NO_LIBRARY: Cause.NO_ANSWER,
    FaultKind.NO_BINDING: Cause.NO_ANSWER,
    FaultKind.WRONG_BINDING: Cause.NO_ANSWER,
    FaultKind.MISMATCH: Cause.NO_ANSWER,
    FaultKind.NO_PERMISSION: Cause.NO_ANSWER,
    FaultKind.DRIVER_ERROR: Cause.NO_ANSWER,
    FaultKind.NOT_ANSWERING: Cause.NO_ANSWER,
    FaultKind.STUCK: Cause.NO_ANSWER,
    FaultKind.SAMPLER_CRASHED: Cause.NO_ANSWER,
    FaultKind.SAMPLER_FAILED: Cause.NO_ANSWER,
    **dict.fromkeys(SILENCING_FAULTS, Cause.NO_ANSWER),
}


_MOST_XIDS: Final = 20


class SeenXid(NamedTuple):
    """An error number that the driver reported for a GPU, and when, in seconds since 1970."""

    uuid: str
    number: int
    wall_seconds: float


class Latest:
    """Current state: the latest reading of each quantity, the latest processes and the latest inventory.

    Readings from before the driver was released, or stopped responding, are dropped, also those of one GPU for which
    the driver stopped responding.
    """

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.processes: tuple[CardProcess, ...] = ()
        self.host: Mapping[str, Reading] = {}
        self.cores: tuple[float, ...] = ()
        self.cost: SamplingCost | None = None
        self.monotonic_seconds: float | None = None
        self.wall_seconds: float | None = None
        self.xids: tuple[SeenXid, ...] = ()
        self.links: Mapping[str, tuple[Link, ...]] = {}
        self._devices: dict[str, dict[str, Reading]] = {}
        self._blocked_by: Cause | None = None

    def note_inventory(self, inventory: Inventory) -> None:
        """Update the list of GPUs; the readings of a GPU that is not running, or is silent, are dropped."""
        self.inventory = inventory
        running = {device.uuid for device in inventory.devices if device.state == "running"} - inventory.silent_uuids
        self._devices = {uuid: readings for uuid, readings in self._devices.items() if uuid in running}
        self.processes = tuple(process for process in self.processes if process.uuid in running)
        self.links = {uuid: links for uuid, links in self.links.items() if uuid in running}
        # No sample says so: none arrives from a machine that is not connected.
        if any(fault.kind in SILENCING_FAULTS for fault in inventory.faults):
            self._blocked_by = Cause.NO_ANSWER
            self._devices, self.processes, self.host, self.cores = {}, (), {}, ()

    def note_sample(self, sample: Sample) -> None:
        """Update the readings and processes that the sample contains."""
        self.monotonic_seconds, self.wall_seconds = sample.monotonic_seconds, sample.wall_seconds
        self.host = {**self.host, **sample.host}
        self.cores, self.cost = sample.cores, sample.cost
        seen = (SeenXid(xid.uuid, xid.number, sample.wall_seconds) for xid in sample.xids)
        self.xids = (*self.xids, *seen)[-_MOST_XIDS:]
        self._blocked_by = None if sample.devices else self._blocking_cause()
        if self._blocked_by is not None:
            self._devices, self.processes, self.links = {}, (), {}
        self.links = {**self.links, **sample.links}
        for uuid, readings in sample.devices.items():
            self._devices.setdefault(uuid, {}).update(readings)
        if sample.processes is not None:
            self.processes = sample.processes

    def readings(self, uuid: str) -> Mapping[str, Reading]:
        """Return the latest readings of one GPU; empty if the GPU is not running."""
        return self._devices.get(uuid, {})

    def reading(self, uuid: str, name: str) -> Reading:
        """Return the latest reading of a quantity of one GPU, or the cause of its absence."""
        known = self._devices.get(uuid, {}).get(name)
        if known is not None:
            return known
        state = next((device.state for device in self.inventory.devices if device.uuid == uuid), "running")
        silent = Cause.NO_ANSWER if uuid in self.inventory.silent_uuids else Cause.NOT_YET
        return missing({"lost": Cause.LOST, "asleep": Cause.ASLEEP}.get(state, self._blocked_by or silent))

    def _blocking_cause(self) -> Cause | None:
        """Return the cause of missing readings if a fault prevents reading all GPUs, else None."""
        causes = (_BLOCKING_CAUSES.get(fault.kind) for fault in self.inventory.faults if fault.uuid is None)
        return next((cause for cause in causes if cause is not None), None)


SharingKind = Literal["mig", "mps", "time-slicing"]


def card_sharing(device: Device, latest: Latest) -> SharingKind | None:
    """Return how processes share a GPU, None if at most one computes on it."""
    if device.fact("mig_enabled"):
        return "mig"
    kinds = [process.kind for process in latest.processes if process.uuid == device.uuid]
    if "mps" in kinds:
        return "mps"
    # Kernels of different processes do not run at the same time without MPS.
    return "time-slicing" if kinds.count("compute") > 1 else None
