"""The tab key visits the results in reading order."""

import pytest
from PySide6.QtWidgets import QWidget

from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.layout import focus_stops
from planner.plan.plan import ModelChoice
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training

pytestmark = pytest.mark.usefixtures("explored_tab")


def reached(tab: MemoryTab) -> list[QWidget]:
    """Return what the tab key reaches in the results."""
    return list(focus_stops(tab.results))


def test_rows_that_were_added_later_stand_where_they_are_read(tab: MemoryTab, qtbot):
    learning = Training(micro_batch=4)
    with qtbot.waitSignals([tab.advice.updated, tab.exploration.updated]):
        tab.workspace.apply("x", model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=learning, gpu="rtx-4090")
    order = reached(tab)
    lines = [order.index(line) for line in tab.breakdown.term_buttons]
    offers = [order.index(line.apply) for line in tab.advice.lines]
    uses = [order.index(row.use) for row in tab.exploration.rows if row.use.isVisible() and row.use in order]
    assert lines + offers == sorted(lines + offers)
    assert max(offers) < order.index(tab.advice.more) < min(uses)
    assert uses == sorted(uses)


def test_the_table_of_cards_comes_before_the_terms(tab: MemoryTab):
    cards = (CardCount(id="rtx-4090"), CardCount(id="tesla-t4"))
    tab.workspace.apply("x", workload=Inference(parallel=Parallel(pipeline=2), gpus=cards), gpu=None, count=2)
    order = reached(tab)
    assert order.index(tab.devices.table) < order.index(tab.breakdown.term_buttons[0])
