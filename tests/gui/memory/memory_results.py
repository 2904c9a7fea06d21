"""Results made by hand, with numbers that are easy to check."""

from planner.memory.result import MemoryResult, Phase, Symbol, Term, TermPart, TermShare
from planner.present.memory.view import MemoryView, memory_view
from planner.units import GIB


def term(name: str, gib: float, spread: float = 0) -> Term:
    count = round(gib * GIB / 2)
    return Term(
        name=name,
        bytes=2 * count,
        formula="P × b",
        symbols=(
            Symbol(name="P", value=count, meaning="numbers <kept>", origin="model"),
            Symbol(name="b", value=2, meaning="bytes of one", origin="format"),
        ),
        source="counted in a test",
        certainty="measured" if spread else "exact",
        low_bytes=2 * count - round(spread * GIB),
        high_bytes=2 * count + round(spread * GIB),
        parts=(TermPart(name="half", bytes=count, formula="P", source="a half"),) if spread else (),
    )


def result(capacity_gib: float | None = 24, other_gib: float = 0, cache_gib: float = 1) -> MemoryResult:
    terms = (term("weights", 16), term("kv_cache", cache_gib), term("framework_overhead", 1, spread=0.5))
    total = sum(item.bytes for item in terms)
    shares = tuple(TermShare(name=item.name, bytes=item.bytes) for item in terms)
    capacity = None if capacity_gib is None else round(capacity_gib * GIB)
    other = round(other_gib * GIB)
    free = None if capacity is None else capacity - other - total
    return MemoryResult(
        total_bytes=total,
        low_bytes=sum(item.low_bytes for item in terms),
        high_bytes=sum(item.high_bytes for item in terms),
        allocated_bytes=total,
        reserved_bytes=total,
        peak_phase="decode",
        terms=terms,
        phases=(
            Phase(name="load", bytes=terms[0].bytes, shares=shares[:1], explanation="only the weights"),
            Phase(name="decode", bytes=total, shares=shares, explanation="the cache is full"),
        ),
        capacity_bytes=capacity,
        other_processes_bytes=other,
        free_bytes=free,
        verdict=None if free is None else "fits" if free >= 0 else "does-not-fit",
    )


def view(capacity_gib: float | None = 24, other_gib: float = 0, cache_gib: float = 1) -> MemoryView:
    return memory_view(result(capacity_gib, other_gib, cache_gib), "Some card")
