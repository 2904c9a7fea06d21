"""Sharing of a card by processes: by MIG, by MPS, or one after another."""

from typing import Literal

from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import Latest

SharingKind = Literal["mig", "mps", "time-slicing"]


def card_sharing(device: Device, latest: Latest) -> SharingKind | None:
    """Return how processes share a card, None if at most one computes on it."""
    if device.fact("mig_enabled"):
        return "mig"
    kinds = [process.kind for process in latest.processes if process.uuid == device.uuid]
    if "mps" in kinds:
        return "mps"
    # Kernels of different processes do not run at the same time without MPS.
    return "time-slicing" if kinds.count("compute") > 1 else None
