"""Sets of accelerator columns, and the columns to sort by."""

from planner.present.catalog.column_sets import COLUMN_GROUPS, COLUMN_SETS, SORT_TITLES, SYSTEM_COLUMN_GROUPS
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.system_columns import SYSTEM_COLUMNS

COLUMNS = {column.key: column for column in GPU_COLUMNS}


def test_the_sort_menu_lists_the_numeric_columns():
    assert {column.key: column.axis_title for column in GPU_COLUMNS if column.is_number} == SORT_TITLES


def test_each_column_set_has_known_columns_and_begins_with_the_name():
    known = {column.key for column in GPU_COLUMNS}
    for keys in COLUMN_SETS.values():
        assert keys[0] == "name"
        assert set(keys) <= known
        assert len(set(keys)) == len(keys)


def test_each_column_but_the_name_is_in_one_group():
    for groups, columns in ((COLUMN_GROUPS, GPU_COLUMNS), (SYSTEM_COLUMN_GROUPS, SYSTEM_COLUMNS)):
        grouped = [key for keys in groups.values() for key in keys]
        assert sorted(grouped) == sorted(column.key for column in columns if column.key != "name")
