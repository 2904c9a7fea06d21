"""A ledger on fake tensors, with its call sites, counts and notes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from planner.trace.recording import CATEGORIES
from planner.trace.request import AssumedValue, UnknownValues
from planner.trace.worker.call_sites import CallSites
from planner.trace.worker.fake_tensors.assumptions import Assumptions
from planner.trace.worker.fake_tensors.values import KnownValues
from planner.trace.worker.ledger import AllocationLedger, FlopCounter, HiddenBytes

MIB = 2**20


class Books:
    """A ledger with the places that it notes, and the flops that it counts."""

    def __init__(
        self,
        hidden_bytes: HiddenBytes = lambda *_: 0,
        unknown_values: UnknownValues = "typical",
        given: Iterable[AssumedValue] = (),
    ) -> None:
        self.places, self.flops, self.notes = CallSites(), FlopCounter(), list[str]()
        self.assumptions = Assumptions(self.notes.append, unknown_values=unknown_values, given=given)
        self.ledger = AllocationLedger(KnownValues(self.assumptions), self.places, self.flops, hidden_bytes)
        self.ledger.begin_phase("forward", 0)

    @contextmanager
    def open(self) -> Iterator["Books"]:
        with self.ledger, self.places:
            yield self

    def alive(self) -> int:
        columns = self.ledger.allocations()
        return sum(count for count, freed in zip(columns.bytes, columns.freed, strict=True) if freed < 0)

    def rows(self) -> list[tuple[int, str, str, str, str]]:
        """Return bytes, category, operator, module and line of each allocation."""
        columns = self.ledger.allocations()
        operators, paths, lines = self.ledger.operators.names(), self.places.modules.names(), self.places.lines.names()
        return [
            (count, CATEGORIES[category], operators[operator], paths[module], lines[line])
            for count, category, operator, module, line in zip(
                columns.bytes, columns.category, columns.operator, columns.module, columns.line, strict=True
            )
        ]
