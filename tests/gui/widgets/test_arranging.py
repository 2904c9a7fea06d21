"""Widgets beside or above each other, and new sizes in one pass."""

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QLabel, QWidget

from planner.gui.widgets.layout import SideBySide, in_column, laid_out_at_once, scrolled


@pytest.mark.parametrize("width", [399, 400])
def test_two_widgets_stand_side_by_side_if_there_is_room(qtbot, width):
    first, second = QLabel("first"), QLabel("second")
    both = SideBySide(first, second, least_width=400, stretches=(1, 0), spacing=8)
    qtbot.addWidget(both)
    both.resize(500, 100)
    both.show()
    both.resize(width, 100)
    qtbot.waitUntil(lambda: (second.x() > first.x()) == (width == 400))
    assert both.is_split == (width == 400)
    assert (second.y() > first.y()) == (width == 399)


class Sizes(QObject):
    """Notes each height that a widget is given."""

    def __init__(self, watched):
        super().__init__()
        self.heights = []
        watched.installEventFilter(self)

    def eventFilter(self, _watched, event):  # noqa: N802  # the name is Qt's
        if event.type() == QEvent.Type.Resize:
            self.heights.append(event.size().height())
        return False


def test_what_appears_in_a_scroll_area_squeezes_nothing(qtbot):
    lines = [QLabel("word " * 60, wordWrap=True) for _ in range(4)]
    inner, body = QWidget(), QWidget()
    in_column(*lines, owner=inner)
    in_column(inner, owner=body)
    lines[1].hide()
    area = scrolled(body)
    qtbot.addWidget(area)
    area.resize(200, 150)
    with qtbot.waitExposed(area):
        area.show()
    before = lines[0].height()
    watched = [Sizes(line) for line in lines]
    with laid_out_at_once(inner):
        lines[1].show()
    qtbot.wait(0)
    assert lines[1].height() == before
    assert body.height() > 4 * before
    assert [one.heights for one in (watched[0], *watched[2:])] == [[], [], []]
    assert watched[1].heights[-1] == before


def test_outside_a_scroll_area_the_layout_is_renewed_too(qtbot):
    first, second = QLabel("first"), QLabel("second")
    second.hide()
    body = QWidget()
    in_column(first, second, owner=body)
    qtbot.addWidget(body)
    body.show()
    with laid_out_at_once(body):
        second.show()
    assert second.y() >= first.geometry().bottom()
