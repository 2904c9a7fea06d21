"""The rows of an estimate beside a log."""

from typing import Literal, NamedTuple

from planner.base import Spec
from planner.memory.corrections import TermCorrection
from planner.memory.logs.reading import LogReading, Sense

RowName = Literal[
    "weights",
    "kv_cache",
    "state",
    "working",
    "overhead",
    "sum",
    "pool",
    "allocated",
    "reserved",
    "process",
    "card",
    "capacity",
    "card-total",
    "host",
]


class Actual(NamedTuple):
    """What the log has for one row, with the interval of its digits."""

    bytes: int
    low: int
    high: int
    sense: Sense
    lines: tuple[int, ...]


class ComparedRow(Spec):
    """One amount, estimated and measured.

    `at_least` says that the run may have held more than the log shows. `corrections` would make up for the difference;
    there are none where it comes from another way to run.
    """

    name: RowName
    predicted_bytes: int | None
    actual_bytes: int
    low_bytes: int
    high_bytes: int
    at_least: bool = False
    explanation: str = ""
    lines: tuple[int, ...] = ()
    corrections: tuple[TermCorrection, ...] = ()

    @property
    def difference_bytes(self) -> int | None:
        """Return how much more was measured than estimated."""
        return None if self.predicted_bytes is None else self.actual_bytes - self.predicted_bytes

    @property
    def agrees(self) -> bool:
        """Return whether the estimate is within what the printed digits leave open."""
        return self.predicted_bytes is not None and self.low_bytes <= self.predicted_bytes <= self.high_bytes


class Comparison(Spec):
    """An estimate beside a log, and what to know about both."""

    reading: LogReading
    rows: tuple[ComparedRow, ...]
    notes: tuple[str, ...] = ()

    def row(self, name: RowName) -> ComparedRow | None:
        """Return the row called `name`, if the log has it."""
        return next((row for row in self.rows if row.name == name), None)
