"""The layout that wraps its items to lines."""

import pytest
from PySide6.QtWidgets import QLabel, QWidget

from planner.gui.widgets.layout import FlowLayout


@pytest.fixture
def owner(qtbot):
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def flow(owner):
    layout = FlowLayout(4)
    layout.setContentsMargins(8, 2, 0, 2)
    owner.setLayout(layout)
    for number in range(3):
        label = QLabel(str(number))
        label.setFixedSize(100, 20)
        layout.addWidget(label)
    owner.resize(320, 100)
    owner.show()
    return layout


def places(layout):
    return [(layout.itemAt(row).geometry().x(), layout.itemAt(row).geometry().y()) for row in range(layout.count())]


def test_one_line_where_there_is_room(flow):
    assert places(flow) == [(8, 2), (112, 2), (216, 2)]
    assert flow.heightForWidth(320) == 24
    assert flow.hasHeightForWidth()


def test_more_lines_where_there_is_none(flow, qtbot):
    flow.parentWidget().resize(215, 100)
    qtbot.waitUntil(lambda: places(flow) == [(8, 2), (112, 2), (8, 26)])
    assert flow.heightForWidth(215) == 48
    assert flow.heightForWidth(10) == 72


def test_items_can_be_taken_and_nothing_is_past_the_end(flow):
    assert flow.takeAt(1).widget().text() == "1"
    assert flow.count() == 2
    assert flow.takeAt(9) is None
    assert flow.itemAt(-1) is None
    assert flow.sizeHint() == flow.minimumSize()
    assert not flow.expandingDirections()
