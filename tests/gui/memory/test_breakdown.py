"""The memory breakdown: lines, details and copied text."""

import pytest
from memory_results import view
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QHelpEvent, QTextDocumentFragment
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from planner.glossary import glossary
from planner.gui.memory.breakdown import Breakdown, place_columns
from planner.gui.widgets.layout import STRETCH, in_column, scrolled
from planner.gui.widgets.terms import TermRequests, terms_at


@pytest.fixture
def breakdown(qtbot, theme):
    made = Breakdown(theme)
    qtbot.addWidget(made)
    made.set_view(view())
    made.resize(600, 300)
    made.show()
    return made


def words(breakdown, name):
    return QTextDocumentFragment.fromHtml(breakdown.detail(name).text()).toPlainText()


def test_there_is_a_line_a_term(breakdown):
    names = [line.accessibleName() for line in breakdown.term_buttons]
    assert [name.partition(",")[0] for name in names] == ["Weights", "KV cache", "Framework overhead"]
    assert names[0].endswith("counted exactly, collapsed")


def test_return_opens_a_term_with_its_numbers(breakdown, qtbot):
    line = breakdown.term_buttons[0]
    line.setFocus()
    qtbot.keyClick(line, Qt.Key.Key_Return)
    said = words(breakdown, "weights")
    for part in (
        "P × b",
        "8,589,934,592 × 2",
        "17,179,869,184",
        "numbers <kept>",
        "from the model",
        "counted in a test",
    ):
        assert part in said
    assert line.accessibleName().endswith("expanded")
    qtbot.keyClick(line, Qt.Key.Key_Space)
    assert breakdown.detail("weights") is None


def test_up_and_down_go_to_the_neighbours(breakdown, qtbot):
    breakdown.term_buttons[0].setFocus()
    qtbot.keyClick(breakdown.term_buttons[0], Qt.Key.Key_Down)
    assert breakdown.term_buttons[1].hasFocus()
    qtbot.keyClick(breakdown.term_buttons[1], Qt.Key.Key_Up)
    qtbot.keyClick(breakdown.term_buttons[0], Qt.Key.Key_Up)
    assert breakdown.term_buttons[0].hasFocus()


def test_what_is_open_stays_open_while_the_plan_changes(breakdown):
    breakdown.open_term("kv_cache")
    breakdown.set_view(view(cache_gib=4))
    assert "4,294,967,296" in words(breakdown, "kv_cache")


def test_an_uncertain_term_says_its_range_and_its_parts(breakdown):
    breakdown.open_term("framework_overhead")
    said = words(breakdown, "framework_overhead").replace("\u2009", " ")
    assert "0.500 – 1.50 GiB" in said
    assert "half" in said
    assert "536,870,912 B" in said


def test_a_new_scheme_repaints_what_is_open(breakdown, theme):
    breakdown.open_term("weights")
    theme.apply("dark")
    assert theme.color("muted").name() in breakdown.detail("weights").text()
    assert not breakdown.grab().isNull()
    theme.apply("light")


def test_all_lines_are_copied_with_the_keyboard(breakdown, qtbot):
    breakdown.term_buttons[1].setFocus()
    qtbot.keyClick(breakdown.term_buttons[1], Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert lines[0] == ["Term", "GiB", "Share", "How", "Confidence"]
    assert lines[1] == [
        "Weights",
        "16.00",
        "89\u2009%",
        "numbers <kept> 8.59\u2009B × one 2.00\u2009B",
        "counted exactly",
    ]
    assert lines[-1][:2] == ["Total", "18.00"]
    qtbot.keyClick(breakdown.term_buttons[1], Qt.Key.Key_X, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().startswith("Term")


def test_a_right_click_on_a_line_explains_its_term(breakdown, qtbot):
    glossary()
    requests, line = TermRequests(breakdown.window()), breakdown.term_buttons[1]
    with qtbot.waitSignal(requests.card_requested) as asked:
        click = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(5, 5), line.mapToGlobal(QPoint(5, 5)))
        QApplication.sendEvent(line, click)
    assert asked.args[0].term == "KV cache"
    assert [term.term for term in terms_at(line)] == ["KV cache"]
    assert [term.term for term in terms_at(breakdown.term_buttons[0])] == ["Parameters"]


def test_the_tooltip_of_a_line_says_what_its_term_is(breakdown):
    glossary()
    line = breakdown.term_buttons[1]
    QApplication.sendEvent(line, QHelpEvent(QHelpEvent.Type.ToolTip, QPoint(5, 5), line.mapToGlobal(QPoint(5, 5))))
    assert "Keys and values of all previous tokens" in QToolTip.text()
    QToolTip.hideText()


def test_the_words_on_how_wrap_in_a_narrow_table_and_the_confidence_goes(breakdown, theme):
    line = breakdown.term_buttons[0]
    assert line.heightForWidth(360) > line.heightForWidth(1200)
    wide, narrow = place_columns(theme, 1200), place_columns(theme, 420)
    assert wide.confidence < wide.width
    assert narrow.confidence == narrow.width
    assert line.toolTip().endswith(", counted exactly")


def test_an_opened_term_gets_its_height_at_once(qtbot, theme):
    made = Breakdown(theme)
    made.set_view(view())
    body = QWidget()
    in_column(made, STRETCH, owner=body)
    area = scrolled(body)
    qtbot.addWidget(area)
    area.resize(500, 200)
    with qtbot.waitExposed(area):
        area.show()
    for name in ("weights", "framework_overhead"):
        made.open_term(name)
        opened = made.detail(name)
        assert opened.height() == opened.heightForWidth(opened.width())
