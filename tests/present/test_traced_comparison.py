from planner.memory.result import MemoryResult, Phase, Term
from planner.present.memory.comparison import compare_parts, comparison_sentence
from planner.units import GIB


def result(phase: str = "backward", **gib: float) -> MemoryResult:
    terms = tuple(
        Term(
            name=name,
            bytes=round(size * GIB),
            formula="",
            symbols=(),
            source="a test",
            certainty="exact",
            low_bytes=round(size * GIB),
            high_bytes=round(size * GIB),
        )
        for name, size in gib.items()
    )
    total = sum(term.bytes for term in terms)
    return MemoryResult(
        total_bytes=total,
        low_bytes=total,
        high_bytes=total,
        allocated_bytes=total,
        reserved_bytes=total,
        peak_phase=phase,
        terms=terms,
        phases=(Phase(name=phase, bytes=total, shares=(), explanation=""),),
    )


def test_parts_that_only_words_divide_are_compared_together():
    rows = compare_parts(result(weights=4, logits=2, activations=1), result(weights=4, activations=2.5, buffers=0.5))
    assert [row.title for row in rows] == [
        "Weights and adapters",
        "Activations, logits and temporaries",
        "Buffers and inputs",
        "Total",
    ]
    assert rows[1].difference_bytes == GIB // 2
    assert rows[1].difference_fraction == 0.2
    assert rows[2].difference_fraction == -1
    assert compare_parts(result(kv_cache=1), result(weights=1))[1].difference_fraction is None


def test_the_sentence_says_how_far_and_on_which_side():
    assert comparison_sentence(result(weights=4), result(weights=4)).startswith("The estimate is exact")
    above = comparison_sentence(result(weights=5), result(weights=4))
    assert above == "The estimate is 25\u2009% above the trace: estimated 5.00\u2009GiB, traced 4.00\u2009GiB."
    below = comparison_sentence(result("loss", weights=3), result(weights=4))
    assert "25\u2009% below" in below
    assert "expected at the loss and found in the backward pass" in below
