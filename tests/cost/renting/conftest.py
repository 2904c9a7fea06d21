"""Catalog data for tests of renting."""

import pytest

from planner.cost.renting.quote import RentFacts
from planner.plan.catalog import Catalog


@pytest.fixture(scope="session")
def facts(catalog: Catalog) -> RentFacts:
    return RentFacts.of(catalog.cost)
