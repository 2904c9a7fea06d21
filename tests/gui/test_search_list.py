"""The searchable list: ranking, keyboard, and its popover."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from planner.gui.theme import Theme
from planner.gui.widgets.popover import Choice, Popover, SearchList, SearchPopover, match_rank, search_choices

CARDS = (
    Choice("a100", "A100 SXM 80 GB", "80.0 GiB"),
    Choice("h200", "H200 SXM 141 GB", "141 GiB", ("fits", "ok"), "hopper"),
    Choice("gh200", "GH200 Grace Hopper", "96.0 GiB"),
    Choice("4090", "GeForce RTX 4090", "24.0 GiB", ("does-not-fit", "bad"), "ada lovelace"),
)


@pytest.fixture
def cards(qtbot: QtBot, theme: Theme) -> SearchList:
    made = SearchList(theme, "Search cards")
    qtbot.addWidget(made)
    made.set_choices(CARDS, "4090")
    made.resize(400, 300)
    made.show()
    return made


def keys(found) -> list[object]:
    return [choice.key for choice in found]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a100", "h200", "gh200", "4090"]),
        ("h200", ["h200", "gh200"]),
        ("H 200", ["h200", "gh200"]),
        ("rtx4090", ["4090"]),
        ("gch", []),
        ("hopper 200", ["gh200", "h200"]),
        ("lovelace", ["4090"]),
        ("hopper", ["h200", "gh200"]),
        ("zzz", []),
    ],
)
def test_words_and_their_starts_are_found_best_first(query, found):
    assert keys(search_choices(CARDS, query)) == found


def test_starts_of_words_rank_above_the_middle_and_words_apart():
    found = [match_rank("tx 4", text) for text in ("TX 4090", "GeForce TX 4090", "GeForce RTX 4090", "RTX with 4 GB")]
    assert found == sorted(found)
    assert [rank for rank, _ in found] == [0, 1, 2, 3]


def test_separators_and_points_do_not_count():
    assert match_rank("qwen25 32b", "Qwen2.5-32B-Instruct") == (0, 20)
    assert match_rank("llama3-8b", "meta_llama/Llama-3-8B") is not None


def test_scattered_letters_find_nothing():
    assert match_rank("vllm", "Cloud TPU v6e, Trillium") is None
    assert match_rank("x", "abc") is None


def test_the_present_choice_is_marked_at_first(cards: SearchList):
    assert cards.findChild(QListView).currentIndex().data() == "GeForce RTX 4090"


def test_typing_narrows_and_return_chooses(cards: SearchList, qtbot):
    edit = cards.findChild(QLineEdit)
    qtbot.keyClicks(edit, "h200")
    assert keys(cards.matches) == ["h200", "gh200"]
    qtbot.keyClick(edit, Qt.Key.Key_Down)
    with qtbot.waitSignal(cards.chosen) as chosen:
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert chosen.args == ["gh200"]


def test_a_click_chooses(cards: SearchList, qtbot):
    view = cards.findChild(QListView)
    place = view.visualRect(view.model().index(1, 0)).center()
    with qtbot.waitSignal(cards.chosen) as chosen:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert chosen.args == ["h200"]


def test_an_empty_result_is_stated_and_cannot_be_chosen(cards: SearchList, qtbot):
    edit = cards.findChild(QLineEdit)
    qtbot.keyClicks(edit, "zzz")
    assert "Nothing matches." in [label.text() for label in cards.findChildren(QLabel) if not label.isHidden()]
    with qtbot.assertNotEmitted(cards.chosen):
        qtbot.keyClick(edit, Qt.Key.Key_Return)


def test_the_model_keeps_qts_rules_and_speaks(cards: SearchList):
    model = cards.findChild(QListView).model()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert model.index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "H200 SXM 141 GB, 141 GiB"
    assert not cards.grab().isNull()


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    return made


def button_at(parent: QWidget, x: int) -> QPushButton:
    button = QPushButton("Cards", parent)
    button.setGeometry(x, 10, 80, 30)
    button.show()
    return button


def test_a_popover_hangs_under_its_button_and_stays_in_the_window(parent: QWidget, theme: Theme):
    popover = Popover(parent, theme, QLabel("content"))
    popover.open_below(button_at(parent, 500), 300, 1000)
    area = parent.geometry()
    assert popover.isVisible()
    assert area.contains(popover.geometry().topLeft())
    assert popover.geometry().right() <= area.right()
    assert popover.geometry().bottom() <= area.bottom() + 1
    popover.close()


def test_escape_closes_a_popover(parent: QWidget, theme: Theme, qtbot):
    popover = Popover(parent, theme, QLabel("content"))
    popover.open_below(button_at(parent, 10), 300, 100)
    qtbot.keyClick(popover, Qt.Key.Key_Escape)
    assert popover.isHidden()


def test_a_second_click_on_the_button_is_signaled(parent: QWidget, theme: Theme, qtbot):
    popover = Popover(parent, theme, QLabel("content"))
    button = button_at(parent, 10)
    popover.open_below(button, 300, 100)
    at = popover.mapFromGlobal(button.mapToGlobal(QPoint(5, 5)))
    with qtbot.waitSignal(popover.anchor_clicked):
        qtbot.mousePress(popover, Qt.MouseButton.LeftButton, pos=at)
    assert popover.isHidden()


def test_a_search_popover_closes_on_a_choice(parent: QWidget, theme: Theme, qtbot):
    popover = SearchPopover(parent, theme, "Search cards", header=QLabel("Cards"))
    popover.offer(button_at(parent, 10), CARDS)
    with qtbot.waitSignal(popover.chosen) as chosen:
        qtbot.keyClick(popover.list.findChild(QLineEdit), Qt.Key.Key_Return)
    assert chosen.args == ["a100"]
    assert popover.isHidden()


@pytest.mark.parametrize("at_bottom", [False, True])
def test_a_search_popover_is_as_high_as_its_matches(parent: QWidget, theme: Theme, qtbot, at_bottom: bool):
    anchor = QWidget(parent)
    anchor.setGeometry(10, parent.height() - 30 if at_bottom else 0, 100, 20)
    popover = SearchPopover(parent, theme, "Search")
    popover.offer(anchor, [Choice(number, f"card {number}") for number in range(60)])
    whole, edit = popover.geometry(), popover.findChild(QLineEdit)
    qtbot.keyClicks(edit, "card 42")
    assert popover.list.matches
    assert popover.height() < whole.height() / 2
    fixed = QWidget.geometry(popover).bottom() if at_bottom else popover.y()
    assert fixed == (whole.bottom() if at_bottom else whole.y())
    edit.clear()
    assert popover.geometry() == whole
    popover.close()
