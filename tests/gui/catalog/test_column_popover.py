"""Popover that chooses the columns of a catalog table."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from planner.gui.catalog.column_popover import ColumnPopover
from planner.present.catalog.column_sets import COLUMN_SETS


@pytest.fixture
def popover(tab):
    page = tab.gpus
    made = ColumnPopover(page.table, page.theme, page.column_groups, page.column_sets)
    made.open_at(tab.bar.columns)
    yield made
    made.close()


def shown_items(popover):
    items = (popover._list.item(row) for row in range(popover._list.count()))
    return [item.text() for item in items if not item.isHidden()]


def item(popover, title):
    (found,) = popover._list.findItems(title, Qt.MatchFlag.MatchExactly)
    return found


def press(popover, words):
    next(button for button in popover.findChildren(QPushButton) if button.text() == words).click()


def test_the_search_finds_columns_by_title_and_whole_groups(popover):
    QTest.keyClicks(popover._search, "per watt")
    assert shown_items(popover) == [
        *("Power", "Rate per watt, TFLOPS/W", "Bandwidth per watt, GB/s/W", "Memory per watt, GiB/W"),
    ]
    popover._search.setText("your plan")
    assert shown_items(popover)[:2] == ["Your plan", "Fits my model"]
    popover._search.setText("no such column")
    assert shown_items(popover) == []


def test_columns_are_turned_on_and_off_by_keyboard(popover, tab):
    QTest.keyClicks(popover._search, "ecc")
    QTest.keyClick(popover._search, Qt.Key.Key_Down)
    assert popover._list.currentItem().text() == "ECC"
    QTest.keyClick(popover._list, Qt.Key.Key_Space)
    assert "ecc" in tab.gpus.table.layout_now().shown
    QTest.keyClick(popover._search, Qt.Key.Key_Return)
    assert "ecc" not in tab.gpus.table.layout_now().shown
    popover._search.setText("memory")
    QTest.keyClick(popover._search, Qt.Key.Key_Return)  # several: none is meant
    assert tab.gpus.table.layout_now().shown == tab.gpus.table.default_layout.shown


def test_a_set_replaces_the_columns_and_reset_restores_them(popover, tab):
    table = tab.gpus.table
    press(popover, "Money")
    assert table.layout_now().shown == COLUMN_SETS["money"]
    assert item(popover, "Used price").checkState() is Qt.CheckState.Checked
    press(popover, "&Reset")
    assert table.layout_now() == table.default_layout
    assert item(popover, "Used price").checkState() is Qt.CheckState.Unchecked


def test_the_order_can_be_chosen(popover, tab):
    popover._sort.choose("memory")
    popover._descending.setChecked(False)
    assert (tab.gpus.model.sort_key, tab.gpus.model.descending) == ("memory", False)
    memory = [row.gpu.memory_bytes for row in tab.gpus.model.records]
    known = [size for size in memory if size is not None]
    assert memory == [*sorted(known), *[None] * (len(memory) - len(known))]
