"""Models on the same cards, as sentences."""

from planner.plan.beside import Neighbour
from planner.present.plan.beside import NOT_ISOLATED, beside_sentences


def test_each_neighbour_has_its_part_and_sharing_isolates_nothing():
    small = Neighbour(model="a/b", program="vllm", held_bytes=2 * 2**30, fraction=0.25, verdict="fits")
    large = small.evolve(program="other", verdict="does-not-fit")
    first, second, order, isolation = beside_sentences([small, large])
    assert first == "Beside it on each card: a/b in vLLM, 2.00\u2009GiB (25\u2009% of it)."
    assert second.endswith("in other, 2.00\u2009GiB (25\u2009% of it), which does not fit in what is left.")
    assert "one after the other" in order
    assert isolation == NOT_ISOLATED
