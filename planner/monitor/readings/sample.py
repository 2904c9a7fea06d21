"""What was read at one time: every card with its processes, the machine, and what the reading itself cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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

    @property
    def quantities(self) -> dict[str, Reading]:
        """Return what the driver measured of it, by the names of the fields."""
        names = ("memory_bytes", "sm_fraction", "memory_controller_fraction")
        return {name: getattr(self, name) for name in names}


Readings = Mapping[str, Reading]
"""Readings by the names of `metrics`. What is not there was not read this time: its last reading stands."""


class Cost(NamedTuple):
    """What one look cost: its time, the calls into the driver and the time they took, and the sampler's own shares.

    `field_microseconds` is the time that the driver itself says it took to update field values, all together.
    """

    sweep_seconds: float
    calls: int
    driver_seconds: float
    field_microseconds: int
    cpu_fraction: float
    memory_bytes: int


class Xid(NamedTuple):
    """An error that the driver reported of a card, with NVIDIA's number for its kind."""

    uuid: str
    number: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at everything.

    `monotonic_seconds` orders samples and measures spans, also across a change of the clock; `wall_seconds` are since
    1970. Cards are known by their UUIDs. `processes` is None where they were not looked at this time. `cores` has the
    share of each CPU.
    """

    monotonic_seconds: float
    wall_seconds: float
    devices: Mapping[str, Readings] = field(default_factory=dict)
    host: Readings = field(default_factory=dict)
    cores: tuple[float, ...] = ()
    processes: tuple[CardProcess, ...] | None = None
    xids: tuple[Xid, ...] = ()
    cost: Cost | None = None
