"""The table of memory per card."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from planner.gui.memory.tab import MemoryTab
from planner.plan.plan import ModelChoice
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference, Parallel, Training

CARDS = (CardCount(id="rtx-4090"), CardCount(id="tesla-t4", count=2))


@pytest.fixture
def unequal(tab: MemoryTab):
    workload = Inference(parallel=Parallel(pipeline=3), gpus=CARDS)
    tab.workspace.apply("cards", workload=workload, gpu=None, count=3)
    return tab


def test_equal_cards_have_no_table(tab: MemoryTab):
    assert not tab.devices.isVisible()


def test_unequal_cards_have_a_row_each(unequal):
    rows = unequal.devices.rows
    assert unequal.devices.isVisible()
    assert [row.share.total_bytes for row in rows] == [
        one.total_bytes for one in unequal.workspace.evaluation.memory.per_gpu
    ]
    (fullest,) = (row for row in rows if row.scarcity == "least free memory")
    assert "n the fullest of " in unequal.answer.facts
    assert fullest.share.total_bytes == unequal.workspace.evaluation.memory.total_bytes
    table = unequal.devices.table
    texts = [table.records().texts(number) for number in range(len(rows))]
    assert all(row[-1] == "Fits" for row in texts)
    assert table.records().shares([0], table.records().column_of("used")) == [pytest.approx(rows[0].used_fraction)]


def test_the_rows_are_copied_with_the_keyboard(unequal, qtbot):
    table = unequal.devices.table
    table.setFocus()
    table.selectAll()
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].startswith("GPUs\tStage\tLayers\tNeeds, GiB")
    assert len(lines) == 1 + len(unequal.devices.rows)


def test_stages_of_equal_cards_have_a_row_each(tab: MemoryTab):
    model = ModelChoice(id="openai-community/gpt2")
    tab.workspace.apply("stages", model=model, workload=Training(parallel=Parallel(pipeline=4)), count=4)
    assert [row.share.stage for row in tab.devices.rows] == [0, 1, 2, 3]


def test_cards_that_cannot_run_it_have_no_rows(tab: MemoryTab):
    gpus = (CardCount(id="tpu-v4"), CardCount(id="rtx-4090"))
    tab.workspace.apply("cards", workload=Inference(gpus=gpus), gpu=None, count=2)
    assert not tab.devices.isVisible()


def test_what_stays_in_ram_has_a_line_of_its_own(tab: MemoryTab):
    assert not tab.host.isVisible()
    tab.workspace.apply("llama.cpp", workload=Inference(weights="Q4_K_M", gpu_layers=10))
    assert tab.host.isVisible()
    assert "of RAM" in tab.host.text()
