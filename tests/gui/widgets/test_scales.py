from PySide6.QtCore import QPointF, QRectF, QSizeF

from planner.gui.widgets.scales import log_ticks, place_label

AREA = QRectF(0, 0, 200, 100)
SIZE = QSizeF(40, 10)


def test_marks_are_fine_where_there_is_room_and_coarse_where_not():
    assert [text for _, text in log_ticks(0, 1, 9, str)] == ["1.0", "2.0", "5.0", "10.0"]
    assert [text for _, text in log_ticks(0, 2, 3, str)] == ["1.0", "10.0", "100.0"]
    assert log_ticks(0.1, 0.2, 9, str) == []


def test_a_label_keeps_clear_of_points_and_other_labels():
    point = QPointF(100, 50)
    on_the_right = place_label(point, SIZE, AREA, [point], [])
    assert on_the_right.left() > point.x()
    beside = place_label(point, SIZE, AREA, [point, on_the_right.center()], [])
    assert not beside.intersects(on_the_right)
    assert not place_label(point, SIZE, AREA, [point], [on_the_right]).intersects(on_the_right)


def test_a_label_stays_within_the_plot():
    assert AREA.contains(place_label(QPointF(198, 2), SIZE, AREA, [], []))


def test_where_there_is_no_room_it_stands_at_its_point():
    assert place_label(QPointF(5, 5), QSizeF(500, 10), AREA, [], []).topLeft() == QPointF(5, 5)
