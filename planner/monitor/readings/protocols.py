"""Protocols of data sources for the diagnosis and for summaries, which live histories and recordings implement."""

from collections.abc import Iterable, Iterator
from typing import Protocol, overload

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest


class Numbers(Protocol):
    """A sequence of numbers, such as an array."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[float]: ...
    @overload
    def __getitem__(self, key: int, /) -> float: ...
    @overload
    def __getitem__(self, key: slice, /) -> Iterable[float]: ...


class ReadingSeries(Protocol):
    """Readings of one quantity in order of time."""

    @property
    def times(self) -> Numbers:
        """Return the times, in monotonic seconds."""

    @property
    def values(self) -> Numbers:
        """Return the values, in the quantity's unit."""


class SeriesSource(Protocol):
    """A source of readings, such as the live history or a recording."""

    @property
    def inventory(self) -> Inventory:
        """Return the GPUs."""

    def series(self, owner: str, metric: str, /) -> ReadingSeries:
        """Return the readings of one quantity of a GPU, or of the host (`host`)."""


class DiagnosisSource(SeriesSource, Protocol):
    """A source of readings that also knows the current state, which the diagnosis needs."""

    @property
    def latest(self) -> Latest:
        """Return the current state."""

    @property
    def end(self) -> float | None:
        """Return the time of the last sample."""
