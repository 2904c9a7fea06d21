"""The Catalog tab with the keyboard: search, facets, details and the plan's card."""

import csv
import json
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QCheckBox,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QToolButton,
    QToolTip,
    QWidget,
)

from planner.gui.catalog.detail import FigureList
from planner.gui.catalog.filters import CatalogFilter
from planner.hardware.query import GpuQuery
from planner.present import format as fmt
from planner.present.format import NOT_PUBLISHED, UNKNOWN


def are_priced(tab):
    return any(row.buying for row in tab.gpus.model.all_records)


def type_search(tab, text):
    tab.focus_search()
    QTest.keyClicks(tab.bar.search, text)


def shown(tab):
    return [row.id for row in tab.page.model.records]


def texts(widget):
    return [label.text() for label in widget.findChildren(QWidget) if hasattr(label, "text") and label.isVisible()]


def box(tab, words):
    return next(found for found in tab.gpus.facets.findChildren(QCheckBox) if found.text() == words)


def test_the_answer_and_every_card_follow_the_plan(tab, workspace):
    assert "Fits on" in tab._answer.text()
    before = {row.id: row.verdict for row in tab.gpus.model.records}
    assert set(before.values()) >= {"fits", "does-not-fit"}
    workspace.answer("batch", {"workload.batch": 64})
    after = {row.id: row.verdict for row in tab.gpus.model.records}
    fitting = [sum(verdict == "fits" for verdict in verdicts.values()) for verdicts in (before, after)]
    assert fitting[1] < fitting[0]
    assert tab.gpus.model.columns[1].key == "fits"


def test_a_search_narrows_with_each_letter_and_says_how_many_are_left(tab):
    type_search(tab, "h100")
    assert shown(tab)
    assert all("h100" in row.gpu.search_text for row in tab.gpus.model.records)
    assert tab.bar.count.accessibleName() == f"{len(shown(tab))} of 388 accelerators"
    QTest.keyClick(tab.bar.search, Qt.Key.Key_Escape)
    assert len(shown(tab)) == 388


def test_down_goes_from_the_search_to_the_table_and_enter_uses_the_card(tab, workspace):
    type_search(tab, "rtx 3090")
    QTest.keyClick(tab.bar.search, Qt.Key.Key_Down)
    table = tab.gpus.table
    assert table.hasFocus()
    chosen = table.current_record.id
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert workspace.plan.gpu == chosen
    assert workspace.undo_stack.undoText() == f"GPU {table.current_record.gpu.name}"
    assert tab.gpus.model.is_marked(table.currentIndex().row())
    workspace.undo_stack.undo()
    assert workspace.plan.gpu == "rtx-4090"
    assert not tab.gpus.model.is_marked(table.currentIndex().row())


def test_the_arrow_keys_bring_up_details_with_sources(tab, qtbot):
    type_search(tab, "h100 sxm5")
    QTest.keyClick(tab.bar.search, Qt.Key.Key_Return)
    pane = tab.gpus.detail
    said = texts(pane)
    record = tab.gpus.table.current_record
    assert record.gpu.name in said
    assert any(text.startswith("Needs ") for text in said)
    figures = pane.findChild(FigureList)
    assert f"Physical: {fmt.size(record.gpu.memory_bytes)}" in figures.accessibleDescription()
    height = figures.height()
    sources = next(found for found in pane.findChildren(QCheckBox) if "sources" in found.text())
    QTest.keyClick(sources, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: figures.height() > height)


def test_hovering_over_a_figure_says_where_it_comes_from(tab, qtbot):
    tab.gpus.table.choose("rtx-4090")
    record, figures = tab.gpus.table.current_record, tab.gpus.detail.findChild(FigureList)
    physical = next(piece for piece in figures._cached_texts(figures.width()) if piece.text == "Physical")
    said = figures.tooltip_at(physical.place.center())
    assert fmt.exact_bytes(record.gpu.memory_bytes) in said
    assert record.gpu.provenance_of("memory_bytes").source in said
    assert figures.tooltip_at(QPoint(0, 3)) == ""
    event = QHelpEvent(QHelpEvent.Type.ToolTip, physical.place.center(), figures.mapToGlobal(physical.place.center()))
    assert QApplication.sendEvent(figures, event)
    QToolTip.hideText()


