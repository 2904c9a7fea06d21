"""Supervisor that keeps a sampler running despite driver failures, and reports updates and faults."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, Queue
from threading import Thread
from time import monotonic, time
from typing import Final, NamedTuple

from planner.monitor.host.environment import is_same_pci_address
from planner.monitor.readings.faults import LINK_FAULTS, ActiveFaults, Fault, FaultKind, explain_sampler_exit
from planner.monitor.readings.inventory import Device, Inventory, is_known_uuid, sort_devices
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import WIRE_VERSION, ClockAnswer, Hello, Message, PendingCall
from planner.monitor.settings import BackOff, SamplerSettings, Timeouts, clamp_interval
from planner.monitor.supervisor.remote import (
    CLOCK_TOLERANCE_SECONDS,
    REMOTE_TIMEOUTS,
    RemoteAddress,
    clock_offset_text,
    explain_ssh_exit,
    plain_text,
)
from planner.monitor.supervisor.sampler_process import SamplerProcess


def is_startup_inventory(inventory: Inventory) -> bool:
    """Return whether an inventory is the empty inventory that a sampler sends before searching for GPUs."""
    return not (inventory.driver_version or inventory.devices or inventory.faults)


def merge_inventories(before: Inventory, now: Inventory, wall: float) -> Inventory:
    """Return the inventory `now`, completed with GPUs that only `before` lists; `wall` is in seconds since 1970.

    If the driver responds and lists other GPUs, a missing GPU is lost; otherwise it keeps its state. A GPU known
    only by its address (asleep, or impossible to open) is identified with the earlier GPU at that address.
    """
    listed = {device.uuid for device in now.devices}
    unlisted = [device for device in before.devices if device.uuid not in listed and _may_be_missed(device)]
    if not unlisted:
        return now
    # NVIDIA's GPUs are missed only if NVIDIA's driver responds; the system lists all others by itself.
    responds = any(device.state == "running" and not device.driver for device in now.devices)
    known_by_address = {
        placeholder.uuid: device
        for placeholder in now.devices
        for device in unlisted
        if _is_card_of_placeholder(placeholder, device)
    }
    identified = {device.uuid for device in known_by_address.values()}
    missing = [device for device in unlisted if device.uuid not in identified]
    versions = now if now.driver_version else before
    return Inventory(
        versions.driver_version,
        versions.nvml_version,
        versions.cuda_version,
        sort_devices(
            (
                *(_identified_device(device, known_by_address) for device in now.devices),
                *(replace(device, state="lost") if responds or device.driver else device for device in missing),
            )
        ),
        (
            *(_fault_of_identified_device(fault, known_by_address) for fault in now.faults),
            *(_lost_fault(device, before, wall) for device in missing if responds or device.driver),
        ),
        now.machine,
    )


def _may_be_missed(device: Device) -> bool:
    # Instances of a GPU come and go as they are made.
    return is_known_uuid(device.uuid) and device.mig_parent is None


def _is_card_of_placeholder(placeholder: Device, device: Device) -> bool:
    """Return whether `device` is the GPU that a placeholder stands for, by PCI address or driver index."""
    if placeholder.uuid.startswith("pci-"):
        return is_same_pci_address(device.pci_bus_id, placeholder.pci_bus_id)
    return placeholder.uuid == f"index-{device.index}"


def _identified_device(device: Device, known_by_address: Mapping[str, Device]) -> Device:
    """Return the known GPU at the address of a placeholder, with the placeholder's state; else `device`."""
    known = known_by_address.get(device.uuid)
    return device if known is None else replace(known, state=device.state)


def _fault_of_identified_device(fault: Fault, known_by_address: Mapping[str, Device]) -> Fault:
    """Return the fault of a placeholder as a fault of the known GPU at that address; else `fault`."""
    known = known_by_address.get(fault.uuid or "")
    return fault if known is None else replace(fault, uuid=known.uuid)


def _lost_fault(device: Device, before: Inventory, wall: float) -> Fault:
    since = {fault.key: fault.since_seconds for fault in before.faults}
    first_seen = since.get((FaultKind.LOST, device.uuid), wall)
    return Fault(FaultKind.LOST, first_seen, device.uuid, "no longer listed by the driver")


Update = Inventory | Sample
"""Update for listeners; an inventory comes before the samples of its GPUs."""

_OWN_FAULTS: Final = (FaultKind.NOT_ANSWERING, FaultKind.SAMPLER_CRASHED, FaultKind.SAMPLER_FAILED, FaultKind.STUCK)
_MAX_CHECK_SECONDS: Final = 1.0
# A machine that refuses will do so again until someone acts, and may block who tries too often.
_REFUSED_RETRY_SECONDS: Final = 300.0


