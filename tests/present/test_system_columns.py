"""What tables and detail panes show of whole machines, on the real catalog."""

import pytest

from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir
from planner.present import systems


@pytest.fixture(scope="module")
def rows():
    return systems.system_rows(load_hardware(catalog_dir()))


def test_every_cell_says_something(rows):
    for row in rows:
        for column in systems.SYSTEM_COLUMNS:
            assert column.text(row)
            assert "None" not in column.text(row)
            if column.tooltip:
                assert isinstance(column.tooltip(row), str)


def test_accelerators_are_counted_and_searched(rows):
    several = next(row for row in rows if row.gpu and (row.system.gpu_count or 0) > 1)
    assert several.accelerators == f"{several.system.gpu_count:,} × {several.gpu.name}"
    assert several.gpu.name.lower() in several.search_text
    assert several.id == several.system.id


def test_every_known_figure_has_a_source(rows):
    for row in rows:
        for group in systems.system_details(row):
            for detail in group.details:
                assert detail.text
                assert detail.source or detail.text in ("unknown", "not published") or detail.title.startswith("Id ")
