"""Sets of accelerator columns, and the columns to sort by."""

from planner.present.catalog.column_sets import COLUMN_SETS, SORT_TITLES
from planner.present.catalog.gpu_columns import GPU_COLUMNS

COLUMNS = {column.key: column for column in GPU_COLUMNS}


def test_what_a_menu_sorts_by_are_the_columns_of_numbers():
    assert {column.key: column.axis for column in GPU_COLUMNS if column.is_number} == SORT_TITLES


def test_sets_of_columns_name_columns_and_begin_with_the_name():
    known = {column.key for column in GPU_COLUMNS}
    for keys in COLUMN_SETS.values():
        assert keys[0] == "name"
        assert set(keys) <= known
        assert len(set(keys)) == len(keys)
