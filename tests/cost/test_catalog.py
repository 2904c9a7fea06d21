"""Reading prices and energy, when they are asked for, and what is said when they are not as they should be."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from planner.cost.catalog import CostCatalog
from planner.errors import CatalogError, SpecError
from planner.plan.catalog import Catalog

OFFER = {
    "id": "there-card",
    "provider": "There",
    "instance": "card",
    "gpu": "l4",
    "gpu_count": 1,
    "on_demand_price_usd_per_hour": 1.0,
    "source": "a page",
}


def write(folder: Path, name: str, records: object) -> Path:
    (folder / name).mkdir(parents=True)
    text = records if isinstance(records, str) else json.dumps(records)
    (folder / name / "all.json").write_text(text, encoding="utf-8")
    return folder


def test_the_plans_catalog_leads_to_prices(catalog: Catalog) -> None:
    assert catalog.offers is catalog.cost.offers


def test_fitting_reads_no_prices() -> None:
    code = (
        "import sys; from planner.plan.catalog import load_catalog; catalog = load_catalog();"
        "print([name for name in sys.modules if name.startswith(('planner.cost.catalog', 'numpy'))]);"
        "print('cost' in vars(catalog))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "False"]


def test_other_offers_can_stand_in_place_of_the_bundled_ones(catalog: Catalog) -> None:
    some = catalog.offers[:3]
    fresh = replace(catalog.cost, given_offers=some)
    assert fresh.offers == some
    assert fresh.bundled_offers == catalog.offers


def test_without_fetched_prices_the_bundled_ones_are_in_use(catalog: Catalog, tmp_path: Path) -> None:
    assert CostCatalog(catalog.folder, prices=tmp_path).offers == catalog.cost.bundled_offers


@pytest.mark.parametrize(
    ("record", "field", "reason"),
    [
        ({"on_demand_price_usd_per_hour": 0}, "", "the on-demand price of 0 USD"),
        ({"on_demand_price_usd_per_hour": -2}, "", "the on-demand price of -2 USD"),
        ({"on_demand_price_usd_per_hour": 4_000}, "", "4,000 USD"),
        ({"on_demand_price_usd_per_hour": None}, "", "has no price"),
        ({"spot_price_usd_per_hour": 2}, "", "the spot price is above the on-demand price"),
        ({"billed_currency": "XYZ"}, "billed_currency", "there is no 'XYZ'"),
        ({"billed_currency": "EUR"}, "", "needs an exchange rate"),
        (
            {"exchange_rate": {"currency": "EUR", "usd_per_unit": 1.1, "date": "2026-01-01", "source": "ECB"}},
            "",
            "must not have one",
        ),
        (
            {
                "billed_currency": "CHF",
                "exchange_rate": {"currency": "EUR", "usd_per_unit": 1.1, "date": "2026-01-01", "source": "ECB"},
            },
            "",
            "the exchange rate is for EUR, not CHF",
        ),
        ({"billed_currency": None}, "", "an unverified currency needs an explanatory note"),
        ({"gpu": None}, "", "needs either gpu or candidates"),
        ({"gpu": None, "candidates": ["l4"]}, "", "a single candidate must be named"),
        ({"gpu_count": 0}, "gpu_count", "must be more than 0"),
        ({"price_date": "last week"}, "price_date", "last week"),
        ({"colour": "green"}, "colour", "there is no such field"),
    ],
)
def test_a_bad_offer_is_named_with_file_and_field(
    tmp_path: Path, record: dict[str, object], field: str, reason: str
) -> None:
    catalog = CostCatalog(write(tmp_path, "offers", [{**OFFER, **record}]))
    with pytest.raises(CatalogError) as caught:
        _ = catalog.offers
    assert caught.value.path == tmp_path / "offers" / "all.json"
    assert (caught.value.record, caught.value.field) == ("there-card", field)
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpu": None}, "either one GPU or several candidates"),
        ({"candidates": ["l4", "l40"]}, "either one GPU or several candidates"),
        ({"kind": "networking"}, "a networking must not name a GPU"),
        ({"gpu": None, "gpu_count": None}, "a gpu must name its GPU"),
        ({"price_usd": -5}, "must be at least 50"),
    ],
)
def test_a_bad_purchase_is_named(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    purchase = {
        "id": "one",
        "item": "card",
        "kind": "gpu",
        "gpu": "l4",
        "gpu_count": 1,
        "includes": "card",
        "price_usd": 2_000,
        "price_kind": "list",
        "source": "a shop",
    }
    with pytest.raises(CatalogError) as caught:
        _ = CostCatalog(write(tmp_path, "purchases", [{**purchase, **change}])).purchases
    assert caught.value.record == "one"
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"household_usd_per_kwh": 0.2}, "a price needs its currency, source and date"),
        (
            {"household_local_per_kwh": 0.2, "currency": "USD", "price_source": "them", "price_date": "2026-01-01"},
            "not a local price",
        ),
        ({"carbon_grams_per_kwh": 200}, "a carbon intensity needs its source"),
    ],
)
def test_bad_energy_is_named(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    record = {"id": "xx", "code": "XX", "name": "Somewhere", "level": "country"}
    with pytest.raises(CatalogError) as caught:
        _ = CostCatalog(write(tmp_path, "energy", [{**record, **change}])).energy
    assert caught.value.record == "xx"
    assert reason in caught.value.message


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="invalid JSON"):
        _ = CostCatalog(write(tmp_path, "offers", '[{"id": "there')).offers


def test_unknown_names_are_said(catalog: Catalog) -> None:
    with pytest.raises(SpecError, match="no offer with the id 'nowhere'"):
        catalog.cost.offer("nowhere")
    with pytest.raises(SpecError, match="no electricity data for 'ZZ'"):
        catalog.cost.region("ZZ")


def test_own_figures_replace_those_of_the_place(catalog: Catalog) -> None:
    from planner.cost.terms import BuyTerms

    lab = catalog.cost.ownership("lab")
    changed = lab.with_terms(BuyTerms(pue=1.2, gpus_per_server=4, colocation_power="included"))
    assert (changed.pue.value, changed.pue.certainty, changed.gpus_per_server) == (1.2, "yours", 4)
    assert changed.colocation_power == "included"
    assert changed.host_factor == lab.host_factor
