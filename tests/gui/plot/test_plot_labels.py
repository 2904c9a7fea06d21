"""Names beside the points of a plot."""

import numpy as np

from planner.gui.plot.labels import Box, Label, PointCounts, place_names


def test_names_never_meet_and_stay_inside():
    random = np.random.default_rng(7)
    points = [tuple(point) for point in random.uniform((0, 0), (400, 300), (60, 2))]
    crowd = PointCounts(np.array([x for x, _ in points]), np.array([y for _, y in points]))
    labels = [Label(*point, 70, 14, 4) for point in points]
    boxes = [box for box in place_names(labels, crowd, (400, 300), 60) if box is not None]
    assert len(boxes) > 10
    for place, box in enumerate(boxes):
        assert box.left >= 0
        assert box.left + box.width <= 400
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])
    assert crowd.count_within(Box(0, 0, 400, 300)) == 60


def test_a_name_that_is_not_needed_hides_no_point():
    xs, ys = (axis.ravel().astype(float) for axis in np.meshgrid(np.arange(0, 400, 10), np.arange(0, 300, 10)))
    crowd = PointCounts(xs, ys)
    labels = [Label(200, 150, 70, 14, 4), Label(100, 100, 70, 14, 4)]
    needed, other = place_names(labels, crowd, (400, 300), 1)
    assert needed is not None
    assert other is None


def test_a_name_covers_no_point_and_goes_to_the_free_side():
    points = [(200, 150), (215, 150), (240, 146), (150, 153)]
    crowd = PointCounts(*(np.array(axis, dtype=float) for axis in zip(*points, strict=True)))
    (box,) = place_names([Label(200, 150, 70, 14, 8)], crowd, (400, 300), 0)
    assert box is not None
    assert box.top + box.height < 146 - 4
    assert not any(box.overlaps(Box(x, y, 0, 0)) for x, y in points)


def test_a_name_covers_no_part_of_a_large_symbol():
    xs, ys = np.array([200.0, 245.0]), np.array([150.0, 166.0])
    name = Label(200, 150, 70, 14, 4)
    for reach, is_right in ((1, True), (8, False)):
        (box,) = place_names([name], PointCounts(xs, ys, np.array([4.0, reach])), (400, 300), 0)
        assert box is not None
        assert (box.left > 200) == is_right


def test_a_name_keeps_away_from_its_own_symbol():
    crowd = PointCounts(np.array([200.0]), np.array([150.0]))
    for reach in (3, 8):
        (box,) = place_names([Label(200, 150, 70, 14, reach)], crowd, (400, 300), 0)
        assert box is not None
        assert box.left > 200 + reach


def test_where_there_is_no_room_there_is_no_name():
    crowd = PointCounts(np.array([5.0]), np.array([5.0]))
    assert place_names([Label(5, 5, 500, 10, 4)], crowd, (200, 100), 1) == [None]
