"""Typical questions to the catalog, each answered with the mouse and with the keyboard."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from planner.gui.tab import TABS
from planner.gui.widgets.popover import SearchPopover
from planner.gui.window import MainWindow
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import Parallel
from planner.workload.workload import Training

LORA_70B = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-70B"),
    workload=Training(method="lora", activation_checkpointing="full", parallel=Parallel(zero=3)),
    gpu="h100-sxm5-80gb",
    count=8,
)


@pytest.fixture
def window(qtbot, workspace, theme, tasks):
    workspace.settings.update(tab="catalog")
    made = MainWindow(workspace, theme, tasks, TABS[:2])
    qtbot.addWidget(made, before_close_func=lambda _window: workspace.undo_stack.setClean())
    made.resize(1280, 800)
    made.show()
    made.activateWindow()
    gpus = made.catalog().gpus
    qtbot.waitUntil(lambda: not tasks.busy and any(row.buying for row in gpus.model.all_records))
    return made


@pytest.fixture
def settled(qtbot, tasks):
    """Return a way to wait for what is worked out beside the window."""
    return lambda: qtbot.waitUntil(lambda: not tasks.busy)


def click(widget):
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def press(widget, key, *modifiers):
    keys = Qt.KeyboardModifier.NoModifier
    for modifier in modifiers:
        keys |= modifier
    QTest.keyClick(widget, key, keys)


def by_palette(window, words):
    """Run what the palette finds for `words`, as Ctrl+K does."""
    window.commands["view.palette"].trigger()
    edit = window._command_palette.list._edit
    QTest.keyClicks(edit, words)
    press(edit, Qt.Key.Key_Return)


def pick(tab, words):
    """Add what is found for `words` to the comparison."""
    popover = tab.compare.offer(tab.compare._add)
    QTest.keyClicks(popover.list._edit, words)
    press(popover.list._edit, Qt.Key.Key_Return)


def cells(tab, title):
    model = tab.compare.table.compared
    row = next(row for row in range(model.rowCount()) if model.index(row, 0).data() == title)
    return [model.cell(model.index(row, column)) for column in range(1, model.columnCount())]


def test_which_24_gb_card_under_1000_usd_has_the_most_bandwidth(window):
    tab = window.catalog()
    tab.focus_search()
    QTest.keyClicks(tab.bar.search, "24 GB under 1,000 USD")
    by_palette(window, "sort by bandwidth, GB/s")
    best = tab.gpus.table.current_record
    assert best.gpu.launch_price_usd <= 1_000
    assert tab.gpus.detail.as_text().startswith(best.gpu.name)
    assert best.gpu.bandwidth_bytes_per_s == max(row.gpu.bandwidth_bytes_per_s for row in tab.gpus.model.records)
    assert best.id == "radeon-rx-7900-xtx"


def test_the_same_with_the_mouse(window):
    tab = window.catalog()
    click(tab.bar.search)
    QTest.keyClicks(tab.bar.search, "24 GB under 1,000 USD")
    header = tab.gpus.table.horizontalHeader()
    place = header.sectionViewportPosition(tab.gpus.model.column_of("bandwidth")) + 10
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place, 5))
    assert tab.gpus.model.sort_key == "bandwidth"
    assert tab.gpus.model.descending
    table = tab.gpus.table
    QTest.mouseClick(
        table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(table.model().index(0, 1)).center()
    )
    assert tab.gpus.detail.as_text().startswith("Radeon RX 7900 XTX")


def test_what_replaces_two_3090s_within_700_w(window, workspace, settled):
    workspace.apply("two cards", gpu="rtx-3090", count=2)
    tab = window.catalog()
    tab.focus_search()
    QTest.keyClicks(tab.bar.search, "at least 48 GiB within 700 W under 10,000 USD")
    by_palette(window, "sort by bandwidth, GB/s")
    for _ in range(2):
        press(tab.gpus.table, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    window.commands["catalog.add"].trigger()
    pick(tab, "rtx 3090")
    settled()
    assert tab.compare.ids[-1] == "accelerators:rtx-3090"
    for place in (1, 2, 3):  # one of each, beside two of the old ones
        tab.compare.table.setCurrentIndex(tab.compare.table.compared.index(1, place))
        press(tab.compare.table, Qt.Key.Key_Minus)
    settled()
    assert [cell.text.split()[0] for cell in cells(tab, "Accelerators")] == ["1", "1", "1", "2"]
    assert all(cell.value <= 700 for cell in cells(tab, "Power"))
    assert all(cell.value >= cells(tab, "Memory")[3].value for cell in cells(tab, "Memory"))


def test_a_dgx_a100_or_eight_h100_for_lora_on_70b(window, workspace, settled):
    workspace.replace(LORA_70B, None)
    tab = window.catalog()
    window.commands["catalog.compare"].trigger()
    pick(tab, "dgx a100 640")
    pick(tab, "h100 sxm5 80")
    settled()
    assert tab.compare.ids == ("systems:dgx-a100-640gb", "accelerators:h100-sxm5-80gb")
    monthly, by_work = cells(tab, "Rented"), cells(tab, "Rented, per million tokens")
    assert monthly[0].value < monthly[1].value
    assert by_work[1].is_best
    tab.compare.table.setCurrentIndex(tab.compare.table.compared.index(1, 2))
    tab.run_primary_action()
    assert (workspace.plan.gpu, workspace.plan.count) == ("h100-sxm5-80gb", 8)


def test_the_same_from_the_table_with_the_mouse(window, workspace, settled):
    workspace.replace(LORA_70B, None)
    tab = window.catalog()
    click(tab.bar.pages.button(1))
    settled()
    tab.systems.table.choose("dgx-a100-640gb")
    click(tab.systems.detail._compare)
    click(tab.compare._add)
    popover = tab.compare.findChild(SearchPopover)
    QTest.keyClicks(popover.list._edit, "h100 sxm5 80")
    press(popover.list._edit, Qt.Key.Key_Return)
    settled()
    assert [cell.text for cell in cells(tab, "Accelerators")] == ["8 × A100 SXM4 80 GB", "8 × H100 SXM5 80 GB"]
