"""Waiting time of requests for a slot in a service that answers several at once."""

from typing import Final

_MAX_SLOTS: Final = 4_096
"""Number of slots above which the wait counts as 0: at 95 % utilization it is a millionth of a request's time (Erlang's
C formula)."""


def wait_seconds(arrivals_per_second: float, answered_per_second: float, slots: int) -> float | None:
    """Return the mean wait for one of `slots` in seconds, or None if the queue grows because arrivals exceed capacity.

    **Formula**: C(c, a) · s ÷ (c − a), a = c · arrivals ÷ answered, s = c ÷ answered.

    **Source**: A. K. Erlang, 1917 (M/M/c), by the recursion of the B formula.

    **Assumes** Poisson arrivals, and requests that take exponentially distributed times.
    """
    if arrivals_per_second >= answered_per_second:
        return None
    if slots > _MAX_SLOTS:
        return 0.0
    offered = slots * arrivals_per_second / answered_per_second
    blocked = 1.0
    for slot in range(1, slots + 1):
        blocked = offered * blocked / (slot + offered * blocked)
    waits = blocked / (1 - offered / slots * (1 - blocked))
    return waits * slots / answered_per_second / (slots - offered)
