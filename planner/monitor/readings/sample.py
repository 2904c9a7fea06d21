"""Samples: all readings of one instant, with processes, host and cost; and the pause after which one is missing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal, NamedTuple

from planner.monitor.readings.reading import Cause, Reading, missing

ProcessKind = Literal["compute", "graphics", "mps"]

_NOT_YET = missing(Cause.NOT_YET)


class HostProcess(NamedTuple):
    """A process as the operating system reports it; times are in seconds since 1970."""

    name: str
    user: str
    command: str
    started_seconds: float
    cpu_fraction: float | None
    """Fraction of one core; None until the second reading."""
    memory_bytes: int
    is_own: bool
    """Whether the process belongs to the user of this program."""
    tree_cpu_fraction: float | None = None
    """`cpu_fraction` with all descendants, such as the processes that load data; None until the second reading."""


@dataclass(frozen=True, slots=True)
class CardProcess:
    """One process on one GPU.

    `host` is None if the operating system does not know the process: the driver's PID belongs to another PID namespace
    (a container), or the process has just ended. `is_reliable` is False if the driver's values are impossible: more
    memory than the GPU has, or memory in place of the PID.
    """

    pid: int
    uuid: str
    kind: ProcessKind
    memory_bytes: Reading
    sm_fraction: Reading = _NOT_YET
    memory_controller_fraction: Reading = _NOT_YET
    host: HostProcess | None = None
    is_reliable: bool = True
    encoder_fraction: Reading = _NOT_YET
    decoder_fraction: Reading = _NOT_YET

    @property
    def quantities(self) -> dict[str, Reading]:
        """Return the readings of the process, by field name."""
        return {name: getattr(self, name) for name in PROCESS_QUANTITIES}


PROCESS_QUANTITIES: Final = (
    "memory_bytes",
    "sm_fraction",
    "memory_controller_fraction",
    "encoder_fraction",
    "decoder_fraction",
)
"""Quantities of a process on a GPU, by field name; old recordings lack the last two."""


Readings = Mapping[str, Reading]
"""Readings by metric name. A metric that is absent from a sample was not read; its last reading stays valid."""


class SamplingCost(NamedTuple):
    """Cost of one sample: its duration, the calls into the driver and their duration, and the sampler's own usage.

    `field_microseconds` is the total time that the driver reports for updating field values.
    """

    sweep_seconds: float
    calls: int
    driver_seconds: float
    field_microseconds: int
    cpu_fraction: float
    memory_bytes: int


class Link(NamedTuple):
    """One NVLink of a GPU; the errors are counted since the driver was loaded. None is not reported.

    The speed is of one direction.
    """

    number: int
    is_active: bool
    bytes_per_s: float | None = None
    replay_errors: int | None = None
    recovery_errors: int | None = None
    crc_errors: int | None = None

    @property
    def errors(self) -> int:
        """Return the number of all errors."""
        return sum(count or 0 for count in self[3:])


class Xid(NamedTuple):
    """An error that the driver reported for a GPU, with NVIDIA's error number."""

    uuid: str
    number: int


@dataclass(frozen=True, slots=True)
class Sample:
    """All readings of one instant.

    `monotonic_seconds` orders samples and measures durations, even if the wall clock is changed; `wall_seconds` are
    since 1970. GPUs are identified by UUID. `processes` is None if the sample does not include them. `cores` is the
    used fraction of each CPU core. `cost` is None where the sampler started or connected to the driver, which takes
    longer than reading. `links` are the NVLinks of the GPUs whose links were read for this sample.
    """

    monotonic_seconds: float
    wall_seconds: float
    devices: Mapping[str, Readings] = field(default_factory=dict)
    host: Readings = field(default_factory=dict)
    cores: tuple[float, ...] = ()
    processes: tuple[CardProcess, ...] | None = None
    xids: tuple[Xid, ...] = ()
    cost: SamplingCost | None = None
    links: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)


LATE: Final = 2.5
"""Pause, in typical sampling intervals, after which readings count as missing."""
# Sampling ten times a second is jittery: a reading within this time is never late.
_MIN_PAUSE_SECONDS: Final = 1.0


def late_seconds(interval_seconds: float) -> float:
    """Return the pause in seconds beyond which readings are missing, for a typical sampling interval."""
    return max(LATE * interval_seconds, _MIN_PAUSE_SECONDS)


class TypicalInterval:
    """Typical interval between readings: the longer of the last two, so that one early reading makes no gap."""

    __slots__ = ("_before", "_last")

    def __init__(self) -> None:
        self._last = self._before = 0.0

    @property
    def late_seconds(self) -> float:
        """Return the pause in seconds beyond which readings are missing; infinite before the second reading."""
        typical = max(self._last, self._before)
        return late_seconds(typical) if typical else inf

    def is_late(self, seconds: float) -> bool:
        """Return whether a pause of `seconds` means missing readings; never before the second reading."""
        typical = self._last if self._last > self._before else self._before
        # Called for each reading: the cheap comparison comes first.
        return seconds > LATE * typical > 0 and seconds > late_seconds(typical)

    def note(self, seconds: float) -> None:
        """Record the interval in seconds between the last two readings."""
        self._before, self._last = self._last, seconds
