"""The field for whole numbers: parsing, bounds, keys and slider."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QSlider
from pytestqt.qtbot import QtBot

from planner.gui.widgets.inputs.number_field import NumberField


@pytest.fixture
def field(qtbot: QtBot) -> NumberField:
    made = NumberField(1, 100_000_000)
    qtbot.addWidget(made)
    made.show()
    made.setFocus()
    return made


def edit_of(field: NumberField) -> QLineEdit:
    return field.findChild(QLineEdit)


def message_of(field: NumberField) -> str:
    label = field.findChild(QLabel)
    return label.text() if not label.isHidden() else ""


def type_anew(qtbot: QtBot, field: NumberField, text: str) -> None:
    edit_of(field).selectAll()
    qtbot.keyClicks(edit_of(field), text)


def test_a_number_is_shown_with_separators(field: NumberField):
    field.set_value(131_072)
    assert edit_of(field).text() == "131,072"
    assert field.value == 131_072


def test_a_shown_number_is_not_an_edit(field: NumberField, qtbot):
    with qtbot.assertNotEmitted(field.edited):
        field.set_value(5)


@pytest.mark.parametrize(
    ("typed", "value"),
    [("4096", 4096), ("4,096", 4096), ("100 000 000", 100_000_000), ("1_000", 1000), ("4k", 4000), ("1e5", 100_000)],
)
def test_every_usual_way_to_write_a_number_is_read(field: NumberField, qtbot, typed, value):
    heard = []
    field.edited.connect(heard.append)
    type_anew(qtbot, field, typed)
    assert field.value == heard[-1] == value
    assert message_of(field) == ""


@pytest.mark.parametrize("typed", ["0", "100,000,001", "9" * 40, "1.5", "4x", "²"])
def test_an_invalid_number_stays_in_the_field_with_a_message(field: NumberField, qtbot, typed):
    field.set_value(7)
    heard = []
    field.edited.connect(heard.append)
    type_anew(qtbot, field, typed)
    assert edit_of(field).text() == typed
    assert "1 to 100,000,000" in message_of(field)
    assert edit_of(field).accessibleDescription() == message_of(field)
    assert field.value not in (0, 100_000_001)
    assert all(1 <= value <= 100_000_000 for value in heard)


def test_an_emptied_field_asks_for_a_number(field: NumberField, qtbot):
    field.set_value(7)
    edit_of(field).selectAll()
    qtbot.keyClick(edit_of(field), Qt.Key.Key_Delete)
    assert message_of(field) == "It is empty. Type a whole number from 1 to 100,000,000."
    assert field.value == 7


def test_escape_restores_the_last_valid_number(field: NumberField, qtbot):
    field.set_value(7)
    type_anew(qtbot, field, "x")
    qtbot.keyClick(edit_of(field), Qt.Key.Key_Escape)
    assert edit_of(field).text() == "7"
    assert message_of(field) == ""


def test_return_ends_the_gesture_and_tidies_the_text(field: NumberField, qtbot):
    type_anew(qtbot, field, "4096")
    with qtbot.waitSignal(field.finished):
        qtbot.keyClick(edit_of(field), Qt.Key.Key_Return)
    assert edit_of(field).text() == "4,096"


@pytest.mark.parametrize(
    ("key", "value"),
    [(Qt.Key.Key_Up, 9), (Qt.Key.Key_Down, 7), (Qt.Key.Key_PageUp, 16), (Qt.Key.Key_PageDown, 4)],
)
def test_arrow_and_page_keys_change_the_number(field: NumberField, qtbot, key, value):
    field.set_value(8)
    with qtbot.waitSignal(field.edited):
        qtbot.keyClick(edit_of(field), key)
    assert field.value == value


def test_keys_stop_at_the_bounds(field: NumberField, qtbot):
    field.set_value(1)
    with qtbot.assertNotEmitted(field.edited):
        qtbot.keyClick(edit_of(field), Qt.Key.Key_Down)
    assert field.value == 1


def test_the_program_does_not_disturb_what_is_being_typed(field: NumberField, qtbot):
    field.edited.connect(field.set_value)
    type_anew(qtbot, field, "4096")
    assert edit_of(field).text() == "4096"


def test_an_optional_number_may_be_left_out(qtbot: QtBot):
    field = NumberField(1, 1000, placeholder="512 by default")
    qtbot.addWidget(field)
    assert field.value is None
    field.set_value(3)
    heard = []
    field.edited.connect(heard.append)
    edit_of(field).selectAll()
    qtbot.keyClick(edit_of(field), Qt.Key.Key_Delete)
    assert heard == [None]
    assert field.value is None
    field.set_placeholder("256 by default")
    assert edit_of(field).placeholderText() == "256 by default"


def test_the_slider_goes_from_stop_to_stop(qtbot: QtBot):
    field = NumberField(1, 1000, stops=(1, 2, 4, 8))
    qtbot.addWidget(field)
    slider = field.findChild(QSlider)
    field.set_value(5)
    assert slider.value() == 2
    heard = []
    field.edited.connect(heard.append)
    slider.setValue(3)
    assert heard == [8]
    with qtbot.waitSignal(field.finished):
        slider.sliderReleased.emit()


def test_a_value_that_is_no_number_is_an_error(field: NumberField):
    with pytest.raises(TypeError):
        field.set_value("x")


def test_a_message_can_be_shown_below_the_field(field: NumberField):
    field.set_name("Batch")
    field.show_problem("too much for this card")
    assert message_of(field) == "too much for this card"
    assert edit_of(field).accessibleName() == "Batch"
