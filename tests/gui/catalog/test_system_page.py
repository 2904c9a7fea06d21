"""The page of systems with the plan's verdicts."""

import pytest
from PySide6.QtWidgets import QApplication

from planner.gui.catalog.describe import describe_system
from planner.gui.widgets.tables.record_table import PADDING
from planner.plan.evaluate import on_equal_cards
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference


@pytest.fixture
def tab(make_tab):
    tab = make_tab(on_systems=True)
    tab.resize(1161, 700)  # what a window of 1280 leaves beside the list of tabs
    return tab


def verdicts(tab):
    return {row.id: row.verdict for row in tab.systems.model.all_records}


def test_the_table_begins_with_the_cheapest_systems_that_fit(tab):
    model = tab.systems.model
    assert (model.sort_key, model.descending) == ("fits", True)
    fitting = [row.system.price_usd for row in model.records if row.verdict == "fits"]
    assert [row.verdict for row in model.records][: len(fitting)] == ["fits"] * len(fitting)
    known = [price for price in fitting if price is not None]
    assert fitting == sorted(known) + [None] * (len(fitting) - len(known))
    assert [column.key for column in tab.systems.table.visible_columns][:2] == ["name", "fits"]


def test_what_systems_are_compared_by_is_in_view_in_the_smallest_window(tab):
    QApplication.processEvents()
    table = tab.systems.table
    for key in ("fits", "price", "memory", "cards"):
        position = tab.systems.model.column_of(key)
        end = table.columnViewportPosition(position) + table.columnWidth(position) - PADDING
        assert end <= table.viewport().width()


def test_verdicts_follow_the_plan(tab, workspace):
    assert verdicts(tab)["dgx-h100"] == "fits"
    assert verdicts(tab)["dgx-station-v100"] is None
    tab.systems.table.choose("dgx-h100")
    workspace.answer("batch", {"workload.batch": 4_096})
    tab.refresh(workspace.evaluation)
    assert verdicts(tab)["dgx-h100"] == "does-not-fit"
    assert tab.systems.table.current_id == "dgx-h100"
    assert "Does not fit" in tab.systems.detail.as_text()


def test_the_sentence_is_about_what_is_shown(tab, workspace):
    fits = sum(verdict == "fits" for verdict in verdicts(tab).values())
    tight = sum(verdict == "tight" for verdict in verdicts(tab).values())
    tightly = f", tightly on {tight} more" if tight else ""
    assert tab._answer.text().startswith(f"Fits on {fits} of 54 systems{tightly}. Chea")
    workspace.answer("batch", {"workload.batch": 100_000})
    tab.refresh(workspace.evaluation)
    assert tab._answer.text() == "Does not fit on any of 54 systems."
    tab.bar.pages.button(0).click()
    assert "388 accelerators" in tab._answer.text()


def test_a_file_of_no_systems_still_says_what_its_columns_are(tab, tmp_path):
    tab.export_to(tmp_path / "all.csv")
    tab.systems.search("no such system")
    tab.export_to(tmp_path / "none.csv")
    header = (tmp_path / "all.csv").read_text(encoding="utf-8").splitlines()[:1]
    assert (tmp_path / "none.csv").read_text(encoding="utf-8").splitlines() == header


def test_the_table_and_the_pane_say_the_same(tab, workspace):
    for row in tab.systems.model.all_records:
        assert describe_system(row, workspace.plan, workspace.catalog).verdict == row.verdict


def test_unequal_cards_of_the_plan_are_not_taken_for_those_of_the_system(tab, workspace):
    unequal = (CardCount(id="rtx-4090", count=1), CardCount(id="rtx-3090", count=1))
    workload = Inference(gpus=unequal, parallel=Parallel(pipeline=2))
    plan = workspace.plan.evolve(workload=workload, count=2)
    row = tab.systems.model.find("dgx-h100")
    described = describe_system(row, plan, workspace.catalog)
    alone = describe_system(row, on_equal_cards(plan, "h100-sxm5-80gb", 8), workspace.catalog)
    assert described.phrase == alone.phrase
    assert described.sentence == alone.sentence


def test_offers_of_as_many_cards_are_told_once_they_are_read(tab, qtbot):
    tab.systems.table.choose("dgx-h100")
    qtbot.waitUntil(lambda: "Rental offers of 8 × H100 SXM5 80 GB" in tab.systems.detail.as_text())
    text = tab.systems.detail.as_text()
    assert "Rented, on demand: $" in text
    assert "Power and cooling" in text
    tab.systems.table.choose("vera-rubin-nvl72")
    assert "To rent" not in tab.systems.detail.as_text()
