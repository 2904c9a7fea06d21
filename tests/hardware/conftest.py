"""The bundled hardware, read once for all tests of this folder."""

import pytest

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.paths import catalog_dir


@pytest.fixture(scope="session")
def hardware() -> HardwareCatalog:
    return load_hardware(catalog_dir())
