"""Memory results made up for the tests of their texts."""

from planner.memory.result import MemoryResult, Phase, Symbol, Term, TermShare
from planner.present.format import THIN
from planner.units import GIB


def seen(text):
    return text.replace(THIN, " ")


def term(name, size, **changes):
    symbol = Symbol(name="P", value=8, meaning="parameters", origin="model")
    fields = {
        "name": name,
        "bytes": size,
        "formula": "2 × P",
        "symbols": (symbol,),
        "source": "counted",
        "certainty": "exact",
        "low_bytes": size,
        "high_bytes": size,
    }
    return Term(**{**fields, **changes})


def result(**changes):
    overhead = term("framework_overhead", GIB, certainty="measured", low_bytes=GIB // 2, high_bytes=2 * GIB)
    terms = (overhead, term("logits", 0), term("kv_cache", 3 * GIB), term("weights", 12 * GIB))
    shares = tuple(TermShare(name=term.name, bytes=term.bytes) for term in terms)
    fields = {
        "total_bytes": 16 * GIB,
        "low_bytes": 15 * GIB + GIB // 2,
        "high_bytes": 17 * GIB,
        "allocated_bytes": 15 * GIB,
        "reserved_bytes": 15 * GIB,
        "peak_phase": "decode",
        "terms": terms,
        "phases": (
            Phase(name="load", bytes=13 * GIB, shares=(), explanation="weights arrive"),
            Phase(name="decode", bytes=16 * GIB, shares=shares, explanation="The cache is full."),
        ),
    }
    return MemoryResult(**{**fields, **changes})


def on_card(capacity, verdict, **changes):
    held = changes.get("other_processes_bytes", 0)
    free = capacity - held - 16 * GIB
    return result(capacity_bytes=capacity, verdict=verdict, free_bytes=free, **changes)
