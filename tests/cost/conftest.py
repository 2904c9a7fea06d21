"""The bundled catalog, read once for all tests of this folder, and the day on which they look at it."""

from datetime import date

import pytest

from planner.plan.catalog import Catalog, load_catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="session")
def today() -> date:
    return date(2026, 11, 22)