def test_every_figure_of_the_record_shows_how_sure_it_is(tab):
    _glance, *groups = tab.gpus.describe(replace(tab.gpus.model.find("rtx-4090"), prices=None)).groups
    unsigned = {
        detail.title
        for group in groups
        for detail in group.details
        if not detail.mark and detail.text not in (NOT_PUBLISHED, UNKNOWN)
    }
    assert unsigned == {"Id in the catalog"}


def test_the_button_uses_the_card_and_says_when_it_is_in_the_plan(tab, workspace):
    tab.gpus.table.choose("rtx-4090")
    button = next(found for found in tab.gpus.detail.findChildren(QPushButton) if found.property("role") == "primary")
    assert (button.text(), button.isEnabled()) == ("In the plan", False)
    tab.gpus.table.choose("l40s")
    QTest.keyClick(button, Qt.Key.Key_Space)
    assert workspace.plan.gpu == "l40s"
    assert not button.isEnabled()


def test_facets_narrow_and_their_counts_follow(tab, qtbot):
    QTest.keyClick(box(tab, "AMD"), Qt.Key.Key_Space)
    assert {row.gpu.vendor for row in tab.gpus.model.records} == {"AMD"}
    amd = len(shown(tab))
    qtbot.waitUntil(lambda: box(tab, "TPU").accessibleName() == "TPU, 0")
    assert box(tab, "AMD").accessibleName() == f"AMD, {amd}"
    QTest.keyClick(box(tab, "data center"), Qt.Key.Key_Space)
    assert len(shown(tab)) < amd
    chips = tab.gpus.chips.findChildren(QToolButton)
    assert [chip.text() for chip in chips] == ["AMD", "data center"]
    QTest.keyClick(chips[1], Qt.Key.Key_Space)
    assert len(shown(tab)) == amd
    assert not box(tab, "data center").isChecked()
    clear = next(found for found in tab.gpus.facets.findChildren(QPushButton) if found.text() == "Clear all")
    QTest.keyClick(clear, Qt.Key.Key_Space)
    assert len(shown(tab)) == 388
    assert not box(tab, "AMD").isChecked()
    assert not clear.isEnabled()


def test_memory_and_year_take_bounds(tab):
    low, high = tab.gpus.facets._ranges["memory"].findChildren(QLineEdit)
    QTest.keyClicks(low, "24")
    QTest.keyClicks(high, "48")
    sizes = {row.gpu.memory_bytes / 2**30 for row in tab.gpus.model.records}
    assert sizes
    assert all(24 <= size <= 48 for size in sizes)
    first = tab.gpus.facets._ranges["year"].findChildren(QLineEdit)[0]
    QTest.keyClicks(first, "2023")
    assert all(row.gpu.year >= 2023 for row in tab.gpus.model.records)
    assert [chip.text() for chip in tab.gpus.chips.findChildren(QToolButton)] == [
        "Memory 24\u2009GiB – 48\u2009GiB",
        "Year from 2023",
    ]


def test_only_cards_that_fit_follow_the_plan(tab, workspace):
    QTest.keyClick(box(tab, "&Only what fits"), Qt.Key.Key_Space)
    before = len(shown(tab))
    workspace.answer("batch", {"workload.batch": 64})
    assert len(shown(tab)) < before
    assert {row.verdict for row in tab.gpus.model.records} <= {"fits", "tight"}


def test_find_cards_that_fit_starts_over_with_the_cheapest_first(tab, qtbot):
    qtbot.waitUntil(lambda: are_priced(tab))
    type_search(tab, "tesla")
    tab.show_fitting_cards()
    assert tab.gpus.filter == CatalogFilter(only_fitting=True)
    assert tab.bar.search.text() == ""
    priced = [row.buying.value for row in tab.gpus.model.records if row.verdict == "fits" and row.buying]
    assert priced == sorted(priced)
    assert tab.gpus.model.records[0].buying.value == priced[0]


def test_without_a_card_the_fitting_cards_stay_at_the_top_when_prices_arrive(tab, workspace, qtbot):
    qtbot.waitUntil(lambda: are_priced(tab))
    prices, tab.gpus.lookups.buying = tab.gpus.lookups.buying, None
    workspace.apply("card", gpu=None)
    tab.refresh(workspace.evaluation)
    tab.show_fitting_cards()
    tab.gpus.lookups.buying = prices
    tab.gpus.lookups.results_arrived.emit()
    qtbot.waitUntil(lambda: are_priced(tab))
    assert tab.gpus.table.rowAt(0) == 0


