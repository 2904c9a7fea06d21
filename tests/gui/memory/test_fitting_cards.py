"""The list of cards on which the plan fits."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from planner.gui.memory.tab import MemoryTab
from planner.plan.evaluate import evaluate, find_fits


@pytest.fixture
def cards(tab: MemoryTab):
    tab.run_primary_action()
    made = tab.controls.find_cards.cards
    yield made
    tab.controls.find_cards.popover.close()


def button(widget, text):
    return next(made for made in widget.findChildren(QPushButton) if made.text().replace("&", "") == text)


def chosen(cards):
    return cards.model.row_of(cards.table.current_id)


def test_every_card_listed_fits_and_the_cheapest_comes_first(tab: MemoryTab, cards, catalog):
    rows = cards.model.records
    assert {row.gpu.id for row in rows} == {fit.gpu_id for fit in find_fits(tab.workspace.plan, catalog)}
    prices = [row.buying.value for row in rows if row.buying is not None]
    assert prices == sorted(prices)
    assert rows[-1].buying is None  # cards without a price come last
    for row in (rows[0], rows[-1]):
        memory = evaluate(tab.workspace.plan.evolve(gpu=row.gpu.id), catalog).memory
        assert (memory.verdict, memory.free_bytes) == (row.verdict, row.free_bytes)
        assert memory.verdict in ("fits", "tight")
    heading = cards.findChild(QLabel).text()
    assert heading.startswith(f"{len(rows)} suitable GPUs for meta-llama/Llama-3.1-8B")


def test_return_uses_the_chosen_card(tab: MemoryTab, cards, qtbot):
    first = chosen(cards)
    cards.table.setFocus()
    qtbot.keyClick(cards.table, Qt.Key.Key_Down)
    qtbot.keyClick(cards.table, Qt.Key.Key_Return)
    assert tab.workspace.plan.gpu == cards.model.records[first + 1].gpu.id
    assert not tab.controls.find_cards.popover.isVisible()


def test_the_button_uses_the_cheapest_that_surely_fits(tab: MemoryTab, cards, qtbot):
    sure = next(row for row in cards.model.records if row.verdict == "fits")
    qtbot.mouseClick(button(cards, "Use this GPU"), Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.gpu == sure.gpu.id


def test_the_catalog_can_show_them(tab: MemoryTab, cards, qtbot):
    with qtbot.waitSignal(tab.workspace.navigator.fitting_cards_requested):
        qtbot.mouseClick(button(cards, "Show in the catalog"), Qt.MouseButton.LeftButton)
    assert not tab.controls.find_cards.popover.isVisible()


@pytest.fixture
def nothing_fits(tab: MemoryTab):
    tab.workspace.answer("batch", {"workload.batch": 1_000_000})
    tab.run_primary_action()
    yield tab.controls.find_cards.cards
    tab.controls.find_cards.popover.close()


def test_where_no_card_fits_the_closest_is_named_and_no_table_shown(nothing_fits):
    heading = nothing_fits.findChild(QLabel).text()
    assert heading.startswith("No GPU in the catalog fits meta-llama/Llama-3.1-8B: ")
    assert "The closest is " in heading
    assert heading.endswith("short.")
    assert not nothing_fits.table.isVisible()
    assert not button(nothing_fits, "Use this GPU").isVisible()


def test_where_no_card_fits_what_would_help_is_one_click_away(tab: MemoryTab, nothing_fits, qtbot):
    tab.advice.section.set_open(False)
    qtbot.mouseClick(button(nothing_fits, "What would help"), Qt.MouseButton.LeftButton)
    assert tab.advice.section.is_open
    assert not tab.controls.find_cards.popover.isVisible()


def test_where_no_card_fits_several_cards_can_be_looked_for(tab: MemoryTab, nothing_fits, qtbot):
    with qtbot.waitSignal(tab.workspace.navigator.hardware_requested):
        qtbot.mouseClick(button(nothing_fits, "Choose hardware…"), Qt.MouseButton.LeftButton)


def test_where_no_card_can_run_the_plan_that_is_said(nothing_fits, monkeypatch):
    monkeypatch.setattr("planner.gui.memory.fitting_cards.fits_by_gpu", lambda _plan, _catalog: {})
    nothing_fits.refresh()
    assert nothing_fits.findChild(QLabel).text().endswith("No GPU in it can run the plan.")
