"""The comparison of cards and systems in the Catalog tab."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from planner.errors import PlannerError

THREE = ("accelerators:rtx-4090", "accelerators:h100-sxm5-80gb", "systems:dgx-h100")


@pytest.fixture
def page(tab, qtbot):
    tab.compare.add(THREE)
    tab.show_view("compare")
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    return tab.compare


def cells(page, title):
    model = page.table.compared
    row = next(row for row in range(model.rowCount()) if model.index(row, 0).data() == title)
    return [model.index(row, column).data() for column in range(1, model.columnCount())]


def test_an_empty_comparison_explains_how_to_start(tab):
    tab.show_view("compare")
    assert tab.compare._pages.currentIndex() == 1
    tab.compare.use_current()
    tab.compare.remove_current()
    assert tab.compare.ids == ()


def test_the_plan_is_worked_out_on_each(page, workspace):
    assert [text.startswith("Fits") for text in cells(page, "Fits")] == [True, True, True]
    assert all("tokens/s" in text for text in cells(page, "Speed"))
    assert cells(page, "Accelerators")[2] == "8 × H100 SXM5 80 GB"


def test_the_comparison_follows_the_plan(page, tab, workspace, qtbot):
    workspace.apply("count", count=2)
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    assert cells(page, "Accelerators")[0] == "2 × GeForce RTX 4090"


def test_the_answer_of_the_comparison_is_about_its_entries(page, tab):
    assert tab._answer.text().startswith("Highest throughput: DGX H100 (")
    tab.show_view("table")
    assert tab._answer.text().startswith("Fits on ")


def test_the_best_is_told_to_screen_readers_too(page):
    model = page.table.compared
    row = next(row for row in range(model.rowCount()) if model.index(row, 0).data() == "Memory")
    said = model.index(row, 3).data(Qt.ItemDataRole.AccessibleTextRole)
    assert said == "Memory of DGX H100: 640\u2009GiB, best"
    assert model.index(row, 1).data(Qt.ItemDataRole.ToolTipRole)
    assert model.index(0, 1).data(Qt.ItemDataRole.AccessibleTextRole) is None


def test_entries_are_used_and_removed_by_keyboard(page, workspace):
    table = page.table
    table.setCurrentIndex(table.compared.index(2, 3))
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert (workspace.plan.gpu, workspace.plan.count) == ("h100-sxm5-80gb", 8)
    workspace.undo_stack.undo()
    assert workspace.plan.gpu == "rtx-4090"
    QTest.keyClick(table, Qt.Key.Key_Delete)
    assert page.ids == THREE[:2]
    page.clear()
    assert page.ids == ()


def test_the_cell_with_the_keyboard_is_ringed_and_tab_leaves_the_table(page):
    table = page.table
    table.setCurrentIndex(table.compared.index(2, 1))
    table.setFocus()
    ringed = table.viewport().grab(table.visualRect(table.currentIndex())).toImage()
    QTest.keyClick(table, Qt.Key.Key_Tab)
    assert not table.hasFocus()
    assert table.currentIndex().column() == 1
    assert table.viewport().grab(table.visualRect(table.currentIndex())).toImage() != ringed


def test_long_texts_wrap(page, tab, qtbot):
    table, rows = page.table, page.table.verticalHeader()
    page.add((*THREE, "accelerators:rtx-6000-ada", "accelerators:rtx-pro-6000-blackwell-ws"))
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    links = next(row for row in range(table.compared.rowCount()) if table.compared.index(row, 0).data() == "Links")
    narrow = rows.sectionSize(links), table.horizontalHeader().height()
    tab.resize(2400, 700)
    QApplication.processEvents()
    assert rows.sectionSize(links) < narrow[0]
    assert table.horizontalHeader().height() < narrow[1]
    picture = table.picture()
    needed = rows.length() + table.horizontalHeader().height()
    assert abs(picture.height() / picture.devicePixelRatio() - needed) < 10


def test_cards_are_counted_up_and_down_apart_from_the_plan(page, tab, workspace, qtbot):
    table = page.table
    table.setCurrentIndex(table.compared.index(2, 1))
    QTest.keyClick(table, Qt.Key.Key_Plus)
    assert page.ids[0] == "accelerators:rtx-4090@2"
    assert cells(page, "Accelerators")[0] == "2 × GeForce RTX 4090"
    QTest.keyClick(table, Qt.Key.Key_Minus)
    QTest.keyClick(table, Qt.Key.Key_Minus)
    assert page.ids[0] == "accelerators:rtx-4090@1"
    page._more.click()
    assert page.ids[0] == "accelerators:rtx-4090@2"
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    assert workspace.plan.count == 1


def test_machines_are_counted_up_and_down_by_mouse_and_keyboard(page, tab, workspace, qtbot):
    table = page.table
    table.setCurrentIndex(table.compared.index(2, 3))
    page._fewer.click()
    assert page.ids[2] == "systems:dgx-h100"
    QTest.mouseClick(page._more, Qt.MouseButton.LeftButton)
    QTest.keyClick(table, Qt.Key.Key_Plus)
    assert page.ids[2] == "systems:dgx-h100@3"
    assert cells(page, "Accelerators")[2] == "24 × H100 SXM5 80 GB"
    assert cells(page, "Power")[2] == "30,600\u2009W, whole machine"
    QTest.keyClick(table, Qt.Key.Key_Minus)
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    assert page._notes.text().startswith(
        "2 × DGX H100: the catalog does not list the network between the machines. The time is"
    )
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert (workspace.plan.gpu, workspace.plan.count) == ("h100-sxm5-80gb", 16)
    assert workspace.undo_stack.undoText() == "GPUs of 2 × DGX H100"
    QTest.keyClick(table, Qt.Key.Key_Minus)
    assert page.ids[2] == "systems:dgx-h100"
    assert not page._notes.isVisible()
    qtbot.waitUntil(lambda: not tab.tasks.busy)


def test_several_of_one_are_picked_by_their_number(page, tab, qtbot):
    popover = page.offer(page._add)
    edit = popover.list._edit
    QTest.keyClicks(edit, "2x dgx a100 640")
    match = popover.list.matches[0]
    assert (match.title, match.detail) == ("2 × DGX A100 640 GB", "8 × A100 SXM4 80 GB each")
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert page.ids[-1] == "systems:dgx-a100-640gb@2"
    assert cells(page, "Memory")[-1] == "1,280\u2009GiB"
    other = page.offer(page._add)
    for typed, wanted in (("3 × RTX 3090", True), ("0 x RTX 3090", False), ("2 x zx spectrum", False), ("l4", False)):
        other.list._edit.setText(typed)
        assert any(match.title == "3 × GeForce RTX 3090" for match in other.list.matches) == wanted
    other.close()
    qtbot.waitUntil(lambda: not tab.tasks.busy)


def test_a_system_of_unknown_accelerators_is_not_planned_and_says_why(tab, qtbot):
    tab.compare.add(("systems:dgx-station-v100@2", THREE[2]))
    tab.show_view("compare")
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    assert cells(tab.compare, "Fits")[0] == "not evaluated"
    assert cells(tab.compare, "Price")[0].startswith("$138,000 (list")
    assert (
        "2 × DGX Station (V100) is not evaluated: the catalog does not name this system's accelerator"
        in tab.compare._notes.text()
    )


def test_a_seventh_entry_replaces_the_first(page, workspace):
    names = [f"accelerators:{gpu.id}" for gpu in workspace.catalog.hardware.gpus[:5]]
    page.add(names)
    assert len(page.ids) == 6
    assert page.ids[-1] == names[-1]
    assert THREE[0] not in page.ids


def test_only_differences_hides_what_is_alike(page):
    every = page.table.compared.rowCount()
    page._only.click()
    assert page.table.compared.rowCount() < every


def test_rows_selected_in_the_table_are_compared(tab, qtbot):
    table = tab.gpus.table
    table.choose("l40s")
    tab.compare_chosen()
    assert tab.view == "compare"
    assert tab.compare.ids == ("accelerators:l40s",)
    tab.show_view("table")
    tab.bar.pages.button(1).click()
    tab.systems.table.choose("dgx-h100")
    tab.systems.detail._compare.click()
    assert tab.compare.ids == ("accelerators:l40s", "systems:dgx-h100")
    qtbot.waitUntil(lambda: not tab.tasks.busy)


def test_the_comparison_is_saved_and_copied(page, tab, tmp_path, workspace, qtbot):
    for name in ("cards.md", "cards.csv", "cards.png"):
        tab.export_to(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    assert "**640\u2009GiB**" in (tmp_path / "cards.md").read_text(encoding="utf-8")
    assert tab.copy_result() == page.as_markdown()
    with qtbot.waitSignal(workspace.failed) as told:
        tab.export_to(tmp_path / "cards.xyz")
    assert isinstance(told.args[0], PlannerError)


def test_entries_that_left_the_catalog_are_skipped(tab, workspace):
    tab.compare.add(("accelerators:gone", "systems:gone", THREE[0]))
    assert tab.compare.ids == THREE[:1]
    tab.run_primary_action()


def test_the_menu_offers_what_the_view_can_give(page, tab):
    menu = tab._export_menu
    menu.fill()
    assert [action.text() for action in menu.actions()][:2] == ["Copy as &Markdown", "Copy as &CSV"]
    for action in menu.actions()[:3]:
        action.trigger()
    tab.show_view("table")
    menu.fill()
    for action in menu.actions()[:3]:
        action.trigger()


def test_a_failed_evaluation_is_reported_and_tried_again(page, tab, workspace, qtbot):
    with qtbot.waitSignal(workspace.failed) as told:
        page._on_error(PlannerError("the prices cannot be read", "Mend them."))
    assert told.args[0].message == "the prices cannot be read"
    page.refresh()
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    assert cells(page, "Fits")[0].startswith("Fits")
