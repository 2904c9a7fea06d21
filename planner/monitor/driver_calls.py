"""Calls into a driver: counted, timed, named while they run, and given up if they do not return."""

from collections.abc import Callable
from time import monotonic
from typing import ParamSpec, TypeVar

from planner.monitor.readings.wire import PendingCall

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class CallGivenUpError(BaseException):
    """Ends the work of a thread whose call returned after it was given up, see `DriverCalls.give_up_call`."""


class DriverCalls:
    """Calls of one driver or library, made from one thread at a time.

    `hanging` holds the calls that were given up and have not returned, by card.
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
