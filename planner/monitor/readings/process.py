"""A process that holds a card, as the driver and the operating system tell of it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.monitor.readings.reading import Cause, Reading, missing

Kind = Literal["compute", "graphics", "mps"]

_NOT_YET = missing(Cause.NOT_YET)


class HostProcess(NamedTuple):
    """What the operating system tells of a process; times are in seconds since 1970."""

    name: str
    user: str
    command: str
    started_seconds: float
    cpu_fraction: float | None
    """Of one core; None until it was looked at twice."""
    memory_bytes: int
    is_own: bool
    """Whether it belongs to the user who looks."""


@dataclass(frozen=True, slots=True)
class CardProcess:
    """One process on one card.

    `host` is None where the operating system does not know the process: the driver's numbers are those of another
    process-id space (a container), or it has just ended. `is_reliable` is False where what the driver says cannot be
    true: more memory than the card has, or memory in place of the number.
    """

    pid: int
    uuid: str
    kind: Kind
    memory_bytes: Reading
    sm_fraction: Reading = _NOT_YET
    memory_controller_fraction: Reading = _NOT_YET
    host: HostProcess | None = None
    is_reliable: bool = True
