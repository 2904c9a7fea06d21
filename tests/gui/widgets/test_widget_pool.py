"""The pool of reused widgets."""

from PySide6.QtWidgets import QLabel, QWidget

from planner.gui.widgets.layout import WidgetPool, in_column


def test_a_pool_hides_what_is_not_needed_and_shows_it_again_before_what_follows(qtbot):
    body, last = QWidget(), QLabel("last")
    qtbot.addWidget(body)
    column = in_column(last, owner=body)
    pool = WidgetPool(column, QLabel)
    first, second = pool.show(2)
    assert [column.itemAt(at).widget() for at in range(3)] == [first, second, last]
    assert pool.show(1) == (first,)
    assert (first.isHidden(), second.isHidden()) == (False, True)
    assert pool.show(2) == (first, second)
    assert not second.isHidden()
    assert pool.show(0) == ()
    assert first.isHidden()
