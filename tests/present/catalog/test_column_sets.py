"""Sets of accelerator columns, and the columns to sort by."""

from planner.present.catalog.column_sets import COLUMN_SETS, SORT_TITLES
from planner.present.catalog.gpu_columns import GPU_COLUMNS

COLUMNS = {column.key: column for column in GPU_COLUMNS}


def test_the_sort_menu_lists_the_numeric_columns():
    assert {column.key: column.axis_title for column in GPU_COLUMNS if column.is_number} == SORT_TITLES


def test_each_column_set_has_known_columns_and_begins_with_the_name():
    known = {column.key for column in GPU_COLUMNS}
    for keys in COLUMN_SETS.values():
        assert keys[0] == "name"
        assert set(keys) <= known
        assert len(set(keys)) == len(keys)
