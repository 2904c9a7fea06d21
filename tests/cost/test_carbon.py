"""Carbon footprint by region."""

import pytest

from planner.cost.carbon import carbon_by_region, rented_footprint
from planner.plan.catalog import Catalog


def test_carbon_is_told_by_region(catalog: Catalog) -> None:
    rows = carbon_by_region(1_000, catalog.cost)
    assert [row.carbon_kg for row in rows] == sorted(row.carbon_kg for row in rows)
    assert len({row.code for row in rows}) == len(rows) > 150
    france = next(row for row in rows if row.code == "FR")
    assert france.carbon_kg == pytest.approx(56.039)


def test_carbon_of_a_rented_job_needs_its_region(catalog: Catalog) -> None:
    offer = catalog.cost.offer("gcp-a3-highgpu-8g-us-central1-2026-08-20")
    found = rented_footprint(offer, 100, catalog.cost)
    assert found is not None
    assert found.energy_kwh == pytest.approx(110)
    assert found.carbon_kg == pytest.approx(110 * 0.430)
    assert rented_footprint(offer.evolve(region=None), 100, catalog.cost) is None
    assert rented_footprint(offer.evolve(region="us-nowhere9"), 100, catalog.cost) is None
    assert rented_footprint(offer.evolve(provider="Else"), 100, catalog.cost) is None
