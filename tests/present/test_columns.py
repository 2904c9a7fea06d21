"""Table columns, detail lines, and the provenance of their figures."""

from catalog_samples import DERIVED, SHEET

from planner.hardware.gpu import Provenance
from planner.present import format as fmt
from planner.present.columns import MARK_MEANINGS, figure_detail, pareto_front, provenance_mark, provenance_text


def test_the_pareto_front_is_ordered_by_the_first_coordinate():
    points = [(100, 10), (200, 30), (150, 5), (300, 30), (50, 1)]
    assert pareto_front(points, (True, False)) == (4, 0, 1)
    assert pareto_front(points, (None, False)) == ()
    assert pareto_front([], (True, False)) == ()


def test_the_mark_of_a_figure_shows_its_certainty():
    measured = SHEET.evolve(basis="measured")
    assert [provenance_mark(where) for where in (SHEET, DERIVED, measured)] == ["published", "derived", "measured"]
    marks = {
        provenance_mark(SHEET.evolve(certainty=certainty))
        for certainty in ("confirmed", "single-source", "conflicting", "preliminary")
    }
    assert marks | {"derived", "measured", "assumed", "yours"} == set(MARK_MEANINGS)


def test_the_users_own_figure_is_marked_as_theirs():
    detail = figure_detail("Paid", "$720", Provenance.own("your own figure", "2026-11-01"))
    assert (detail.certainty, detail.mark, MARK_MEANINGS[detail.mark]) == ("yours", "yours", "entered by you")
    assert detail.tooltip == "your own figure\nyours\nentered 1 November 2026"


def test_the_provenance_of_a_figure_is_complete():
    assert provenance_text(DERIVED) == "derived: a × b\nSheet\none source\nread 31 January 2026"
    detail = figure_detail("Memory", "80 GiB", SHEET, exact="85,899,345,920 B")
    assert detail.tooltip == f"85,899,345,920 B\n{detail.origin}"
    assert figure_detail("Memory", fmt.NOT_PUBLISHED, SHEET).tooltip == ""
