"""A single snapshot of all GPUs, complete once quantities that need two readings have a value."""

from collections.abc import Callable
from queue import Empty, Queue
from time import monotonic
from typing import Final

from planner.monitor.readings.faults import LINK_FAULTS, FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import Sample
from planner.monitor.settings import SamplerSettings, Timeouts
from planner.monitor.supervisor.remote import REMOTE_TIMEOUTS, RemoteAddress
from planner.monitor.supervisor.supervisor import Supervisor, Update

# The energy counter needs a second; all other quantities are read twice in that time.
_SETTINGS: Final = SamplerSettings(fast_seconds=0.5, slow_seconds=0.5, process_seconds=0.5)
_MIN_SAMPLES: Final = 3
# In addition to the time to open the driver, since many GPUs are read one after another.
_LONGEST_SECONDS: Final = 15.0
# Present in every slow reading, with or without a value.
_SLOW_METRIC: Final = "power_limit_watts"
_FATAL_FAULTS: Final = LINK_FAULTS | {FaultKind.SAMPLER_CRASHED, FaultKind.SAMPLER_FAILED, FaultKind.STUCK}


def take_snapshot(
    timeouts: Timeouts | None = None,
    listener: Callable[[Update], object] = lambda _update: None,
    address: RemoteAddress | None = None,
) -> Latest:
    """Return the current state of all GPUs, here or at `address`, after about a second, sooner if they are silent.

    `listener` receives every update in the meantime.
    """
    updates: Queue[Update] = Queue()
    timeouts = timeouts or (Timeouts() if address is None else REMOTE_TIMEOUTS)
    latest, counter = Latest(), _ReadingCounter()
    with Supervisor(updates.put, _SETTINGS, timeouts, address=address):
        deadline = monotonic() + timeouts.start + _LONGEST_SECONDS
        while not counter.is_complete(latest) and monotonic() < deadline:
            try:
                apply_update(latest, update := updates.get(timeout=max(0.0, deadline - monotonic())))
            except Empty:
                break
            counter.note(update)
            listener(update)
    return latest


def apply_update(latest: Latest, update: Update) -> None:
    """Update the current state with an inventory or sample."""
    if isinstance(update, Inventory):
        latest.note_inventory(update)
    else:
        latest.note_sample(update)


class _ReadingCounter:
    """Counts the readings of each GPU."""

    def __init__(self) -> None:
        self._samples = 0
        self._slow_reading_counts: dict[str, int] = {}
        self._has_inventory = False

    def note(self, update: Update) -> None:
        if isinstance(update, Sample):
            self._samples += 1
            for uuid, readings in update.devices.items():
                self._slow_reading_counts[uuid] = self._slow_reading_counts.get(uuid, 0) + (_SLOW_METRIC in readings)
        else:
            self._has_inventory = True

    def is_complete(self, latest: Latest) -> bool:
        silent = latest.inventory.silent_uuids
        running = [
            device.uuid
            for device in latest.inventory.devices
            if device.state == "running" and device.uuid not in silent
        ]
        kinds = {fault.kind for fault in latest.inventory.faults}
        # Opening a driver may take long: only one that stopped responding later, or failed, counts as silent.
        is_silent = bool(kinds & _FATAL_FAULTS) or (FaultKind.NOT_ANSWERING in kinds and self._samples > 0)
        is_read = all(self._slow_reading_counts.get(uuid, 0) > 1 for uuid in running)
        return self._has_inventory and (is_silent or (self._samples >= _MIN_SAMPLES and is_read))
