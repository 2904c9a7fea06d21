"""Catalog data for tests of renting."""

import pytest

from planner.cost.renting.quote import RentalFacts
from planner.plan.catalog import Catalog


@pytest.fixture(scope="session")
def facts(catalog: Catalog) -> RentalFacts:
    return RentalFacts.of(catalog.cost)
