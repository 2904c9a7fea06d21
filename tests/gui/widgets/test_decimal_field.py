"""The field for decimal numbers."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit

from planner.gui.widgets.inputs.number_field import DecimalField


@pytest.fixture
def field(qtbot):
    return shown(qtbot, DecimalField(0.01, 1e12))


def shown(qtbot, made):
    qtbot.addWidget(made)
    made.show()
    return made


def type_into(qtbot, field, text):
    edit = field.findChild(QLineEdit)
    edit.setFocus()
    edit.selectAll()
    if text:
        qtbot.keyClicks(edit, text)
    else:
        qtbot.keyClick(edit, Qt.Key.Key_Delete)
    return edit


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,500", 1_500),
        ("0.29", 0.29),
        (".5", 0.5),
        ("5.", 5),
        ("50e6", 50e6),
        ("50 M", 50e6),
        ("1.5b", 1.5e9),
        ("2 k", 2_000),
        ("1 200", 1_200),
        ("1,5", 1.5),
    ],
)
def test_numbers_are_read_as_people_write_them(field, qtbot, text, value):
    edited = []
    field.edited.connect(edited.append)
    type_into(qtbot, field, text)
    assert edited[-1] == pytest.approx(value)
    assert field.value == pytest.approx(value)


@pytest.mark.parametrize("text", ["x", "1..2", "-3", "1e400", "nan", "inf"])
def test_what_is_no_number_stays_with_its_message(field, qtbot, text):
    before = field.value
    edit = type_into(qtbot, field, text)
    assert field.value == before
    assert edit.property("wrong") == "true"
    assert "from 0.01 to 1,000,000,000,000" in edit.accessibleDescription()


def test_a_number_beyond_the_ends_is_refused(qtbot):
    field = shown(qtbot, DecimalField(1, 24))
    edit = type_into(qtbot, field, "25")
    assert edit.accessibleDescription() == "'25' is too large. Type a number from 1 to 24."
    assert field.value == 1


def test_escape_takes_back_what_is_not_allowed(field, qtbot):
    field.set_value(7.0)
    edit = type_into(qtbot, field, "x")
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert (edit.text(), edit.accessibleDescription()) == ("7", "")


def test_a_share_is_shown_in_per_cent(qtbot):
    field = shown(qtbot, DecimalField(0, 100, scale=0.01))
    field.set_value(0.285)
    assert field.text == "28.5"
    type_into(qtbot, field, "8")
    assert field.value == pytest.approx(0.08)


def test_numbers_below_zero_are_read_where_they_are_allowed(qtbot):
    field = shown(qtbot, DecimalField(-90, 300, scale=0.01))
    type_into(qtbot, field, "-12.5")
    assert field.value == pytest.approx(-0.125)
    field.set_value(1)
    # No key types the true minus sign, which comes with pasted text.
    QGuiApplication.clipboard().setText("−3")
    type_into(qtbot, field, "").paste()
    assert field.value == pytest.approx(-0.03)


def test_an_optional_number_may_be_empty(qtbot):
    field = shown(qtbot, DecimalField(0, 10, placeholder="of the place"))
    assert field.value is None
    type_into(qtbot, field, "3")
    type_into(qtbot, field, "")
    assert field.value is None
    field.set_placeholder("1.4")
    assert field.findChild(QLineEdit).placeholderText() == "1.4"


def test_a_number_that_is_needed_may_not_be_empty(field, qtbot):
    field.set_value(3)
    edit = type_into(qtbot, field, "")
    assert "Type a number" in edit.accessibleDescription()
    assert field.value == 3


def test_what_is_being_typed_is_left_alone_if_it_means_the_same(field, qtbot):
    edit = type_into(qtbot, field, "1.50 k")
    field.set_value(1_500.0)
    assert edit.text() == "1.50 k"
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert edit.text() == "1,500"


def test_only_numbers_are_shown(field):
    with pytest.raises(TypeError, match="cannot show 'a'"):
        field.set_value("a")


def test_it_is_named_for_screen_readers(field):
    field.set_name("Budget")
    assert field.findChild(QLineEdit).accessibleName() == "Budget"
