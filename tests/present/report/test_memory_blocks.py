"""The memory of a plan in a report."""

from memory_samples import on_card, seen

from planner.present.memory.view import memory_view
from planner.present.report.document import Bullets, Drawing, Prose, ReportTable
from planner.present.report.memory_blocks import memory_blocks
from planner.units import GIB


def test_sentences_are_followed_by_the_bar_the_parts_and_the_phases():
    blocks = list(memory_blocks(memory_view(on_card(24 * GIB, "fits"), "T4")))
    assert isinstance(blocks[0], Prose)
    assert any(isinstance(block, Drawing) for block in blocks)
    terms, phases, cards = [block for block in blocks if isinstance(block, ReportTable)]
    assert seen(" ".join(terms.rows[-1])) == "Total 16.00  15.5 – 17.0 GiB "
    assert terms.last_is_total
    assert [row[0] for row in phases.rows if row[2] == "peak"] == ["Decode"]
    assert cards.rows == ()


def test_a_plan_that_the_card_cannot_run_has_its_reason_alone():
    memory = on_card(24 * GIB, None, unsupported=("it has no such format",), notes=("a note",))
    first, second = memory_blocks(memory_view(memory, "T4"))
    assert first == Prose("Not supported on T4: it has no such format.")
    assert isinstance(second, Bullets)
