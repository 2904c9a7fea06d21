"""Waiting time of requests for a slot in a service that answers several at once."""

from typing import Final

_MANY_PLACES: Final = 4_096
"""Slots from which the wait is 0: a millionth of a request's time at 95 % utilization (Erlang's C formula)."""


def wait_seconds(arrivals_per_second: float, answered_per_second: float, places: int) -> float | None:
    """Return the mean wait for one of `places`, or None if arrivals exceed the capacity, so that the queue grows.

    **Formula**: C(c, a) · s ÷ (c − a), a = c · arrivals ÷ answered, s = c ÷ answered.

    **Source**: A. K. Erlang, 1917 (M/M/c), by the recursion of the B formula.

    **Assumes** Poisson arrivals, and requests that take exponentially distributed times.
    """
    if arrivals_per_second >= answered_per_second:
        return None
    if places > _MANY_PLACES:
        return 0.0
    offered = places * arrivals_per_second / answered_per_second
    blocked = 1.0
    for place in range(1, places + 1):
        blocked = offered * blocked / (place + offered * blocked)
    waits = blocked / (1 - offered / places * (1 - blocked))
    return waits * places / answered_per_second / (places - offered)