class _SamplerEnded(NamedTuple):
    """Marker in the queue: the sampler has closed its pipe."""


class Supervisor:
    """Keeps a sampler running, here or on the machine at `address`.

    `listener` is called from the supervisor's thread, must return soon and never raise.

    Use it as a context manager, or call `start` and `stop`: after `stop` no process, thread or file of it remains,
    except a sampler that hangs in the kernel, which nothing can end.
    """

    def __init__(
        self,
        listener: Callable[[Update], None],
        settings: SamplerSettings | None = None,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] | None = None,
        address: RemoteAddress | None = None,
    ) -> None:
        self._listener, self._environment, self._address = listener, environment, address
        self._settings = settings or SamplerSettings()
        self._timeouts = timeouts or (Timeouts() if address is None else REMOTE_TIMEOUTS)
        self._retry = BackOff(self._timeouts.first_retry, self._timeouts.last_retry)
        # All actions on the sampler happen in one thread, so that callers wait for no lock and no pipe.
        self._queue: Queue[tuple[SamplerProcess, Message | _SamplerEnded] | Callable[[], None] | None] = Queue()
        self._child: SamplerProcess | None = None
        self._stuck: SamplerProcess | None = None
        self._thread: Thread | None = None
        self._faults = ActiveFaults()
        self._sampler_inventory = Inventory()
        self._reported_inventory = Inventory()
        self._machine = "" if address is None else address.host
        self._heard_at = self._cards_since = 0.0
        self._has_sample = self._is_released = self._waits_for_driver = False
        self._asked_at: float | None = None
        self._hung_at: float | None = None
        self._restart_at: float | None = None

    def __enter__(self) -> "Supervisor":
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """Return the sampler's PID, None while no sampler runs."""
        child = self._child
        return None if child is None else child.pid

    def start(self) -> None:
        """Start the sampler; may be called only once."""
        self._start_child(self._settings.driver_after_seconds)
        self._thread = Thread(target=self._supervise, name="supervisor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the sampler, which releases the driver, and wait for its end, at most `Timeouts.stop`."""
        if self._thread is None:
            return
        self._queue.put(None)
        self._thread.join(self._timeouts.stop)
        self._thread = None

    def set_interval(self, seconds: float) -> None:
        """Set the sampling interval in seconds, limited to the supported range."""
        self._queue.put(partial(self._apply_interval, clamp_interval(seconds)))

    def release(self) -> None:
        """Disconnect from the driver, so that it can be unloaded or the GPU can sleep; the host is still read."""
        self._queue.put(partial(self._apply_release, is_released=True))

    def resume(self) -> None:
        """Reconnect to the driver."""
        self._queue.put(partial(self._apply_release, is_released=False))

    def _apply_interval(self, seconds: float) -> None:
        self._settings = self._settings._replace(fast_seconds=seconds)
        self._send_command(interval=seconds)

    def _apply_release(self, *, is_released: bool) -> None:
        self._is_released = is_released
        if self._restart_at is not None and not is_released:
            self._restart_at = monotonic()
        self._send_command(**({"release": True} if is_released else {"resume": True}))

    def _send_command(self, **command: object) -> None:
        # Another machine gets its settings first, in answer to its greeting.
        if self._child is not None and (self._address is None or self._child.clock is not None):
            self._child.command(**command)

    def _supervise(self) -> None:
        self._report_inventory()
        while True:
            with suppress(Empty):
                item = self._queue.get(timeout=self._wait_seconds())
                if item is None:
                    break
                if callable(item):
                    item()
                elif item[0] is self._child:
                    self._handle_message(item[1])
            self._check_timeouts()
        self._stop_child()

    def _wait_seconds(self) -> float:
        now = monotonic()
        dues = [now + _MAX_CHECK_SECONDS]
        if self._child is not None:
            dues.append(self._deadline_seconds())
        if self._hung_at is not None:
            dues.append(self._hung_at + self._timeouts.kill)
        if self._restart_at is not None:
            dues.append(self._restart_at)
        return max(0.0, min(dues) - now)

    def _deadline_seconds(self) -> float:
        """Return the monotonic time at which a silent sampler must be asked what it is doing, or killed after that."""
        timeouts = self._timeouts
        if self._asked_at is None:
            quiet = timeouts.quiet if self._has_sample else max(timeouts.quiet, timeouts.quiet_start)
            return self._heard_at + self._settings.fast_seconds + quiet
        # Counted from the question, not from the last message: after a suspend, the silence would last hours.
        return self._asked_at + (timeouts.kill if self._has_sample else timeouts.start) - timeouts.quiet

    def _handle_message(self, message: Message | _SamplerEnded) -> None:
        if isinstance(message, _SamplerEnded):
            self._note_end()
        elif isinstance(message, Hello | ClockAnswer):
            self._note_greeting(message)
        elif isinstance(message, PendingCall) or message is None:
            self._note_pending_call(message)
        else:
            self._heard_at, self._asked_at = monotonic(), None
            self._faults.clear(FaultKind.REMOTE_SILENT)
            if not self._waits_for_driver:
                self._faults.clear(FaultKind.NOT_ANSWERING)
            if isinstance(message, Inventory):
                self._note_inventory(message)
            else:
                self._note_sample(message)

    def _note_inventory(self, inventory: Inventory) -> None:
        if not is_startup_inventory(inventory):
            self._sampler_inventory = merge_inventories(self._sampler_inventory, inventory, time())
            # What hangs in the kernel of another machine cannot be seen from here, and would pile up there.
            is_hung = self._address is None and any(fault.kind is FaultKind.NOT_ANSWERING for fault in inventory.faults)
            self._hung_at = (self._hung_at or monotonic()) if is_hung else None
            self._note_driver()
            self._report_inventory()

    def _note_driver(self) -> None:
        self._waits_for_driver = False
        self._faults.clear(*_OWN_FAULTS)

    def _note_sample(self, sample: Sample) -> None:
        self._has_sample = True
        now = monotonic()
        if not sample.devices:
            self._cards_since = now
        else:
            self._note_driver()
            if now - self._cards_since >= self._timeouts.healthy:
                self._retry.reset()
        self._report_inventory()
        self._listener(sample)

    def _note_greeting(self, message: Hello | ClockAnswer) -> None:
        """Note the name, the version and the clock of another machine, which has just begun to answer."""
        child, self._heard_at, self._asked_at = self._child, monotonic(), None
        assert child is not None  # whose message it is
        self._faults.clear(*LINK_FAULTS, FaultKind.REMOTE_SILENT, FaultKind.CLOCK_OFF)
        if isinstance(message, Hello):
            self._machine = plain_text(message.machine) or self._machine
            if message.wire != WIRE_VERSION:
                self._remove_child().kill(self._timeouts.end)
                program = plain_text(message.program) or f"version {message.wire} of the messages"
                self._note_link_fault(FaultKind.OTHER_VERSION, f"{program} there")
        elif child.clock is not None:
            self._send_command(interval=self._settings.fast_seconds)
            if self._is_released:
                self._send_command(release=True)
            if abs(offset := child.clock.offset_seconds) > CLOCK_TOLERANCE_SECONDS:
                self._faults.note(Fault(FaultKind.CLOCK_OFF, time(), detail=clock_offset_text(offset)))
        self._report_inventory()

    def _note_link_fault(self, kind: FaultKind, detail: str) -> None:
        """Note why another machine is not connected any more, and when to try again."""
        self._faults.clear(*(LINK_FAULTS - {kind}), FaultKind.REMOTE_SILENT, FaultKind.CLOCK_OFF)
        login = "" if self._address is None else self._address.login
        self._faults.note(Fault(kind, time(), detail=detail, login=login))
        must_wait = kind in LINK_FAULTS and kind is not FaultKind.UNREACHABLE
        self._restart_at = monotonic() + (_REFUSED_RETRY_SECONDS if must_wait else self._retry.next_seconds())
        self._report_inventory()

    def _note_pending_call(self, pending_call: PendingCall | None) -> None:
        if self._asked_at is None:
            return
        self._faults.clear(FaultKind.REMOTE_SILENT)
        detail = "driver call unknown" if pending_call is None else pending_call.call
        uuid = None if pending_call is None or not is_known_uuid(pending_call.subject) else pending_call.subject
        if uuid is not None:
            detail = f"{detail} of {uuid}"
        silent = monotonic() - self._heard_at
        self._faults.note(Fault(FaultKind.NOT_ANSWERING, time() - silent, detail=detail))
        self._report_inventory()

    def _check_timeouts(self) -> None:
        now = monotonic()
        self._reap_stuck_samplers()
        if self._restart_at is not None and now >= self._restart_at:
            self._restart_at = None
            self._start_child(self._retry.next_seconds() if self._address is None else 0.0)
            self._report_inventory()
        if self._hung_at is not None and now >= self._hung_at + self._timeouts.kill:
            self._kill_and_restart()
        elif self._child is None or now < self._deadline_seconds():
            return
        elif self._asked_at is None:
            self._asked_at = now
            self._child.command(where=True)
            if self._address is not None:
                self._faults.note(Fault(FaultKind.REMOTE_SILENT, time() - (now - self._heard_at)))
                self._report_inventory()
        else:
            self._kill_and_restart()

    def _kill_and_restart(self) -> None:
        """Kill a sampler that does not respond, and start another that opens the driver after a pause."""
        child = self._remove_child()
        if self._address is not None:
            child.kill(self._timeouts.end)
            self._note_link_fault(FaultKind.UNREACHABLE, "it stopped responding")
            return
        self._take_over_hang()
        if not any(fault.kind is FaultKind.NOT_ANSWERING for fault in self._faults.current):
            self._note_pending_call(None)
        if not child.kill(self._timeouts.end):
            self._stuck = child
            self._faults.note(Fault(FaultKind.STUCK, time()))
        self._report_inventory()
        self._start_child(float("inf") if self._stuck is not None else self._retry.next_seconds())

    def _take_over_hang(self) -> None:
        """Keep the fault that no GPU responds, which the sampler reported, until another one has opened the driver."""
        faults = self._sampler_inventory.faults
        hang = [fault for fault in faults if fault.kind is FaultKind.NOT_ANSWERING]
        for fault in hang:
            self._faults.note(fault)
        remaining = tuple(fault for fault in faults if fault not in hang)
        self._sampler_inventory = replace(self._sampler_inventory, faults=remaining)

    def _note_end(self) -> None:
        child = self._remove_child()
        child.kill(self._timeouts.end)
        if self._address is None:
            ending = explain_sampler_exit(child.exit_code, child.last_output)
        else:
            ending = explain_ssh_exit(child.exit_code, child.last_output, has_greeted=child.hello is not None)
        if ending.kind is None:
            self._start_child(0.0)
            return
        if self._address is not None:
            self._note_link_fault(ending.kind, ending.detail)
            return
        self._faults.note(Fault(ending.kind, time(), detail=ending.detail))
        self._report_inventory()
        if self._has_sample:
            self._start_child(self._retry.next_seconds())
        else:
            # The sampler fails at start, so the pause is before its start, not before opening the driver.
            self._restart_at = monotonic() + self._retry.next_seconds()

    def _reap_stuck_samplers(self) -> None:
        if self._stuck is not None and self._stuck.reap():
            self._stuck = None
            self._faults.clear(FaultKind.STUCK)
            self._send_command(resume=True)

    def _start_child(self, driver_after_seconds: float) -> None:
        settings = self._settings._replace(driver_after_seconds=driver_after_seconds)
        try:
            child = SamplerProcess(settings, self._enqueue_message, self._enqueue_end, self._environment, self._address)
        except OSError as error:
            if self._address is not None:
                self._note_link_fault(FaultKind.NO_SSH, str(error))
                return
            self._faults.note(Fault(FaultKind.SAMPLER_FAILED, time(), detail=str(error)))
            self._restart_at = monotonic() + self._retry.next_seconds()
            return
        self._child = child
        self._heard_at = self._cards_since = monotonic()
        self._has_sample, self._asked_at = False, None
        self._waits_for_driver = driver_after_seconds > 0
        if self._is_released:
            self._send_command(release=True)

    def _remove_child(self) -> SamplerProcess:
        child, self._child, self._hung_at = self._child, None, None
        assert child is not None  # only called while there is one
        return child

    def _enqueue_message(self, child: SamplerProcess, message: Message) -> None:
        self._queue.put((child, message))

    def _enqueue_end(self, child: SamplerProcess) -> None:
        self._queue.put((child, _SamplerEnded()))

    def _report_inventory(self) -> None:
        faults = (*self._sampler_inventory.faults, *self._faults.current)
        inventory = replace(self._sampler_inventory, faults=faults, machine=self._machine)
        if inventory != self._reported_inventory:
            self._reported_inventory = inventory
            self._listener(inventory)

    def _stop_child(self) -> None:
        child, self._child = self._child, None
        if child is not None and self._asked_at is not None:
            # The sampler does not respond: asking it to stop would only take time.
            child.kill(self._timeouts.end)
        elif child is not None:
            child.stop(self._timeouts.end)
        if self._stuck is not None:
            self._stuck.kill(0.0)
