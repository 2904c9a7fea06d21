"""The audit of random figures of the catalog, and what it says of each kind of row."""

import catalog_audit
import pytest

ROW = {"was": "", "ours": "100.0", "theirs": "100.4", "note": ""}


def test_the_audited_figures_still_stand_in_the_catalog_and_none_differs() -> None:
    assert catalog_audit.main(["check"]) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "agrees"),
        ({"was": "90.0"}, "mended"),
        ({"theirs": "101"}, "differs"),
        ({"theirs": "101", "note": "rounded"}, "explained"),
        ({"theirs": ""}, "not found"),
        ({"ours": "99.0"}, "changed"),
        ({"ours": "100.0", "theirs": "about 100"}, "differs"),
    ],
)
def test_a_figure_agrees_within_the_digits_of_its_source(change: dict[str, str], said: str) -> None:
    assert catalog_audit.verdict(ROW | change, 100.0) == said


def test_the_same_seed_draws_the_same_figures() -> None:
    assert catalog_audit.draw() == catalog_audit.draw()
    assert len(catalog_audit.draw()) == 60
