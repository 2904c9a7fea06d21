"""A memory result as text."""

from planner.cli.report import memory_report
from planner.memory.result import MemoryResult, Phase, Symbol, Term, TermPart
from planner.present.memory.view import memory_view


def _view(source, *parts, formula="P × w"):
    term = Term(
        name="weights",
        bytes=16,
        formula=formula,
        symbols=(Symbol(name="P", value=8, meaning="parameters", origin="model"),),
        source=source,
        certainty="exact",
        low_bytes=16,
        high_bytes=16,
        parts=parts,
    )
    phase = Phase(name="load", bytes=16, shares=(), explanation="here it is")
    return memory_view(
        MemoryResult(
            total_bytes=16,
            low_bytes=16,
            high_bytes=16,
            allocated_bytes=16,
            reserved_bytes=16,
            peak_phase="load",
            terms=(term,),
            phases=(phase,),
        )
    )


def test_a_term_opens_into_its_evidence():
    text = memory_report(_view("counted"), "subject", (), None, explain=True)
    assert "    = P × w\n    = 8 × w\n    P = 8: parameters (from the model)\n    source: counted" in text


def test_the_parts_name_their_sources_once():
    part = TermPart(name="all of it", bytes=16, formula="P × 2", source="counted")
    text = memory_report(_view("counted", part), "subject", (), None, explain=True)
    assert text.count("counted]") == 1
    assert "source:" not in text
    assert "source: elsewhere" in memory_report(_view("elsewhere", part), "subject", (), None, explain=True)


def test_a_part_that_is_its_symbol_needs_no_formula():
    part = TermPart(name="context", bytes=8, formula="P", source="counted")
    assert "context: 8\u2009B [counted]" in memory_report(_view("counted", part), "subject", (), None, explain=True)


def test_options_are_not_parted_from_their_values():
    lines = memory_report(_view("counted"), "subject", tuple(f"--option-{n} {n}" for n in range(20)), 60).splitlines()
    told = [line for line in lines if "--option" in line]
    assert len(told) > 2
    assert all(line.split()[-1].isdigit() for line in told)


def test_without_defaults_none_are_told():
    assert "Defaults" not in memory_report(_view("counted"), "subject", (), None)


def test_a_formula_without_symbols_is_told_once():
    text = memory_report(_view("counted", formula="16 bytes"), "subject", (), None, explain=True)
    assert text.count("= 16 bytes") == 1
