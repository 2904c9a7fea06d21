"""The memory bar: keyboard, tooltips, screen readers and colors."""

import pytest
from memory_results import view
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip

from planner.gui.memory.stacked_bar import StackedBar


@pytest.fixture
def bar(qtbot, theme):
    made = StackedBar(theme)
    qtbot.addWidget(made)
    made.resize(700, 100)
    made.set_view(view(other_gib=2))
    made.show()
    return made


def plain(text):
    return text.replace("\u2009", " ")


def test_screen_readers_get_every_number(bar):
    words = plain(bar.accessibleDescription())
    assert words.startswith("Needs 18.0 GiB (17.5 – 18.5 GiB) of 24.0 GiB usable: ")
    for part in ("Weights 16.0 GiB", "KV cache 1.00 GiB", "Framework overhead 1.00 GiB", "Free 4.00 GiB"):
        assert part in words
    assert "Used by other programs 2.00 GiB" in words


def test_the_arrow_keys_read_out_one_piece_after_the_other(bar, qtbot):
    bar.setFocus()
    said = []
    for _ in range(3):
        qtbot.keyClick(bar, Qt.Key.Key_Right)
        said.append(plain(QToolTip.text()))
    assert said[0].startswith("Weights: 17,179,869,184 B")
    assert said[1].startswith("KV cache: 1,073,741,824 B")
    qtbot.keyClick(bar, Qt.Key.Key_Left)
    assert plain(QToolTip.text()) == said[1]
    QToolTip.hideText()


def test_return_and_a_click_open_the_term(bar, qtbot):
    bar.setFocus()
    qtbot.keyClick(bar, Qt.Key.Key_Right)
    with qtbot.waitSignal(bar.activated) as by_key:
        qtbot.keyClick(bar, Qt.Key.Key_Return)
    with qtbot.waitSignal(bar.activated) as by_mouse:
        qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    assert by_key.args == by_mouse.args == ["weights"]


def test_free_memory_is_no_term_to_open(bar, qtbot):
    free = next(piece for piece in bar.picture.layout.pieces if piece.segment.kind == "free")
    with qtbot.assertNotEmitted(bar.activated):
        qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=QPoint(round(free.left) + 5, 10))


def test_hovering_reads_out_the_share_too(bar, qapp):
    qapp.sendEvent(bar, QHelpEvent(QHelpEvent.Type.ToolTip, QPoint(20, 10), bar.mapToGlobal(QPoint(20, 10))))
    assert "89 %" in plain(QToolTip.text())
    QToolTip.hideText()


@pytest.mark.parametrize("cache", [1, 13])
@pytest.mark.parametrize("capacity", [24, None])
def test_the_bar_paints_in_both_schemes(bar, theme, cache, capacity):
    bar.set_view(view(capacity, 2, cache))
    for scheme in ("dark", "light"):
        theme.apply(scheme)
        image = bar.grab().toImage()
        assert image.pixelColor(20, 5) == theme.color("weights")


def test_the_overflow_has_the_bad_colour(bar, theme):
    bar.set_view(view(cache_gib=13))
    over = bar.picture.layout.pieces[-1]
    image = bar.grab().toImage()
    assert image.pixelColor(round(over.left) + 8, 2) == theme.color("bad")
    assert image.pixelColor(round(over.left) + 8, 8) == theme.color("kv_cache")


def test_the_bar_grows_with_its_legend(bar):
    wide = bar.height()
    bar.resize(260, bar.height())
    assert bar.height() > wide
