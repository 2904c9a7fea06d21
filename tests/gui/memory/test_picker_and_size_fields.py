"""The field for memory sizes, the searchable picker and radio buttons."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit, QRadioButton

from planner.gui.memory.inputs import SizeField
from planner.gui.widgets.inputs.choice_field import PickerField, RadioField
from planner.gui.widgets.popover import Choice
from planner.units import GIB, MIB


@pytest.fixture
def size(qtbot):
    made = SizeField()
    qtbot.addWidget(made)
    made.show()
    return made


def type_into(qtbot, field, text):
    edit = field.findChild(QLineEdit)
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)
    return edit


@pytest.mark.parametrize(
    ("text", "value"), [("2", 2 * GIB), ("1.5", 3 * GIB // 2), ("512 MiB", 512 * MIB), ("2 GB", 2 * 10**9)]
)
def test_a_size_is_typed_with_its_unit_or_in_gib(size, qtbot, text, value):
    type_into(qtbot, size, text)
    assert size.value == value


@pytest.mark.parametrize("text", ["two", "-1", "1e999", "9999999 TiB", "1.2.3"])
def test_what_is_no_size_stays_with_its_message(size, qtbot, text):
    size.set_value(GIB)
    edit = size.findChild(QLineEdit)
    edit.selectAll()
    QGuiApplication.clipboard().setText(text)
    edit.paste()
    assert size.value == GIB
    assert edit.text() == text
    assert edit.accessibleDescription()
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert edit.text() == "1.00\u2009GiB"
    assert not edit.accessibleDescription()


def test_a_size_shows_only_sizes(size):
    with pytest.raises(TypeError):
        size.set_value("much")


@pytest.fixture
def picker(qtbot, theme):
    made = PickerField(
        theme, lambda: [Choice("a", "Alpha"), Choice("b", "Beta")], lambda value: str(value).upper(), "Search letters"
    )
    qtbot.addWidget(made)
    made.set_value("a")
    made.show()
    return made


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Down, Qt.Key.Key_Space])
def test_a_picker_opens_searches_and_chooses_by_keyboard(picker, qtbot, key):
    qtbot.keyClick(picker.focusProxy(), key)
    search = picker.findChild(QLineEdit)
    assert search.isVisible()
    qtbot.keyClicks(search, "bet")
    with qtbot.waitSignal(picker.edited) as edited:
        qtbot.keyClick(search, Qt.Key.Key_Return)
    assert edited.args == ["b"]
    assert (picker.value, picker.text) == ("b", "B")
    assert not search.isVisible()


def test_a_picker_names_itself_and_its_problem(picker):
    picker.set_name("Letter")
    picker.show_problem("not this one")
    box = picker.focusProxy()
    assert (box.accessibleName(), box.accessibleDescription()) == ("Letter", "not this one")


def test_radio_buttons_are_chosen_with_the_arrow_keys(qtbot, theme):
    field = RadioField(theme, (("training", "Train"), ("inference", "Run")))
    qtbot.addWidget(field)
    field.set_name("I want to")
    field.set_value("training")
    field.show_problem("why not")
    with qtbot.waitActive(field):
        field.show()
    train, run = field.findChildren(QRadioButton)
    train.setFocus()
    with qtbot.waitSignal(field.edited) as edited:
        qtbot.keyClick(train, Qt.Key.Key_Right)
    assert edited.args == ["inference"]
    assert field.value == "inference"
    assert (run.accessibleName(), run.accessibleDescription()) == ("I want to: Run", "")
