"""Solutions of a search as text."""

import pytest

from planner.plan.solve import SolveResult
from planner.present.memory.solved import solved_sentence, solved_text


def found(value=None, bounded_by="memory", reason=""):
    return SolveResult(asked="batch", value=value, bounded_by=bounded_by, reason=reason)


@pytest.mark.parametrize(
    ("surely", "barely", "words"),
    [
        (found(7), found(8), "7 (up to 8 may fit)"),
        (found(7000), found(7000), "7,000"),
        (found(), found(8), "none for sure, 8 may fit"),
        (found(), found(reason="not even 1 fits"), "none, not even 1 fits"),
        (found(1024, "model"), found(1024, "model"), "1,024, the model's maximum"),
        (found(8), found(4), "8 (4 may be enough)"),
    ],
)
def test_the_value_that_fits_comes_before_the_tight_one(surely, barely, words):
    assert solved_text(surely, barely) == words
    assert solved_sentence(surely, barely) == f"Largest batch that fits: {words}."
