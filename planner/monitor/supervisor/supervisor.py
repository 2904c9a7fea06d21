"""Supervisor that keeps a sampler running whatever the driver does, and reports its updates and faults."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, Queue
from threading import Thread
from time import monotonic, time
from typing import Final, NamedTuple

from planner.monitor.readings.faults import ActiveFaults, Fault, FaultKind, explain_sampler_exit
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import Message, PendingCall
from planner.monitor.settings import BackOff, SamplerSettings, Timeouts, bounded
from planner.monitor.supervisor.roster import is_startup_inventory, merge_inventories
from planner.monitor.supervisor.sampler_process import SamplerProcess

Update = Inventory | Sample
"""An update for listeners. A sample follows the inventory that it belongs to."""

_OWN_FAULTS: Final = (FaultKind.NOT_ANSWERING, FaultKind.SAMPLER_CRASHED, FaultKind.SAMPLER_FAILED, FaultKind.STUCK)
_LOOK_SECONDS: Final = 1.0


class _Ended(NamedTuple):
    """The sampler closed its pipe."""


class Supervisor:
    """Runs the sampler; `listener` is called from the supervisor's thread, must return soon and never raise.

    Use it as a context manager, or call `start` and `stop`: after `stop` no process, thread or file of it remains,
    except a sampler that hangs in the kernel, which nothing can end.
    """

    def __init__(
        self,
        listener: Callable[[Update], None],
        settings: SamplerSettings | None = None,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._listener, self._environment = listener, environment
        self._settings, self._timeouts = settings or SamplerSettings(), timeouts or Timeouts()
        self._retry = BackOff(self._timeouts.first_retry, self._timeouts.last_retry)
        # All that is done to the sampler is done in one thread: who asks for it waits for no lock and no pipe.
        self._queue: Queue[tuple[SamplerProcess, Message | _Ended] | Callable[[], None] | None] = Queue()
        self._child: SamplerProcess | None = None
        self._stuck: SamplerProcess | None = None
        self._thread: Thread | None = None
        self._book = ActiveFaults()
        self._from_child = Inventory()
        self._reported = Inventory()
        self._heard_at = self._cards_since = 0.0
        self._has_sample = self._is_released = self._waits_for_driver = False
        self._asked_at: float | None = None
        self._restart_at: float | None = None

    def __enter__(self) -> "Supervisor":
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """Return the sampler's PID, None while there is none."""
        child = self._child
        return None if child is None else child.pid

    def start(self) -> None:
        """Start the sampler; once only."""
        self._start_child(self._settings.driver_after_seconds)
        self._thread = Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the sampler, release the driver, and wait for both, no longer than `Timeouts.stop`."""
        if self._thread is None:
            return
        self._queue.put(None)
        self._thread.join(self._timeouts.stop)
        self._thread = None

    def set_interval(self, seconds: float) -> None:
        """Set the sampling interval, limited to the supported range."""
        self._queue.put(partial(self._take_interval, bounded(seconds)))

    def release(self) -> None:
        """Release the driver, so that it can be unloaded or the card can sleep; the host is still read."""
        self._queue.put(partial(self._take_released, is_released=True))

    def resume(self) -> None:
        """Reconnect to the driver."""
        self._queue.put(partial(self._take_released, is_released=False))

    def _take_interval(self, seconds: float) -> None:
        self._settings = self._settings._replace(fast_seconds=seconds)
        self._command(interval=seconds)

    def _take_released(self, *, is_released: bool) -> None:
        self._is_released = is_released
        self._command(**({"release": True} if is_released else {"resume": True}))

    def _command(self, **command: object) -> None:
        if self._child is not None:
            self._child.command(**command)

    def _run(self) -> None:
        self._report_inventory()
        while True:
            with suppress(Empty):
                came = self._queue.get(timeout=self._wait_seconds())
                if came is None:
                    break
                if callable(came):
                    came()
                elif came[0] is self._child:
                    self._hear(came[1])
            self._check()
        self._finish()

    def _wait_seconds(self) -> float:
        """Return how long to wait for a message before the next check."""
        now = monotonic()
        dues = [now + _LOOK_SECONDS]
        if self._child is not None:
            dues.append(self._due())
        if self._restart_at is not None:
            dues.append(self._restart_at)
        return max(0.0, min(dues) - now)

    def _due(self) -> float:
        """Return when the sampler's silence requires the next step."""
        timeouts = self._timeouts
        if self._asked_at is None:
            return self._heard_at + self._settings.fast_seconds + timeouts.quiet
        # Not from when it was last heard: a machine that slept would find it silent for hours.
        return self._asked_at + (timeouts.kill if self._has_sample else timeouts.start) - timeouts.quiet

    def _hear(self, message: Message | _Ended) -> None:
        if isinstance(message, _Ended):
            self._note_end()
        elif isinstance(message, PendingCall) or message is None:
            self._note_busy(message)
        else:
            self._heard_at, self._asked_at = monotonic(), None
            if not self._waits_for_driver:
                self._book.clear(FaultKind.NOT_ANSWERING)
            if isinstance(message, Inventory):
                self._note_inventory(message)
            else:
                self._note_sample(message)

    def _note_inventory(self, inventory: Inventory) -> None:
        if not is_startup_inventory(inventory):
            self._from_child = merge_inventories(self._from_child, inventory, time())
            self._note_driver()
            self._report_inventory()

    def _note_driver(self) -> None:
        """Record that the driver, or its absence, was reported again."""
        self._waits_for_driver = False
        self._book.clear(*_OWN_FAULTS)

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

    def _note_busy(self, busy: PendingCall | None) -> None:
        if self._asked_at is None:
            return
        detail = "the sampler does not say why" if busy is None else busy.call
        uuid = None if busy is None or not busy.subject.startswith(("GPU-", "MIG-")) else busy.subject
        if uuid is not None:
            detail = f"{detail} of {uuid}"
        silent = monotonic() - self._heard_at
        self._book.note(Fault(FaultKind.NOT_ANSWERING, time() - silent, detail=detail))
        self._report_inventory()

    def _check(self) -> None:
        now = monotonic()
        self._reap_stuck()
        if self._restart_at is not None and now >= self._restart_at:
            self._restart_at = None
            self._start_child(self._retry.next_seconds())
            self._report_inventory()
        if self._child is None or now < self._due():
            return
        if self._asked_at is None:
            self._asked_at = now
            self._child.command(where=True)
        else:
            self._kill()

    def _kill(self) -> None:
        """Kill a sampler that does not respond, and leave the driver alone for a while."""
        child = self._take_child()
        if not any(fault.kind is FaultKind.NOT_ANSWERING for fault in self._book.current):
            self._note_busy(None)
        if not child.kill(self._timeouts.end):
            self._stuck = child
            self._book.note(Fault(FaultKind.STUCK, time()))
        self._report_inventory()
        self._start_child(float("inf") if self._stuck is not None else self._retry.next_seconds())

    def _note_end(self) -> None:
        child = self._take_child()
        child.kill(self._timeouts.end)
        ending = explain_sampler_exit(child.exit_code, child.printed)
        if ending.kind is None:
            self._start_child(0.0)
            return
        self._book.note(Fault(ending.kind, time(), detail=ending.detail))
        self._report_inventory()
        if self._has_sample:
            self._start_child(self._retry.next_seconds())
        else:
            # It cannot even begin: it is not the driver that must be waited for.
            self._restart_at = monotonic() + self._retry.next_seconds()

    def _reap_stuck(self) -> None:
        if self._stuck is not None and self._stuck.reap():
            self._stuck = None
            self._book.clear(FaultKind.STUCK)
            self._command(resume=True)

    def _start_child(self, driver_after_seconds: float) -> None:
        settings = self._settings._replace(driver_after_seconds=driver_after_seconds)
        try:
            child = SamplerProcess(settings, self._pass_on, self._pass_on_end, self._environment)
        except OSError as error:
            self._book.note(Fault(FaultKind.SAMPLER_FAILED, time(), detail=str(error)))
            self._restart_at = monotonic() + self._retry.next_seconds()
            return
        self._child = child
        self._heard_at = self._cards_since = monotonic()
        self._has_sample, self._asked_at = False, None
        self._waits_for_driver = driver_after_seconds > 0
        if self._is_released:
            child.command(release=True)

    def _take_child(self) -> SamplerProcess:
        child, self._child = self._child, None
        assert child is not None  # only called while there is one
        return child

    def _pass_on(self, child: SamplerProcess, message: Message) -> None:
        self._queue.put((child, message))

    def _pass_on_end(self, child: SamplerProcess) -> None:
        self._queue.put((child, _Ended()))

    def _report_inventory(self) -> None:
        inventory = replace(self._from_child, faults=(*self._from_child.faults, *self._book.current))
        if inventory != self._reported:
            self._reported = inventory
            self._listener(inventory)

    def _finish(self) -> None:
        child, self._child = self._child, None
        if child is not None and self._asked_at is not None:
            # It is silent already: asking it to end would only take time.
            child.kill(self._timeouts.end)
        elif child is not None:
            child.stop(self._timeouts.end)
        if self._stuck is not None:
            self._stuck.kill(0.0)
