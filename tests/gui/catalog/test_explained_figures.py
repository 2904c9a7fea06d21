"""Titles in the list of figures that name a term explain it."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip

from planner.glossary import glossary
from planner.gui.catalog.detail import FigureList
from planner.gui.widgets.terms import TermRequests
from planner.present.columns import Detail, DetailGroup

GROUP = DetailGroup("Memory", (Detail("Bandwidth", "1,008 GB/s", source="data sheet"), Detail("Bus", "384 bit")))
TITLE, OTHER = QPoint(10, 30), QPoint(10, 52)


@pytest.fixture
def figures(qtbot, theme):
    glossary()
    made = FigureList(theme)
    qtbot.addWidget(made)
    made.show_groups((GROUP,), with_sources=False)
    made.resize(260, 120)
    made.show()
    return made


def test_a_click_on_a_title_that_names_a_term_explains_it(figures, qtbot):
    requests = TermRequests(figures)
    with qtbot.waitSignal(requests.card_requested) as asked:
        QTest.mouseClick(figures, Qt.MouseButton.LeftButton, pos=TITLE)
    assert asked.args[0].term == "Memory bandwidth"
    assert asked.args[2].contains(TITLE)


def test_a_click_on_another_title_explains_nothing(figures, qtbot):
    requests = TermRequests(figures)
    with qtbot.assertNotEmitted(requests.card_requested):
        QTest.mouseClick(figures, Qt.MouseButton.LeftButton, pos=OTHER)


def test_the_tooltip_has_the_source_and_the_first_sentence_about_the_term(figures):
    QApplication.sendEvent(figures, QHelpEvent(QHelpEvent.Type.ToolTip, TITLE, figures.mapToGlobal(TITLE)))
    assert "data sheet" in QToolTip.text()
    assert "Bytes per second" in QToolTip.text()
    QToolTip.hideText()