def test_a_search_for_an_fpga_is_explained(tab):
    type_search(tab, "cpu")
    assert any(text.startswith("A CPU runs models that fit") for text in texts(tab.gpus.empty))
    type_search(tab, "no such thing")
    assert not tab.gpus.empty._about.isVisible()


def test_a_tpu_is_described_with_a_note(tab):
    tab.gpus.table.choose("tpu-v5e")
    assert "TPUs are Google's accelerators" in tab.gpus.detail.as_text()


def test_an_empty_result_names_the_filter_and_removes_it(tab):
    QTest.keyClick(box(tab, "AMD"), Qt.Key.Key_Space)
    type_search(tab, "h100")
    empty = tab.gpus.empty
    assert empty.isVisible()
    assert "With “h100”, no accelerator is left. Without it, there are 72 accelerators." in texts(empty)
    lift = empty.findChild(QPushButton)
    assert lift.text() == "Remove “h100”"
    QTest.keyClick(lift, Qt.Key.Key_Space)
    assert tab.bar.search.text() == ""
    assert len(shown(tab)) == 72
    assert not empty.isVisible()


def test_without_a_single_blocking_filter_all_can_be_cleared(tab):
    tab.gpus.narrow(CatalogFilter(query=GpuQuery(text="no such card", vendors=("AWS",), year_max=2013)))
    assert "No accelerator matches all filters." in texts(tab.gpus.empty)
    assert any(text.endswith(": “no such card” · AWS") for text in texts(tab.gpus.empty))
    QTest.keyClick(tab.gpus.empty.findChild(QPushButton), Qt.Key.Key_Space)
    assert len(shown(tab)) == 388


def switch_to(tab, words):
    button = next(found for found in tab.findChildren(QToolButton) if found.text() == words)
    QTest.keyClick(button, Qt.Key.Key_Space)


def test_systems_are_searched_described_and_used_with_all_their_cards(tab, workspace):
    switch_to(tab, "Systems")
    assert tab.bar.count.accessibleName() == "54 of 54 systems"
    type_search(tab, "dgx h100")
    QTest.keyClick(tab.bar.search, Qt.Key.Key_Down)
    system = tab.systems.table.current_record.system
    said = texts(tab.systems.detail)
    assert system.name in said
    assert any(text.startswith("&Use 8 × H100") for text in said)
    QTest.keyClick(tab.systems.table, Qt.Key.Key_Return)
    assert (workspace.plan.gpu, workspace.plan.count) == (system.gpu_id, 8)
    assert workspace.undo_stack.undoText() == f"GPUs of {system.name}"
    type_search(tab, "zx spectrum")
    assert "With “zx spectrum”, no system is left. Without it, there are 54 systems." in texts(tab.systems.empty)
    switch_to(tab, "Accelerators")
    assert tab.gpus.filter.query.text == "zx spectrum"


def test_every_system_and_card_can_be_described(tab):
    for page in (tab.gpus, tab.systems):
        for record in page.model.all_records:
            described = page.describe(record)
            assert described.sentence
            assert described.as_text().startswith(described.name)


