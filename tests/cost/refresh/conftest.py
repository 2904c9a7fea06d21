"""What all tests of fetched prices share."""

import threading
from collections.abc import Iterator

import pytest
from price_server import PriceServer


@pytest.fixture
def prices() -> Iterator[PriceServer]:
    """Run a server for the length of a test."""
    served = PriceServer()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.over.set()
        served.server.shutdown()
        thread.join()
        served.server.server_close()
