"""What is asked of a history: which cards there are, and what was read of them, by whoever keeps it."""

from collections.abc import Iterable, Iterator
from typing import Protocol, overload

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest


class Numbers(Protocol):
    """Numbers in a row, such as an array."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[float]: ...
    @overload
    def __getitem__(self, key: int, /) -> float: ...
    @overload
    def __getitem__(self, key: slice, /) -> Iterable[float]: ...


class Readings(Protocol):
    """The readings of one quantity in the order of their times."""

    @property
    def times(self) -> Numbers:
        """Return the times, in monotonic seconds."""

    @property
    def values(self) -> Numbers:
        """Return the values, in the quantity's unit."""


class Source(Protocol):
    """What sums are made of, such as the history of `planner.monitor.history`, or a recording's readings."""

    @property
    def inventory(self) -> Inventory:
        """Return which cards there are."""

    def series(self, owner: str, metric: str, /) -> Readings:
        """Return the readings of one quantity of a card or of the machine, `host`."""


class Past(Source, Protocol):
    """What a diagnosis is made from: what was read, and what stands now."""

    @property
    def latest(self) -> Latest:
        """Return what stands now."""

    @property
    def end(self) -> float | None:
        """Return the time of the last sample."""
