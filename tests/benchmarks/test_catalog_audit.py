"""The audit of random figures of the catalog, and what it says of each kind of row."""

import csv

import pytest

ROW = {"was": "", "ours": "100.0", "theirs": "100.4", "note": ""}


@pytest.fixture(scope="module")
def audit():
    import catalog_audit

    return catalog_audit


def test_the_audited_figures_still_stand_in_the_catalog_and_none_differs(audit):
    assert audit.main(["check"]) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "agrees"),
        ({"was": "90.0"}, "mended"),
        ({"theirs": "101"}, "differs"),
        ({"theirs": "101", "note": "rounded"}, "explained"),
        ({"theirs": ""}, "not found"),
        ({"ours": "99.0"}, "changed"),
        ({"theirs": "about 100"}, "differs"),
    ],
)
def test_a_figure_agrees_within_the_digits_of_its_source(audit, change, said):
    assert audit.verdict(ROW | change, 100.0) == said


def test_the_same_seed_draws_the_same_figures_and_none_twice(audit):
    drawn = audit.draw()
    assert drawn == audit.draw()
    assert len(drawn) == len(set(drawn)) > 60


def test_sixty_of_the_audited_figures_have_an_independent_source(audit):
    with audit.TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sum(bool(row["theirs"]) for row in rows) >= 60
    assert all(bool(row["theirs"]) == bool(row["source"]) == bool(row["as_of"]) for row in rows)
