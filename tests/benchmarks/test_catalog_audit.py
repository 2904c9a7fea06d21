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


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
def test_the_same_seed_draws_the_same_figures_and_none_twice(audit, turn):
    drawn = audit.draw(audit.SEEDS[turn])
    assert drawn == audit.draw(audit.SEEDS[turn])
    assert len(drawn) == len(set(drawn)) > 60


def test_sixty_figures_of_each_audit_have_an_independent_source_and_none_is_in_two(audit):
    with audit.TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for seed in audit.SEEDS:
        assert sum(bool(row["theirs"]) for row in rows if row["seed"] == str(seed)) >= 60
    assert len({(row["folder"], row["record"], row["field"]) for row in rows}) == len(rows)
    assert all(bool(row["theirs"]) == bool(row["source"]) == bool(row["as_of"]) for row in rows)
