"""Reading of the driver in a thread, which is left behind in a call that does not return."""

from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, Final, TypeVar

from planner.monitor.driver_calls import CallGivenUpError, DriverCalls
from planner.monitor.readings.wire import PendingCall
from planner.monitor.settings import BackOff

ALL_CARDS: Final = ""
"""Subject of a driver call that concerns no single card."""

_FIRST_PAUSE_SECONDS: Final = 1.0
# Shorter than the time after which a sampler that reads no card is killed.
_LONGEST_PAUSE_SECONDS: Final = 5.0

_Result = TypeVar("_Result")


class HangingCallError(Exception):
    """A driver call does not return; its card must not be read until it does."""


class DriverReader:
    """Reads the driver in a thread of its own, and waits for no call longer than `hang_seconds`.

    A call that lasts longer is left behind with its thread, and its card is silent: until the call returns, and then
    for a pause that doubles each time, since each such call delays all other cards. So there is at most one call at a
    time besides those that hang, of which each card has at most one.
    """

    def __init__(self, calls: DriverCalls, hang_seconds: float) -> None:
        self._calls, self._hang_seconds = calls, hang_seconds
        self._worker: _Worker | None = None
        self._silent: dict[str, PendingCall] = {}
        self._pauses: dict[str, BackOff] = {}
        self._pause_ends: dict[str, float] = {}

    @property
    def silent(self) -> Mapping[str, PendingCall]:
        """Return the silent cards with the calls that hang or hung; `ALL_CARDS` for none in particular."""
        return self._silent

    def end_pauses(self, now: float) -> None:
        """Let cards speak again whose call has returned, and whose pause is over at the monotonic time `now`."""
        for card in self._silent.keys() - self._calls.hanging.keys():
            if card not in self._pause_ends:
                self._pause_ends[card] = now + self._pauses[card].next_seconds()
            elif now >= self._pause_ends[card]:
                del self._silent[card], self._pause_ends[card]

    def read(self, work: Callable[[], _Result]) -> _Result:
        """Return the result of `work`, which calls the driver, or raise what it raises.

        Raises:
            HangingCallError: If a call does not return.
        """
        worker = self._worker = self._worker or _Worker()
        worker.work.put(work)
        while (outcome := worker.outcome(self._seconds_left())) is None:
            call = self._calls.give_up_call(self._hang_seconds)
            if call is not None:
                self._worker = None
                self._silent[call.subject] = call
                self._pauses.setdefault(call.subject, BackOff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS))
                raise HangingCallError
        result, error = outcome
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the thread, unless it hangs."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _seconds_left(self) -> float:
        """Return for how long to wait for the call in progress, or for the next one."""
        call = self._calls.pending_call
        return self._hang_seconds if call is None else max(0.0, call.since_seconds + self._hang_seconds - monotonic())


class _Worker:
    """Thread that does the work that it is given, until a call of it is given up."""

    def __init__(self) -> None:
        self.work: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._thread = Thread(target=self._run, name="driver", daemon=True)
        self._thread.start()

    def outcome(self, seconds: float) -> tuple[Any, BaseException | None] | None:
        """Return the result of the work or its error, None if the work takes longer than `seconds`."""
        try:
            return self._outcomes.get(timeout=seconds)
        except Empty:
            return None

    def end(self) -> None:
        """End the thread after its work."""
        self.work.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (work := self.work.get()) is not None:
            try:
                self._outcomes.put((work(), None))
            except CallGivenUpError:
                return
            except BaseException as error:  # noqa: BLE001  # raised by the thread that asked for the work
                self._outcomes.put((None, error))
