"""The field for several names or numbers separated by commas."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit

from planner.errors import SpecError
from planner.gui.memory.inputs import ListField, parse_names, parse_numbers


@pytest.fixture
def layers(qtbot):
    made = ListField(parse_numbers, "as evenly as it goes")
    made.set_name("Layers of stages")
    qtbot.addWidget(made)
    made.show()
    return made


def test_parts_are_read_between_commas():
    assert parse_names(" lm_head,, *norm* ,") == ("lm_head", "*norm*")
    assert parse_numbers("12, 20") == (12, 20)
    assert parse_numbers("") == ()
    for text in ("twelve", "1.5", "-1", "9" * 12):
        with pytest.raises(SpecError):
            parse_numbers(text)


def test_a_list_counts_once_it_is_finished(layers, qtbot):
    line = layers.findChild(QLineEdit)
    edited = []
    layers.edited.connect(edited.append)
    qtbot.keyClicks(line, "12, 20")
    assert edited == []
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert edited == [(12, 20)]
    layers.set_value((12, 20))
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert edited == [(12, 20)]


def test_what_is_no_list_stays_with_its_message(layers, qtbot):
    line = layers.findChild(QLineEdit)
    edited = []
    layers.edited.connect(edited.append)
    qtbot.keyClicks(line, "12, x")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert edited == []
    assert "Type whole numbers" in " ".join(label.text() for label in layers.findChildren(QLabel))
    layers.set_value(())
    assert (layers.value, line.accessibleName()) == ((), "Layers of stages")
    with pytest.raises(TypeError):
        layers.set_value("12")