def test_the_shown_rows_are_exported_with_their_sources(tab, tmp_path, workspace):
    type_search(tab, "rtx 4090")
    tab.export_to(tmp_path / "cards.csv")
    rows = list(csv.DictReader((tmp_path / "cards.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["id"] for row in rows] == shown(tab)
    assert rows[0]["memory_bytes"] == str(tab.gpus.model.records[0].gpu.memory_bytes)
    assert rows[0]["source"]
    assert rows[0]["plan_verdict"] == tab.gpus.model.records[0].verdict
    switch_to(tab, "Systems")
    tab.bar.search.clear()
    tab.export_to(tmp_path / "systems.json")
    assert len(json.loads((tmp_path / "systems.json").read_text(encoding="utf-8"))) == 54


def test_an_unwritable_file_is_reported_in_the_banner(tab, tmp_path, workspace, qtbot):
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with qtbot.waitSignal(workspace.failed) as told:
        tab.export_to(blocked / "cards.csv")
    assert "could not be written" in told.args[0].message
    assert told.args[0].hint


def test_the_result_can_be_copied(tab):
    tab.gpus.table.choose("rtx-4090")
    copied = tab.copy_result()
    assert copied.startswith(tab._answer.text())
    assert "GeForce RTX 4090" in copied
    tab.gpus.table.setFocus()
    QTest.keyClick(tab.gpus.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert (
        QGuiApplication.clipboard()
        .text()
        .startswith("Name\tFits my model\tPrice\tSpeed / time\tMemory, GiB\tBandwidth, GB/s")
    )


def test_columns_can_be_chosen_without_a_mouse(tab, qtbot):
    columns = next(found for found in tab.findChildren(QPushButton) if found.text() == "Col&umns")
    QTest.keyClick(columns, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None)
    popover = QApplication.activePopupWidget()
    QTest.keyClicks(popover._search, "ecc")
    QTest.keyClick(popover._search, Qt.Key.Key_Return)
    assert "ecc" in tab.gpus.table.layout_now().shown
    QTest.keyClick(popover, Qt.Key.Key_Escape)
    assert QApplication.activePopupWidget() is None


def test_the_primary_action_uses_the_chosen_card(tab, workspace):
    tab.gpus.table.choose("l40s")
    tab.run_primary_action()
    assert workspace.plan.gpu == "l40s"


def test_where_nothing_fits_the_answer_says_so(tab, workspace):
    workspace.answer("batch", {"workload.batch": 1_000_000})
    assert tab._answer.text() == "Does not fit on any of 388 accelerators."
    workspace.apply("count", count=2)
    assert "2 of each" in tab._answer.text()


def test_columns_sorting_facets_and_panes_are_remembered(tab, make_tab):
    tab.gpus.table.show_column("interconnect", shown=True)
    tab.gpus.table.sort_by("memory", descending=True)
    tab.gpus.splitter.moveSplitter(260, 1)
    vendor = tab.gpus.facets._sections["vendor"]
    vendor.findChild(QToolButton).click()
    other = make_tab()
    assert other.gpus.table.layout_now() == tab.gpus.table.layout_now()
    assert other.gpus.model.sort_key == "memory"
    assert not other.gpus.facets._sections["vendor"].is_open
    assert other.gpus.splitter.sizes() == tab.gpus.splitter.sizes()


def test_long_lists_of_values_unfold_and_keep_ticked_ones_in_view(tab):
    group = tab.gpus.facets._groups["architecture"]
    more = group.findChild(QPushButton)

    def visible():
        return [found for found in group.findChildren(QCheckBox) if not found.isHidden()]

    few = len(visible())
    more.click()
    rare = visible()[-1]
    assert len(visible()) == len({row.gpu.architecture for row in tab.gpus.model.all_records}) > few
    QTest.keyClick(rare, Qt.Key.Key_Space)
    more.click()
    assert visible()[-1] is rare
    assert len(visible()) == few + 1


def test_every_focusable_widget_has_a_name(tab):
    for words in ("Accelerators", "Systems"):
        switch_to(tab, words)
        tab.page.table.enter()
        for widget in tab.findChildren(QWidget):
            if widget.isVisible() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
                named = widget.accessibleName() or (isinstance(widget, QAbstractButton) and widget.text())
                assert named, widget


@pytest.mark.parametrize("size", [(1160, 700), (1800, 980)])
def test_nothing_but_the_table_scrolls_sideways(tab, qtbot, size):
    tab.resize(*size)
    tab.gpus.table.choose("rtx-4090")
    for area in tab.findChildren(QScrollArea):
        assert area.horizontalScrollBar().maximum() == 0 or not area.isVisible()
        if area.isVisible() and area.widget() is not None:
            assert area.widget().minimumSizeHint().width() <= area.viewport().width()


def test_the_table_opens_at_its_top_with_the_plans_card_described(tab, workspace, qtbot):
    table = tab.gpus.table
    assert table.current_record.id == "rtx-4090"
    qtbot.waitUntil(lambda: are_priced(tab))
    assert table.verticalScrollBar().value() == 0
    qtbot.waitUntil(lambda: tab.gpus.detail.as_text().startswith("GeForce RTX 4090\n"))


def test_a_card_that_comes_into_the_plan_from_elsewhere_is_chosen(tab, workspace):
    workspace.apply("card", gpu="l40s")
    table = tab.gpus.table
    assert table.current_record.id == "l40s"
    assert table.viewport().rect().contains(table.visualRect(table.currentIndex()).center())
    type_search(tab, "h100")
    workspace.apply("card", gpu="a100-sxm4-80gb")
    assert tab.gpus.detail.as_text() == ""
    assert any(text.startswith("A100 SXM4 80 GB is selected, but your filters") for text in texts(tab.gpus.detail))
    QTest.keyClick(tab.bar.search, Qt.Key.Key_Escape)
    assert table.current_record.id == "a100-sxm4-80gb"
    assert [row.id for row in table.selected_records] == ["a100-sxm4-80gb"]


def test_the_users_selection_survives_searches_and_other_plan_changes(tab, workspace):
    tab.gpus.table.choose("l40s")
    type_search(tab, "h100")
    assert tab.gpus.detail.as_text() == ""
    workspace.answer("batch", {"workload.batch": 64})
    QTest.keyClick(tab.bar.search, Qt.Key.Key_Escape)
    assert tab.gpus.detail.as_text().startswith("L40S\n")
    assert tab.gpus.table.current_record.id == "l40s"


def test_without_a_card_in_the_plan_the_first_row_is_described_until_one_is_chosen(make_tab, workspace):
    workspace.apply("no card", gpu=None)
    made = make_tab()

    def described_first() -> bool:
        row = made.gpus.model.record(0)
        return made.gpus.table.current_record == row and made.gpus.detail.as_text().startswith(f"{row.gpu.name}\n")

    assert described_first()
    made.gpus.table.sort_by("memory", descending=True)
    assert described_first()
    type_search(made, "h100")
    assert described_first()
    made.gpus.table.choose("h100-sxm5-80gb")
    workspace.answer("batch", {"workload.batch": 64})
    QTest.keyClick(made.bar.search, Qt.Key.Key_Escape)
    assert made.gpus.table.current_record.id == "h100-sxm5-80gb"
    assert not described_first()


def test_systems_begin_with_one_that_has_the_plans_cards(tab, workspace):
    workspace.apply("cards", gpu="h100-sxm5-80gb", count=8)
    tab.bar.pages.button(1).click()
    row = tab.systems.table.current_record
    assert (row.gpu.id, row.system.gpu_count) == ("h100-sxm5-80gb", 8)
    workspace.apply("cards", gpu="rtx-4090")
    assert tab.systems.table.current_record == row


def test_the_columns_one_compares_by_are_in_view_in_the_smallest_window(tab):
    table = tab.gpus.table
    tab.resize(1161, 700)  # what a window of 1280 leaves beside the list of tabs
    QApplication.processEvents()
    in_view = [column.position for column in table.columns_within(table.viewport().rect())]
    keys = [tab.gpus.model.columns[position].key for position in in_view]
    assert keys[:5] == ["fits", "buy", "job_time", "memory", "bandwidth"]
    last = tab.gpus.model.column_of("bandwidth")
    assert table.columnViewportPosition(last) + table.columnWidth(last) <= table.viewport().width()


def test_the_fitting_cards_are_shown_from_the_smallest_whatever_is_chosen(tab):
    tab.show_fitting_cards()
    assert tab.gpus.table.rowAt(0) == 0
    assert tab.gpus.table.current_record.id == "rtx-4090"


def test_finding_cards_selects_the_plans_card_or_else_the_first_that_fits(tab, workspace):
    tab.gpus.table.choose("tesla-t4")
    tab.show_fitting_cards()
    assert tab.gpus.table.current_id == workspace.plan.gpu
    workspace.apply("batch", workload=workspace.plan.workload.evolve(batch=64))
    tab.refresh(workspace.evaluation)
    tab.show_fitting_cards()
    assert workspace.plan.gpu not in {row.id for row in tab.gpus.model.records}
    assert tab.gpus.table.current_record is tab.gpus.model.records[0]


def test_whole_computers_are_not_the_cheapest_of_several_cards(tab):
    computer = next(row for row in tab.gpus.model.all_records if row.gpu.is_whole_computer)
    assert tab.gpus.can_be_combined(computer)
    tab.workspace.apply("count", count=2)
    assert not tab.gpus.can_be_combined(computer)


def test_the_headline_and_the_details_follow_the_filter(tab, qtbot):
    qtbot.waitUntil(lambda: are_priced(tab) and " more. Cheapest: " in tab._answer.text())
    tab.gpus.table.choose("l40s")
    type_search(tab, "under 2,000 USD")
    listed = tab.gpus.model.records
    fitting = [row for row in listed if row.verdict == "fits"]
    tight = [row for row in listed if row.verdict == "tight"]
    cheapest = min(fitting, key=lambda row: row.buying.value)
    tightly = f", tightly on {len(tight)} more" if tight else ""
    said = f"Fits on {len(fitting)} of {len(listed)} matching accelerators{tightly}. Cheapest: "
    qtbot.waitUntil(lambda: said + cheapest.gpu.name in tab._answer.text())
    assert any(text.startswith("L40S is selected, but your filters hide it") for text in texts(tab.gpus.detail))
    assert not tab.gpus.detail.is_describing
    tab.clear_filters()
    assert tab.gpus.detail.as_text().startswith("L40S\n")


def test_a_search_by_a_figure_shows_its_column_as_long_as_it_asks(tab):
    table = tab.gpus.table
    own = table.layout_now()
    type_search(tab, "fp16 > 100")
    assert [column.key for column in table.visible_columns][:3] == ["name", "fits", "fp16"]
    assert table.layout_now() == own
    tab.clear_filters()
    assert table.layout_now() == own
    assert tuple(column.key for column in table.visible_columns) == own.shown
    type_search(tab, "fp16 > 100")
    table.sort_as_clicked("fp16")
    tab.clear_filters()
    assert "fp16" in table.layout_now().shown


def test_a_column_that_is_shown_already_comes_into_view(tab):
    table = tab.gpus.table
    position = tab.gpus.model.column_of("year")
    assert table.columnViewportPosition(position) > table.viewport().width()
    tab.gpus.narrow(CatalogFilter().with_bounds("year", 2022, None), "year")
    assert table.columnViewportPosition(position) + table.columnWidth(position) <= table.viewport().width()


def test_sliders_say_what_the_listed_cards_have_and_what_the_search_asks(tab):
    type_search(tab, "24 GiB power below 300 W")
    tab.gpus.count_facets()
    memory, power = (tab.gpus.facets._ranges[key] for key in ("memory", "power"))
    listed = [row.gpu.board_power_watts for row in tab.gpus.model.records]
    assert [edit.placeholderText() for edit in power.findChildren(QLineEdit)] == [
        fmt.plain(min(listed)),
        fmt.plain(max(listed)),
    ]
    assert power._slider.bounds == (None, 300)
    assert memory._slider.bounds == (20, 30)  # the stops around 24
    type_search(tab, " no such card")
    tab.gpus.count_facets()
    assert power.findChildren(QLineEdit)[0].placeholderText() == "any"


def test_narrow_windows_have_room_for_the_figures_that_decide(tab):
    tab.resize(905, 580)
    QApplication.processEvents()
    assert not tab.gpus.facets.isVisible()
    table = tab.gpus.table
    last = tab.gpus.model.column_of("memory")
    assert table.columnViewportPosition(last) + table.columnWidth(last) <= table.viewport().width()
    tab.bar.filters.click()
    assert tab.gpus.facets.isVisible()
    tab.swap_page()
    assert tab.systems.facets.isVisible()


def test_the_certainty_of_figures_is_said_in_words(tab):
    figures = tab.gpus.detail.findChild(FigureList)
    words = {piece.text for piece in figures._cached_texts(figures.width())}
    assert {"published", "derived", "measured"} <= words
    shown = next(piece for piece in figures._cached_texts(figures.width()) if piece.text == "published")
    assert "two sources agree" in figures.tooltip_at(shown.place.center())
    power = tab.gpus.model.column_of("power")
    cells = [tab.gpus.model.index(row, power) for row in range(tab.gpus.model.rowCount())]
    told = [cell.data(Qt.ItemDataRole.AccessibleDescriptionRole) for cell in cells]
    assert any("\none source\n" in words for words in told)


def test_a_click_on_a_header_sorts_the_best_first(tab):
    table, model = tab.gpus.table, tab.gpus.model
    directions = {}
    for key in ("bandwidth", "buy", "fits", "name"):
        table.sort_as_clicked(key)
        directions[key] = model.descending
    assert directions == {"bandwidth": True, "buy": False, "fits": True, "name": False}
    table.sort_as_clicked("name")
    assert model.descending
