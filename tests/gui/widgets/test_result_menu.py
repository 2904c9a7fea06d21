"""The menu that copies and saves a result."""

import pytest
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QFileDialog, QWidget

from planner.gui.widgets.result_menu import ResultFormats, ResultMenu


def picture():
    made = QPixmap(8, 8)
    made.fill("white")
    return made


@pytest.fixture
def parent(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    return widget


@pytest.fixture
def menu(parent):
    return ResultMenu(ResultFormats(lambda: "words", lambda: "a,b\n", lambda: "{}", picture), "memory", parent)


@pytest.mark.parametrize(
    ("words", "copied"), [("Copy as text", "words"), ("Copy as CSV", "a,b\n"), ("Copy as JSON", "{}")]
)
def test_texts_are_copied(menu, words, copied):
    next(action for action in menu.actions() if action.text().replace("&", "") == words).trigger()
    assert QGuiApplication.clipboard().text() == copied


def test_the_picture_is_copied(menu):
    next(action for action in menu.actions() if "picture" in action.text()).trigger()
    assert QGuiApplication.clipboard().pixmap().width() == 8


@pytest.mark.parametrize(("ending", "content"), [("txt", b"words"), ("csv", b"a,b\n"), ("JSON", b"{}")])
def test_the_name_decides_what_is_saved(menu, monkeypatch, tmp_path, ending, content):
    file = tmp_path / f"result.{ending}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(file), ""))
    menu.save()
    assert file.read_bytes() == content


def test_a_picture_is_saved(menu, tmp_path):
    menu.save_to(tmp_path / "result.png")
    assert (tmp_path / "result.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_saved_without_a_name(menu, monkeypatch, tmp_path):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    menu.save()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["result.doc", "missing/result.txt", "missing/result.png"])
def test_what_cannot_be_saved_is_reported(menu, qtbot, tmp_path, name):
    with qtbot.waitSignal(menu.failed) as failed:
        menu.save_to(tmp_path / name)
    assert name in failed.args[0].message
    assert ".json" in failed.args[0].hint
