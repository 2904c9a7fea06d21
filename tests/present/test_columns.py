"""Table columns, detail lines, and the provenance of their figures."""

from catalog_samples import DERIVED, SHEET

from planner.hardware.gpu import Provenance
from planner.present import format as fmt
from planner.present.columns import (
    MARK_MEANINGS,
    figure_detail,
    number_column,
    pareto_front,
    provenance_mark,
    provenance_text,
)


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


def test_a_text_with_its_unit_has_the_unit_once():
    weight = number_column("weight", "Weight", lambda grams: grams, unit="kg", per_unit=1000)
    price = number_column("price", "Price", lambda usd: usd, show="${:.0f}".format, measure="USD")
    rent = number_column("rent", "Rent", lambda usd: usd, show="${:.0f}".format, unit="USD/h")
    assert (weight.text_with_unit(2000), weight.text_with_unit(None)) == ("2\u2009kg", "not published")
    assert (price.text_with_unit(3), rent.text_with_unit(3)) == ("$3", "$3")
    assert (weight.is_money, price.is_money, rent.is_money) == (False, True, True)
