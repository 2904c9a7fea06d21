"""Entries of a comparison, and rows of the systems in the catalog."""

import pytest

from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir
from planner.present.catalog.comparison import (
    ComparisonEntry,
)
from planner.present.catalog.gpu_row import GpuRow
from planner.present.catalog.system_row import (
    SystemRow,
    system_rows,
)


@pytest.fixture(scope="module")
def entries(catalog):
    small, large = (GpuRow(catalog.hardware.gpu(name)) for name in ("rtx-4090", "h100-sxm5-80gb"))
    system = catalog.hardware.system("dgx-h100")
    return (
        ComparisonEntry("accelerators:rtx-4090", small.gpu.name, 1, small),
        ComparisonEntry("systems:dgx-h100", system.name, 8, large, SystemRow(system, large.gpu)),
    )


@pytest.fixture(scope="module")
def rows():
    return system_rows(load_hardware(catalog_dir()))


@pytest.fixture(scope="module")
def by_id(rows):
    return {row.id: row for row in rows}
