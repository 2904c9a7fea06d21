"""Electricity of the catalog and its choice by region."""

from datetime import date

import pytest
from each_record import for_each

from planner.cost.catalog import CostCatalog
from planner.cost.energy import EnergyRecord
from planner.paths import catalog_dir

COST = CostCatalog(catalog_dir())


COLLECTED = "2026-11-21"


@for_each("record", COST.energy)
def test_energy_is_sourced_dated_and_plausible(record: EnergyRecord) -> None:
    known = (record.household_usd_per_kwh, record.industrial_usd_per_kwh)
    local = (record.household_local_per_kwh, record.industrial_local_per_kwh)
    assert any(figure is not None for figure in (*known, *local, record.carbon_grams_per_kwh))
    assert all(figure is None or 0.0005 < figure < 0.6 for figure in known)
    assert all(figure is None or 0.05 < figure < 0.6 for figure in local)
    assert record.carbon_grams_per_kwh is None or 0 <= record.carbon_grams_per_kwh <= 1_200
    if record.price_date:
        assert date(2020, 12, 31) <= date.fromisoformat(record.price_date) <= date.fromisoformat(COLLECTED)


@pytest.mark.parametrize("code", sorted({record.code for record in COST.energy}))
def test_each_region_has_something_to_say(code: str) -> None:
    found = COST.region(code)
    household, industrial = found.tariff("household"), found.tariff("industrial")
    assert (household is None) == (industrial is None)
    assert found.name


def test_a_tariff_of_the_other_kind_says_that_it_is_one() -> None:
    only_households = COST.region("DE").tariff("industrial")
    assert only_households is not None
    assert only_households.value == 0.404
    assert "household price, as no industrial price" in only_households.source


def test_a_price_in_euros_is_converted_only_where_there_is_no_other() -> None:
    union = COST.region("EU27")
    assert union.household is not None
    assert union.household.value == pytest.approx(0.2872 * 1.1699)
    assert "0.2872 EUR at 1.1699 USD" in union.household.source
    germany = COST.region("DE").household
    assert germany is not None
    assert germany.value == 0.404


def test_the_newest_source_of_each_kind_counts() -> None:
    america = COST.region("US")
    assert america.household is not None
    assert america.industrial is not None
    assert (america.household.value, america.household.date) == (0.1872, "2026-04-26")
    assert (america.industrial.value, america.industrial.date) == (0.0826, "2025-12-31")


def test_a_short_name_of_a_source_is_one() -> None:
    record = next(one for one in COST.energy if one.carbon_source)
    assert record.evolve(carbon_source="IEA").carbon_source == "IEA"
