"""Offers for a job, as a table shows them."""

from datetime import date

from planner.cost.demand import Throughput
from planner.cost.estimate import estimate_cost
from planner.cost.job import Run
from planner.cost.terms import CostTerms
from planner.present.cost.offers import JOB_OFFER_COLUMNS, offer_row_id

TODAY = date(2026, 11, 22)


def test_every_offer_says_its_price_and_where_that_is_from(catalog):
    terms = CostTerms(job=Run(amount=1e9, unit="tokens"))
    rows = estimate_cost(
        terms, catalog.hardware.gpu("h100-sxm5-80gb"), 1, Throughput(tokens_per_second=5_000), catalog.cost, TODAY
    ).rows
    columns = {column.key: column for column in JOB_OFFER_COLUMNS}
    assert len({offer_row_id(row) for row in rows}) == len(rows)
    for row in rows:
        cells = {key: column.text(row) for key, column in columns.items()}
        assert cells["usd"].startswith("$")
        assert cells["age"] == "no date" or "day" in cells["age"]
        assert row.offer.source in columns["usd"].tooltip(row)
        assert columns["instance"].tooltip(row) == row.offer.id
    unsure = next(row for row in rows if not row.comparable)
    assert columns["remarks"].text(unsure)
    quiet = next(row for row in rows if not row.remarks)
    assert columns["remarks"].text(quiet) == ""
