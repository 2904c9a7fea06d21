"""What all tests of fetched prices share."""

from collections.abc import Iterator

import pytest
from price_server import PriceServer, running


@pytest.fixture
def prices() -> Iterator[PriceServer]:
    """Run a server for the length of a test."""
    with running() as served:
        yield served
