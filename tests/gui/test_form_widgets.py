"""Choice fields, labelled forms, sections, verdict badges and the banner."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QLineEdit, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from planner.errors import PlannerError
from planner.gui.theme import Theme, contrast
from planner.gui.widgets.buttons import IconButton, push_button
from planner.gui.widgets.inputs.choice_field import ChoiceField, PickerField, RadioField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.labels import VerdictBadge
from planner.gui.widgets.layout import focus_stops, in_row
from planner.gui.widgets.popover import Choice
from planner.gui.widgets.section import Section
from planner.gui.window import Banner

OPTIONS = (("adamw", "AdamW"), ("sgd", "SGD"), (None, "As stored"))


@pytest.fixture
def choice(qtbot: QtBot, theme: Theme) -> ChoiceField:
    made = ChoiceField(theme, OPTIONS)
    qtbot.addWidget(made)
    return made


@pytest.fixture
def form(qtbot: QtBot, theme: Theme) -> tuple[LabelledForm, NumberField]:
    made, field = LabelledForm(theme), NumberField(1, 100)
    made.add("&Batch", field, lambda: 1, hint="Sequences at once")
    qtbot.addWidget(made)
    made.show()
    return made, field


def shown(widgets: list[QWidget]) -> list[QWidget]:
    return [widget for widget in widgets if not widget.isHidden()]


def test_a_choice_shows_its_value_in_words(choice: ChoiceField, qtbot):
    with qtbot.assertNotEmitted(choice.edited):
        choice.set_value("sgd")
    assert (choice.value, choice.text) == ("sgd", "SGD")


def test_a_choice_by_keyboard_is_an_edit(choice: ChoiceField, qtbot):
    heard = []
    choice.edited.connect(heard.append)
    with qtbot.waitSignal(choice.finished):
        qtbot.keyClick(choice.findChild(QComboBox), Qt.Key.Key_Down)
    assert heard == ["sgd"]


def test_return_opens_the_list(choice: ChoiceField, qtbot):
    choice.show()
    box = choice.findChild(QComboBox)
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert box.view().isVisible()
    box.hidePopup()


def test_the_focus_is_seen_on_a_blue_button(qtbot: QtBot):
    place = QWidget()
    qtbot.addWidget(place)
    button = push_button("Show me", "", "primary")
    in_row(button, owner=place)
    place.show()
    button.setFocus()
    qtbot.waitUntil(button.hasFocus)
    image, middle = place.grab().toImage(), button.height() // 2
    ring, gap, fill = (image.pixelColor(button.mapTo(place, QPoint(x, middle))) for x in (0, 2, 5))
    assert contrast(ring, gap) > 3
    assert contrast(gap, fill) > 3


def test_other_options_keep_the_choice_where_they_can(choice: ChoiceField):
    choice.set_value("sgd")
    choice.set_options(OPTIONS[1:])
    assert choice.value == "sgd"
    choice.set_options(OPTIONS[:1])
    assert choice.value == "adamw"


def test_a_choice_names_itself_and_its_problem(choice: ChoiceField):
    choice.set_name("Optimizer")
    choice.show_problem("not on this card")
    box = choice.findChild(QComboBox)
    assert (box.accessibleName(), box.accessibleDescription()) == ("Optimizer", "not on this card")


def test_tab_goes_to_the_chosen_radio_button_only(qtbot: QtBot, theme: Theme):
    field = RadioField(theme, OPTIONS)
    qtbot.addWidget(field)
    field.show()
    for value, title in OPTIONS:
        field.set_value(value)
        assert [button.text() for button in focus_stops(field)] == [title]


def test_the_wheel_does_not_change_a_choice(choice: ChoiceField, qapp: QApplication):
    box = choice.findChild(QComboBox)
    event = QWheelEvent(
        QPoint(5, 5).toPointF(),
        QPoint(5, 5).toPointF(),
        QPoint(0, 0),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    qapp.sendEvent(box, event)
    assert choice.value == "adamw"


def test_the_underlined_letter_of_a_label_leads_to_its_field(form, qtbot):
    made, field = form
    with qtbot.waitActive(made):
        made.activateWindow()
    made.setFocus()
    qtbot.keyClick(made, Qt.Key.Key_B, Qt.KeyboardModifier.AltModifier)
    assert QApplication.focusWidget() is field.focusProxy()
    assert made.findChild(QLabel).toolTip() == "Sequences at once"


def test_typing_into_a_picker_searches_its_list(qtbot: QtBot, theme: Theme):
    picker = PickerField(theme, lambda: [Choice("a", "AdamW"), Choice("s", "SGD")], str, "Search optimizers")
    qtbot.addWidget(picker)
    picker.show()
    qtbot.keyClick(picker.focusProxy(), "s")
    search = QApplication.activePopupWidget().findChild(QLineEdit)
    assert search.text() == "s"
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert picker.value == "s"


def test_a_changed_field_is_marked_and_can_be_reset_alone(form, qtbot):
    made, field = form
    reset = made.findChild(IconButton)
    label = made.findChild(QLabel)
    assert reset.isHidden()
    field.set_value(8)
    assert not reset.isHidden()
    assert label.font().bold() or label.font().weight() > 500
    heard = []
    field.edited.connect(heard.append)
    with qtbot.waitSignal(field.finished):
        reset.click()
    assert heard == [1]
    assert reset.isHidden()
    assert reset.accessibleName() == "Reset “Batch”"


def test_tab_passes_the_reset_button_by_and_a_key_resets_the_focused_field(form, qtbot):
    made, field = form
    field.set_value(8)
    reset = made.findChild(IconButton)
    assert reset not in tuple(focus_stops(made))
    assert "Alt+Del" in reset.toolTip()
    made.activateWindow()
    field.setFocus()
    edit = made.findChild(QLineEdit)
    qtbot.waitUntil(edit.hasFocus)
    with qtbot.waitSignal(field.edited) as edited:
        qtbot.keyClick(edit, Qt.Key.Key_Delete, Qt.KeyboardModifier.AltModifier)
    assert edited.args == [1]
    assert edit.hasFocus()


def test_a_row_can_be_hidden_and_shown_again(form):
    made, field = form
    field.set_value(8)
    made.set_row_visible(field, False)
    assert not shown([field, made.findChild(QLabel), made.findChild(IconButton)])
    made.set_row_visible(field, True)
    assert len(shown([field, made.findChild(QLabel), made.findChild(IconButton)])) == 3


def test_a_row_without_a_default_is_never_marked(qtbot, theme: Theme):
    form, field = LabelledForm(theme), NumberField(1, 100)
    form.add("Count", field)
    qtbot.addWidget(form)
    field.set_value(7)
    assert form.findChild(IconButton).isHidden()


def test_a_folded_section_says_its_value(qtbot, theme: Theme):
    body = QLabel("the fields")
    section = Section(theme, "Precision", body, "bf16")
    qtbot.addWidget(section)
    section.show()
    summary = next(label for label in section.findChildren(QLabel) if label.text() == "bf16")
    button = section.findChild(QToolButton)
    assert body.isHidden()
    assert not summary.isHidden()
    assert button.accessibleName() == "Precision, collapsed, bf16"
    with qtbot.waitSignal(section.toggled) as toggled:
        qtbot.keyClick(button, Qt.Key.Key_Space)
    assert toggled.args == [True]
    assert section.is_open
    assert summary.isHidden()
    section.set_summary("fp16")
    section.set_open(False)
    assert button.accessibleName() == "Precision, collapsed, fp16"
    section.set_summary("")
    assert button.accessibleName() == "Precision, collapsed"


def test_the_whole_line_of_a_section_can_be_clicked(qtbot, theme: Theme):
    section = Section(theme, "Precision", QLabel("the fields"), "bf16")
    qtbot.addWidget(section)
    section.resize(400, 100)
    section.show()
    header = section.findChild(QToolButton).parentWidget()
    qtbot.mouseClick(header, Qt.MouseButton.LeftButton, pos=QPoint(header.width() - 5, header.height() // 2))
    assert section.is_open


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("fits", "Fits"), ("tight", "Tight"), ("does-not-fit", "Does not fit"), (None, "Unknown")],
)
def test_a_verdict_has_a_mark_and_a_word(qtbot, theme: Theme, verdict, words):
    badge = VerdictBadge(theme)
    qtbot.addWidget(badge)
    badge.set_verdict(verdict)
    texts = [label.text() for label in badge.findChildren(QLabel) if label.text()]
    marks = [label for label in badge.findChildren(QLabel) if not label.pixmap().isNull()]
    assert texts == [words]
    assert len(marks) == 1
    badge.set_verdict(verdict, "Other words")
    assert badge.accessibleName() == "Other words"


def test_a_banner_shows_an_error_until_dismissed(qtbot, theme: Theme):
    banner = Banner(theme)
    qtbot.addWidget(banner)
    assert banner.isHidden()
    banner.show_error(PlannerError("It broke.", "Mend it."))
    assert banner.text == "It broke."
    assert "Mend it." in [label.text() for label in shown(banner.findChildren(QLabel))]
    qtbot.mouseClick(banner.findChild(IconButton), Qt.MouseButton.LeftButton)
    assert banner.isHidden()
    banner.show_error(PlannerError("Again."))
    assert len(shown(banner.findChildren(QLabel))) == 1


def test_the_value_of_a_field_is_left_to_its_subclasses(qtbot):
    field = Field()
    qtbot.addWidget(field)
    for call in (
        lambda: field.value,
        lambda: field.set_value(1),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_an_icon_button_follows_the_theme(qtbot, theme: Theme):
    button = IconButton(theme, "close", "Close")
    qtbot.addWidget(button)
    before = button.icon().cacheKey()
    button.set_icon("reset", "accent")
    assert button.icon().cacheKey() != before


def test_a_row_in_a_reserved_line_comes_between_the_others_for_the_tab_key_too(qtbot: QtBot, theme: Theme):
    form = LabelledForm(theme)
    qtbot.addWidget(form)
    first, between, last = (ChoiceField(theme, ((1, "one"), (2, "two"))) for _ in range(3))
    form.add("First", first)
    line = form.reserve()
    form.add("Last", last)
    form.add("Between", between, line=line)
    form.show()
    assert first.y() < between.y() < last.y()
    boxes = [stop for stop in focus_stops(form) if isinstance(stop, QComboBox)]
    assert [one.isAncestorOf(box) for one, box in zip((first, between, last), boxes, strict=True)] == [True] * 3
