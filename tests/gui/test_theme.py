"""Qt's own dialogs show the icons of the theme, in its colors."""

from collections.abc import Iterator

import pytest
from each_record import for_each
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QMessageBox, QStyle, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from planner.gui.theme import ICONS, Theme
from planner.paths import resources_dir


def colors_of(pixmap) -> set[str]:
    """Return the colors of all opaque pixels."""
    image = pixmap.toImage()
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return {pixel.name() for pixel in pixels if pixel.alpha() == 255}


@pytest.fixture(params=["light", "dark"])
def either_look(theme: Theme, request: pytest.FixtureRequest) -> Iterator[Theme]:
    theme.apply(request.param)
    yield theme
    theme.apply("light")


@for_each("standard", ICONS)
def test_each_standard_icon_is_one_of_ours_in_its_color(qapp: QApplication, either_look: Theme, standard):
    name, role = ICONS[standard]
    assert (resources_dir() / "icons" / f"{name}.svg").is_file()
    icon = qapp.style().standardIcon(standard)
    assert either_look.color(role).name() in colors_of(icon.pixmap(QSize(32, 32), 1.0))


def test_other_standard_icons_are_those_of_fusion(qapp: QApplication, theme: Theme):
    assert not qapp.style().standardIcon(QStyle.StandardPixmap.SP_TrashIcon).isNull()


def test_a_file_dialog_and_a_message_box_show_them(theme: Theme, qtbot: QtBot):
    files = QFileDialog()
    files.setOption(QFileDialog.Option.DontUseNativeDialog)
    qtbot.addWidget(files)
    up = files.findChild(QToolButton, "toParentButton")
    assert colors_of(up.icon().pixmap(QSize(16, 16), 1.0)) <= {theme.color("text").name()}
    box = QMessageBox(QMessageBox.Icon.Warning, "Title", "Question")
    qtbot.addWidget(box)
    assert theme.color("warn").name() in colors_of(box.iconPixmap())


def test_a_hidden_place_has_the_new_colors_before_it_is_shown(theme: Theme, qtbot: QtBot):
    label = QLabel("text", objectName="late")
    qtbot.addWidget(label)
    label.setStyleSheet("QLabel { color: palette(window-text) }")
    label.show()
    label.hide()
    before = theme.scheme
    theme.apply("dark" if before == "light" else "light")
    try:
        theme.catch_up(label)
        assert label.palette().windowText().color() == theme.color("text")
    finally:
        theme.apply(before)


def test_what_is_shown_during_a_switch_has_the_new_colors_before_what_stays_hidden(theme: Theme, qtbot: QtBot):
    place = QWidget()
    qtbot.addWidget(place)
    place.setStyleSheet("QLabel { color: palette(window-text) }")
    labels = [QLabel("text", place) for _ in range(1500)]
    place.show()
    for label in labels:
        label.hide()
    before = theme.scheme
    theme.apply("dark" if before == "light" else "light")
    try:
        process_events(2)
        shown, hidden = labels[:20], labels[20:]
        for label in shown:
            label.show()
        process_events(2)
        assert all(label.palette().windowText().color() == theme.color("text") for label in shown)
        assert any(label.palette().windowText().color() != theme.color("text") for label in hidden)
    finally:
        theme.apply(before)


def process_events(times: int) -> None:
    """Let the events that wait be handled so many times."""
    for _ in range(times):
        QApplication.processEvents()


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_an_enlarged_icon_has_its_size_at_any_scale_of_the_screen(theme: Theme, ratio: float):
    enlarged = theme.pixmap("check", "ok", ratio, 1.5)
    assert enlarged.deviceIndependentSize().toSize() == QSize(24, 24)
    assert theme.color("ok").name() in colors_of(enlarged)
