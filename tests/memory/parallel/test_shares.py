"""Shares of terms and parameters, to the byte and to the row."""

from dataclasses import replace

import pytest
from small_models import llama

from planner.memory.parallel.shares import (
    PersistentBuffers,
    communication_term,
    sharded_counts,
    sharded_term,
    with_more_bytes,
)
from planner.memory.phases import DeferredTerm
from planner.memory.result import TermPart
from planner.memory.terms import term
from planner.models.architecture import Tensor

CARDS = 8


def test_a_scalar_is_a_row_that_every_card_holds():
    plain = llama()
    scaled = plain.evolve(head=(*plain.head, Tensor(name="logit_scale", shape=(), role="other")))
    counts, without = sharded_counts(scaled, CARDS, CARDS), sharded_counts(plain, CARDS, CARDS)
    assert (counts.share - without.share, counts.own_edges - without.own_edges) == (1, 1)


def test_buffers_of_libraries_are_assumed_and_those_of_cards_are_not():
    own = term("communication", 5, "5", (), "s")
    assert communication_term((("a", 5), ("none", 0)), "s", PersistentBuffers()).write().certainty == "measured"
    assert communication_term((("a", 5),), "s", PersistentBuffers(), assumed=True).write().certainty == "assumed"
    written = communication_term((), "s", PersistentBuffers()).write()
    assert (written.bytes, written.formula) == (0, "0")
    assert own.bytes == 5


@pytest.mark.parametrize(("more", "size", "sign"), [(3, 13, "+"), (-4, 6, "−"), (-40, 0, "−")])
def test_a_term_grows_or_shrinks_to_nothing_at_least(more, size, sign):
    grown = with_more_bytes(term("activations", 10, "T", (), "s"), more, "freed by then")
    assert isinstance(grown, DeferredTerm)
    written = grown.write()
    assert (grown.bytes, written.bytes) == (size, size)
    assert written.formula == f"T {sign} M"
    assert not written.parts, "what is added would be a part, and the rest none"
    parts = (TermPart(name="all of it", bytes=10, formula="T", source="s"),)
    parted = with_more_bytes(term("activations", 10, "T", (), "s", parts=parts), more, "freed by then").write()
    assert sum(part.bytes for part in parted.parts) == (size if more > 0 else 0)


def test_parts_of_a_term_are_shared_to_the_byte():
    whole = term(
        "optimizer_states",
        100,
        "P",
        (),
        "s",
        parts=tuple(TermPart(name=str(size), bytes=size, formula=f"{size}", source="s") for size in (33, 67)),
    )
    written = sharded_term(whole, 1, 3, 3, "of three").write()
    assert written.bytes == 34
    assert sum(part.bytes for part in written.parts) == 34
    more = with_more_bytes(replace(whole, parts=()), 5, "more").write()
    assert (more.bytes, more.parts) == (whole.bytes + 5, ())
    empty = replace(whole, bytes=0, low_bytes=0, high_bytes=0, parts=(whole.parts[0],))
    assert sharded_term(empty, 1, 3, 3, "of three").write().bytes == 0
