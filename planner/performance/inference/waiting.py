"""How long requests wait for a place where several are answered at once."""

from typing import Final

_MANY_PLACES: Final = 4_096
"""From so many places on nobody waits: a millionth of a request's time where 95 % are busy (Erlang's C formula)."""


def wait_seconds(arrivals_per_second: float, answered_per_second: float, places: int) -> float | None:
    """Return the mean wait for one of `places`, or None where no more is answered than arrives: the queue only grows.

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
