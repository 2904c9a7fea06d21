"""Offers as tables show them, and what became of a refresh, in words."""

from datetime import date

from planner.cost.demand import Throughput
from planner.cost.estimate import estimate_cost
from planner.cost.price_feeds.offers import RejectedRow
from planner.cost.price_feeds.refresh import ProviderOutcome
from planner.cost.price_feeds.store import PriceSnapshot, ProviderPrices, StoredPrices
from planner.cost.renting.offer import Offer
from planner.cost.terms import CostTerms, Run
from planner.errors import PriceError
from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir
from planner.present.cost.offers import (
    JOB_OFFER_COLUMNS,
    OFFER_COLUMNS,
    listed_offers,
    offer_row_id,
    outcome_lines,
    state_lines,
)
from planner.records import read_records

HARDWARE = load_hardware(catalog_dir())
TODAY = date(2026, 11, 22)


def offer(**changes: object) -> Offer:
    return Offer.model_validate(
        {
            "id": "x",
            "provider": "AWS",
            "instance": "p5.48xlarge",
            "gpu": "h100-sxm5-80gb",
            "gpu_count": 8,
            "on_demand_price_usd_per_hour": 55.04,
            "price_date": "2026-11-10",
            "source": "a price list",
            **changes,
        }
    )


def part(**changes: object) -> ProviderPrices:
    return ProviderPrices(
        provider="AWS",
        source="a list",
        url="https://example.org",
        fetched_at="2026-11-11T00:00:00+00:00",
        bytes=1,
        sha256="0" * 64,
        offers=(offer(**changes),),
    )


def shown(**changes: object) -> dict[str, str]:
    (row,) = listed_offers([offer(**changes)], HARDWARE, TODAY)
    return {column.key: column.text(row) for column in OFFER_COLUMNS}


def test_a_row_shows_the_price_of_one_card():
    cells = shown()
    assert (cells["on-demand"], cells["spot"], cells["age"]) == ("6.88", "–", "12 days old, recent")
    assert (cells["card"], cells["region"], cells["date"]) == ("H100 SXM5 80 GB", "unknown", "2026-11-10")


def test_what_is_not_said_is_not_guessed():
    cells = shown(gpu=None, candidates=("h100-sxm5-80gb", "h100-pcie-80gb"), price_date=None)
    assert cells["card"] == "H100 … (one of 2)"
    assert cells["date"] == cells["age"] == "no date"


def test_systems_have_names():
    system = HARDWARE.systems[0]
    assert shown(system=system.id)["card"] == system.name


def test_a_price_says_where_it_comes_from():
    euros = {"billed_currency": "EUR", "exchange_rate": {
        "currency": "EUR", "usd_per_unit": 1.17, "date": "2026-11-09", "source": "ECB"}}  # fmt: skip
    (row,) = listed_offers([offer(notes=("a note",), **euros)], HARDWARE, TODAY)
    by_key = {column.key: column for column in OFFER_COLUMNS}
    assert by_key["on-demand"].tooltip(row).splitlines() == [
        "$55.0400 per hour for 8 × H100 SXM5 80 GB",
        "billed in EUR, 1 EUR = $1.17 on 2026-11-09",
        "price of 10 November 2026, 12 days old",
        "a price list",
        "a note",
    ]
    assert by_key["spot"].tooltip(row).startswith("billed in EUR")
    assert by_key["instance"].tooltip(row) == "x"
    assert by_key["card"].tooltip(row) == "h100-sxm5-80gb"
    assert row.id == "x"
    assert row.age == "recent"


def test_what_came_of_a_refresh():
    refused = tuple(RejectedRow(f"AWS {name}", "no GPU") for name in "abcde")
    lines = list(
        outcome_lines(
            [
                ProviderOutcome("AWS", "gpuhunt: AWS", "new", 12, refused),
                ProviderOutcome("GCP", "gpuhunt: GCP", "held", 1, doubts=("a2: 4 → 1 USD an hour (× 0.25)",)),
                ProviderOutcome("OCI", "gpuhunt: OCI", "unchanged", 3),
                ProviderOutcome("the feed", "the feed", "failed", error=PriceError("host", "cannot be reached")),
            ]
        )
    )
    assert lines == [
        "AWS: new prices, 12 offers, 5 skipped (gpuhunt: AWS)",
        "  skipped: AWS a: no GPU",
        "  skipped: AWS b: no GPU",
        "  skipped: AWS c: no GPU",
        "  and 2 more skipped",
        "GCP: held for review, 1 offer (gpuhunt: GCP)",
        "  large price changes; the old prices stay in use until you accept the new ones:",
        "  a2: 4 → 1 USD an hour (× 0.25)",
        "OCI: unchanged, 3 offers (gpuhunt: OCI)",
        "the feed: cannot be reached",
    ]


def test_which_prices_are_in_use():
    none = PriceSnapshot(taken_at="00000000T000000Z")
    fetched = PriceSnapshot(taken_at="20261111T000000Z", parts=(part(),))
    bundled = (offer(),)
    assert list(state_lines(StoredPrices(none, none, (), use_bundled=False, problems=()), bundled, TODAY)) == [
        "The bundled prices are in use; no prices were fetched.",
        "bundled: 1 offer, oldest price 12 days old",
    ]
    problem = PriceError("held.json", "is not a price file")
    lines = list(
        state_lines(StoredPrices(fetched, fetched, (offer(),), use_bundled=False, problems=(problem,)), bundled, TODAY)
    )
    assert lines[0].startswith("Fetched prices are in use")
    told = "AWS: 1 offer, oldest price 12 days old, fetched on 11 November 2026 from a list"
    assert lines[2:] == [
        told,
        "your own: x",
        f"held until you accept or discard them: {told}",
        f"skipped: {problem.message}",
    ]
    chosen = StoredPrices(fetched, none, (), use_bundled=True, problems=())
    assert "as you chose" in next(state_lines(chosen, bundled, TODAY))


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


def test_every_bundled_offer_over_a_year_old_is_marked_as_outdated() -> None:
    today = date(2026, 11, 23)
    offers = read_records(catalog_dir() / "offers", Offer)
    age = next(column for column in OFFER_COLUMNS if column.key == "age")
    rows = listed_offers(offers, HARDWARE, today)
    marked = {row.id for row in rows if age.text(row).endswith(", outdated")}
    assert len(marked) > 200
    assert marked == {offer.id for offer in offers if offer.price_date and offer.price_date < "2025-11-23"}
    assert marked == {offer.id for offer in offers if offer.is_history(today)}
