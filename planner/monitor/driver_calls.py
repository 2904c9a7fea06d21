"""Calls into a driver: counted, timed, named while they run, and given up if they do not return."""

from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar

from planner.monitor.readings.wire import PendingCall
from planner.monitor.settings import BackOff

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class CallGivenUpError(BaseException):
    """Ends the work of a thread whose call returned after it was given up, see `DriverCalls.give_up_call`."""


class DriverCalls:
    """Calls of one driver or library, made from one thread at a time.

    `hanging` holds the calls that were given up and have not returned, by GPU.
    """

    def __init__(self) -> None:
        # At most one. A list changes at once: of two threads that remove a call from it, one fails.
        self._pending: list[tuple[str, str, float]] = []
        self.hanging: dict[str, PendingCall] = {}
        self.calls = 0
        self.driver_seconds = 0.0
        self.field_microseconds = 0

    @property
    def pending_call(self) -> PendingCall | None:
        """Return the call in progress, None if there is none; may be called from any thread."""
        pending = tuple(self._pending)
        return PendingCall(*pending[0]) if pending else None

    def give_up_call(self, seconds: float) -> PendingCall | None:
        """Give up the call in progress if it has lasted for `seconds`, and return it; else return None.

        Afterwards another thread may call the driver. If the call ever returns, it raises `CallGivenUpError`.
        """
        call = self.pending_call
        if call is None or monotonic() - call.since_seconds < seconds:
            return None
        self.hanging[call.subject] = call
        try:
            self._pending.remove(call)
        except ValueError:
            # It has just returned.
            del self.hanging[call.subject]
            return None
        return call

    def timed(
        self,
        name: str,
        card: str,
        function: Callable[_Parameters, _Result],
        *arguments: _Parameters.args,
        **options: _Parameters.kwargs,
    ) -> _Result:
        """Call `function` as the pending call `name` on `card` (empty: on none); count the call and its time."""
        began = monotonic()
        pending = (name, card, began)
        self._pending.append(pending)
        self.calls += 1
        try:
            return function(*arguments, **options)
        finally:
            try:
                self._pending.remove(pending)
            except ValueError:
                del self.hanging[card]
                raise CallGivenUpError from None
            self.driver_seconds += monotonic() - began


ALL_CARDS: Final = ""
"""Subject of a driver call that concerns no single GPU."""

_FIRST_PAUSE_SECONDS: Final = 1.0
# Shorter than the time after which a sampler that reads no GPU is killed.
_LONGEST_PAUSE_SECONDS: Final = 5.0


class HangingCallError(Exception):
    """A driver call does not return; its GPU must not be read until it does."""


class DriverReader:
    """Reads the driver in a thread of its own, and waits for no call longer than `hang_seconds`.

    A call that lasts longer is left behind with its thread, and its GPU is silent: until the call returns, and then
    for a pause that doubles each time, since each such call delays all other GPUs. So there is at most one call at a
    time besides those that hang, of which each GPU has at most one.
    """

    def __init__(self, calls: DriverCalls, hang_seconds: float) -> None:
        self._calls, self._hang_seconds = calls, hang_seconds
        self._worker: _Worker | None = None
        self._silent: dict[str, PendingCall] = {}
        self._pauses: dict[str, BackOff] = {}
        self._pause_ends: dict[str, float] = {}

    @property
    def silent(self) -> Mapping[str, PendingCall]:
        """Return the silent GPUs with the calls that hang or hung; `ALL_CARDS` for none in particular."""
        return self._silent

    def end_pauses(self, now: float) -> None:
        """Read GPUs again whose call has returned and whose pause is over at the monotonic time `now`."""
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
