"""The record table: sorting, filtering, selection by name, columns and copying."""

from dataclasses import dataclass, replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QPushButton, QVBoxLayout, QWidget

from planner.gui.settings import TableLayout
from planner.gui.widgets.labels import StatusIcon
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.present.columns import number_column, text_column, to_csv, to_json


@dataclass(frozen=True)
class Fruit:
    id: str
    name: str
    grams: float | None
    colour: str | None = None


COLUMNS = (
    text_column("name", "Name", lambda fruit: fruit.name, tooltip=lambda fruit: fruit.id),
    number_column("grams", "Weight", lambda fruit: fruit.grams, unit="g", meter=True),
    replace(text_column("colour", "Colour", lambda fruit: fruit.colour, width=40), help="Of the peel"),
    text_column("id", "Id", lambda fruit: fruit.id, shown=False),
)
FRUITS = (
    Fruit("b", "Banana", 120, "yellow"),
    Fruit("a", "apple", 180, "red"),
    Fruit("k", "Kiwi", None),
    Fruit("m", "Melon", 1500, "green"),
)


@pytest.fixture
def model():
    made = RecordTableModel(COLUMNS, lambda fruit: fruit.id)
    made.set_records(FRUITS)
    return made


@pytest.fixture
def table(qtbot, theme, model):
    made = RecordTable(model, theme, markers={"colour": lambda fruit: StatusIcon("check", "ok")})
    qtbot.addWidget(made)
    made.resize(400, 300)
    made.show()
    return made


def names(model):
    return [fruit.name for fruit in model.records]


def press(table, *keys):
    for key in keys:
        QTest.keyClick(table, key)


def test_the_model_keeps_qts_rules(model, qtmodeltester):
    qtmodeltester.check(model)
    model.sort_by("grams")
    model.set_filter(lambda fruits: {fruit.id for fruit in fruits if "n" in fruit.name})
    qtmodeltester.check(model)


def test_a_cell_says_text_value_alignment_source_and_its_column(model):
    cell = model.index(0, 1)
    assert cell.data() == "120"
    assert cell.data(Qt.ItemDataRole.UserRole) == 120
    assert cell.data(Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight
    assert model.index(0, 0).data(Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignLeft
    assert cell.data(Qt.ItemDataRole.ToolTipRole) == "120"
    assert model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole) == "b"
    assert cell.data(Qt.ItemDataRole.AccessibleTextRole) == "Weight, g: 120"
    assert cell.data(Qt.ItemDataRole.CheckStateRole) is None
    assert model.headerData(1, Qt.Orientation.Horizontal) == "Weight, g"
    assert model.headerData(1, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) == "Weight, g"
    assert model.headerData(2, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) == "Colour\nOf the peel"
    assert model.headerData(1, Qt.Orientation.Vertical) is None


def test_the_record_of_the_plan_is_marked_for_screen_readers(model):
    model.marked = "a"
    assert model.index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "Name: apple, in the plan"
    assert model.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "Name: Banana"


@pytest.mark.parametrize(
    ("key", "descending", "expected"),
    [
        (None, False, ["Banana", "apple", "Kiwi", "Melon"]),
        ("name", False, ["apple", "Banana", "Kiwi", "Melon"]),
        ("grams", False, ["Banana", "apple", "Melon", "Kiwi"]),
        ("grams", True, ["Melon", "apple", "Banana", "Kiwi"]),
    ],
)
def test_sorting_ignores_case_and_leaves_the_unknown_last(model, key, descending, expected):
    model.sort_by(key, descending)
    assert names(model) == expected


def test_one_giant_among_many_does_not_set_the_scale_of_the_others():
    many = RecordTableModel(COLUMNS, lambda fruit: fruit.id)
    many.set_records([Fruit(f"c{number}", "cherry", 10) for number in range(19)] + [Fruit("p", "pumpkin", 5_000)])
    assert many.shares([0], 1)[0] == 1
    assert many.shares([19], 1)[0] == 1


def test_a_filter_keeps_the_sorting_and_meters_measure_what_is_shown(model):
    model.sort_by("grams", descending=True)
    assert model.shares([2], 1)[0] == 120 / 1500
    model.set_filter(lambda fruits: {fruit.id for fruit in fruits if fruit.name != "Melon"})
    assert names(model) == ["apple", "Banana", "Kiwi"]
    assert model.shares([1], 1)[0] == 120 / 180
    assert model.shares([2], 1)[0] is None
    assert list(model.names) == ["a", "b", "k"]
    assert set(model.words("name")) == {"a", "b", "k", "m"}
    assert (model.row_of("b"), model.row_of("m"), model.record(7)) == (1, None, None)
    assert model.find("m") == FRUITS[3]


def test_new_records_bring_new_texts(model):
    assert model.texts(0)[1] == "120"
    assert model.words("grams")["b"] == "120"
    model.set_records([Fruit("b", "Banana", 125, "brown")])
    assert model.texts(0) == ("Banana", "125", "brown", "b")
    assert model.words("grams") == {"b": "125"}


def test_an_unknown_column_is_an_error(model):
    with pytest.raises(KeyError):
        model.column_of("taste")


def test_arrow_keys_move_and_tell_the_record(table, qtbot):
    table.enter()
    with qtbot.waitSignal(table.current_changed) as told:
        press(table, Qt.Key.Key_Down)
    assert told.args == [FRUITS[1]]
    assert table.current_record == FRUITS[1]


def test_what_is_chosen_survives_sorting_and_filtering(table, model):
    table.choose("b")
    table.sort_by("name", descending=True)
    assert table.current_record == FRUITS[0]
    assert table.currentIndex().row() == model.row_of("b")
    model.set_filter(lambda fruits: {fruit.id for fruit in fruits if fruit.id != "b"})
    assert table.current_record is None
    assert table.selected_records == ()
    model.set_filter(None)
    assert table.selected_records == (FRUITS[0],)
    assert [index.row() for index in table.selectionModel().selectedRows()] == [model.row_of("b")]


def test_enter_takes_the_first_row_when_nothing_is_chosen_in_view(table):
    table.enter()
    assert table.current_record == FRUITS[0]
    assert table.hasFocus()


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_confirms_the_current_record(table, qtbot, key):
    table.choose("m")
    with qtbot.waitSignal(table.record_activated) as told:
        press(table, key)
    assert told.args == [FRUITS[3]]


def test_a_double_click_confirms_on_both_sides_of_the_pinned_edge(table, qtbot):
    for view, column in ((table, 1), (table._pinned, 0)):
        place = view.visualRect(table.model().index(1, column)).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        with qtbot.waitSignal(table.record_activated) as told:
            QTest.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert told.args == [FRUITS[1]]


def test_a_header_click_sorts_numbers_from_the_largest_and_turns_when_repeated(table, model):
    header = table.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(1) + 40, header.height() // 2)
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert (model.sort_key, model.descending) == ("grams", True)
    assert header.sortIndicatorSection() == 1
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert (model.sort_key, model.descending) == ("grams", False)
    pinned = table._pinned.horizontalHeader()
    QTest.mouseClick(pinned.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    assert (model.sort_key, model.descending) == ("name", False)


def test_sorting_shows_the_top_and_filtering_the_current_record(table, model):
    model.set_records([Fruit(str(number), f"Fruit {number}", number) for number in range(100)])
    table.choose("3")
    table.sort_as_clicked("grams")
    assert table.verticalScrollBar().value() == 0
    assert table.current_record.id == "3"
    model.set_filter(lambda fruits: {fruit.id for fruit in fruits if fruit.grams < 90})
    assert table.viewport().rect().contains(table.visualRect(table.currentIndex()).center())


def test_copying_takes_the_selected_rows_as_they_are_shown(table):
    table.choose("a")
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == (
        "Name\tWeight, g\tColour\napple\t180\tred\nKiwi\tnot published\tunknown\n"
    )


def test_copying_wins_over_a_shortcut_of_the_window(table, qtbot):
    window_copy = QAction(table.window())
    window_copy.setShortcut("Ctrl+C")
    table.window().addAction(window_copy)
    table.choose("b")
    table.setFocus()
    with qtbot.assertNotEmitted(window_copy.triggered):
        QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert "Banana" in QGuiApplication.clipboard().text()


def test_the_first_column_stays_in_view(table):
    table.horizontalScrollBar().setValue(table.horizontalScrollBar().maximum())
    assert table._pinned.geometry().left() == 0
    assert table._pinned.columnWidth(0) == table.columnWidth(0)
    table.choose("k")
    before = table.horizontalScrollBar().value()
    press(table, Qt.Key.Key_Up)
    assert table.horizontalScrollBar().value() == before


def test_the_keyboard_moves_sideways_without_losing_a_column_beneath_the_pinned_one(table):
    table.choose("k")
    press(table, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left)
    assert table.currentIndex().column() == 1
    assert table.visualRect(table.currentIndex()).left() >= table._pinned.width()


def test_both_views_scroll_together(table, model, qtbot):
    model.set_records([Fruit(str(number), f"Fruit {number}", number) for number in range(100)])
    qtbot.waitUntil(lambda: table.verticalScrollBar().maximum() > 400)
    table.verticalScrollBar().setValue(400)
    assert table._pinned.verticalScrollBar().value() == 400
    table._pinned.verticalScrollBar().setValue(120)
    assert table.verticalScrollBar().value() == 120


def test_a_last_column_of_words_fills_the_table_and_one_of_numbers_does_not(table):
    table.resize(900, 300)
    header = table.horizontalHeader()
    assert header.length() == table.viewport().width()
    assert table.layout_now().widths == {}, "what the table fills is no choice of the user"
    table.show_columns(("name", "colour", "grams"))
    assert header.length() < table.viewport().width()


def test_widths_follow_each_other(table):
    table._pinned.horizontalHeader().resizeSection(0, 150)
    assert table.columnWidth(0) == 150
    table.setColumnWidth(0, 170)
    assert table._pinned.width() == 170


def action(menu: QMenu, title: str) -> QAction:
    return next(found for found in menu.actions() if found.text() == title)


def test_the_column_menu_sorts_chooses_and_restores(table, model):
    menu = table.column_menu()
    action(menu, "Colour").trigger()
    action(menu, "Id").trigger()
    assert [column.key for column in table.visible_columns] == ["name", "grams", "id"]
    sort = menu.actions()[0].menu()
    action(sort, "Weight").trigger()
    assert (model.sort_key, model.descending) == ("grams", True)
    again = table.column_menu().actions()[0].menu()
    assert action(again, "Weight").isChecked()
    action(again, "&Descending").trigger()
    assert model.descending is False
    action(menu, "&Restore the default columns").trigger()
    assert [column.key for column in table.visible_columns] == ["name", "grams", "colour"]
    assert model.sort_key is None


def test_an_arrangement_can_be_taken_and_given_back(table, qtbot, theme):
    table.horizontalHeader().moveSection(2, 1)
    table.setColumnWidth(1, 133)
    table.sort_by("grams", descending=True)
    layout = table.layout_now()
    assert layout == TableLayout(
        shown=("name", "colour", "grams"), widths={"grams": 133}, sort_key="grams", descending=True
    )
    other = RecordTable(RecordTableModel(COLUMNS, lambda fruit: fruit.id), theme)
    qtbot.addWidget(other)
    other.arrange(layout)
    assert other.layout_now() == layout


def test_an_arrangement_from_another_version_is_taken_as_far_as_it_goes(table):
    table.arrange(TableLayout(shown=("taste", "colour"), widths={"smell": 9}, sort_key="taste"))
    assert [column.key for column in table.visible_columns] == ["name", "colour"]
    assert table.layout_now().sort_key is None


def test_the_first_column_cannot_be_moved(table):
    assert not table.horizontalHeader().isFirstSectionMovable()


def test_the_cells_are_painted_in_either_look(table, theme, model):
    model.marked = "m"
    table.sort_by("grams", descending=True)
    table.choose("m")
    table.setFocus()
    light = table.grab().toImage()
    theme.apply("dark")
    dark = table.grab().toImage()
    theme.apply("light")
    place = table.rect().center()
    assert light.pixelColor(place).lightness() > 200 > 60 > dark.pixelColor(place).lightness()
    assert light.pixelColor(1, table.horizontalHeader().height() + 5) == theme.color("accent")


def test_rows_go_to_files_with_exact_values():
    rows = [{"id": "a", "bytes": 25769803776, "note": None}, {"id": "b", "bytes": None, "note": 'says "hm", twice'}]
    assert to_csv(list(rows[0]), rows) == 'id,bytes,note\na,25769803776,\nb,,"says ""hm"", twice"\n'
    assert '"bytes": 25769803776' in to_json(rows)
    assert '"note": null' in to_json(rows)
    assert to_csv(["id", "bytes"], []) == "id,bytes\n"


def test_a_number_that_the_edge_would_cut_is_not_shown_in_part(table):
    def painted():
        table._cells._cache._laid.clear()
        table.grab()
        return {text for text, _ in table._cells._cache._laid}

    assert "120" in painted()
    place = table.columnViewportPosition(1) + table.columnWidth(1)
    table.resize(place - 20, 300)
    assert table.viewport().width() < place
    assert not painted() & {"120", "1,500"}
    table.horizontalScrollBar().setValue(20)
    assert "120" in painted()


def test_tab_leaves_the_table_instead_of_going_through_its_cells(qtbot, theme, model):
    window, table, after = QWidget(), RecordTable(model, theme), QPushButton("After")
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    column.addWidget(table)
    column.addWidget(after)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    table.choose("a")
    table.setFocus()
    press(table, Qt.Key.Key_Tab)
    assert after.hasFocus()
    QTest.keyClick(after, Qt.Key.Key_Backtab)
    assert table.hasFocus()
    assert table.current_id == "a"


def test_equal_rows_are_sorted_by_the_second_column_and_its_header_says_so(qtbot, theme):
    fruits = [Fruit(name, name, grams) for name, grams in (("pear", 200), ("fig", 50), ("date", None), ("plum", 50))]
    model = RecordTableModel(COLUMNS, lambda fruit: fruit.id, then="grams")
    model.set_records([replace(fruit, colour="brown") for fruit in fruits])
    table = RecordTable(model, theme)
    qtbot.addWidget(table)
    model.sort_by("colour")
    assert model.names == ["fig", "plum", "pear", "date"]
    weight = model.column_of("grams")
    assert model.is_second(weight)
    tip = model.headerData(weight, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
    assert tip.endswith("Breaks ties in the sorted column, lowest first.")
    model.sort_by("grams", descending=True)
    assert model.names == ["pear", "fig", "plum", "date"]
    assert not model.is_second(weight)


@pytest.mark.parametrize("scrolls", [True, False])
def test_a_record_chosen_before_the_table_is_shown_scrolls_it_only_if_asked_to(qtbot, theme, scrolls):
    model = RecordTableModel(COLUMNS, lambda fruit: fruit.id)
    model.set_records([Fruit(f"fruit-{number}", f"{number}", number) for number in range(100)])
    table = RecordTable(model, theme)
    qtbot.addWidget(table)
    table.choose("fruit-99", scrolls=scrolls)
    table.resize(400, 300)
    table.show()
    qtbot.wait(1)
    assert (table.verticalScrollBar().value() > 0) == scrolls
    assert table.current_id == "fruit-99"


def test_a_filter_may_ask_for_columns_for_a_while(table):
    own = table.layout_now()
    table.show_searched_columns(("id",))
    assert [column.key for column in table.visible_columns] == ["name", "grams", "id", "colour"]
    assert table.layout_now() == own
    table.show_column("id", shown=True)  # the user wants it, too
    table.show_searched_columns(())
    assert "id" in table.layout_now().shown
    table.restore_default_layout()
    table.show_searched_columns(("id", "grams"))
    table.restore_default_layout()
    assert "id" in [column.key for column in table.visible_columns]
    table.show_searched_columns(())
    assert table.layout_now().shown == own.shown


def test_a_header_without_units_is_one_line_high_and_has_room_for_the_sort_arrow(qtbot, theme, model):
    plain = RecordTableModel(model.columns[:1], model.identify)
    tables = [RecordTable(shown, theme) for shown in (model, plain)]
    for shown in tables:
        qtbot.addWidget(shown)
    header = tables[1].horizontalHeader()
    assert header.sizeHint().height() < tables[0].horizontalHeader().sizeHint().height()
    unsorted = header.grab().toImage()
    tables[1].sort_by(plain.columns[0].key)
    assert header.grab().toImage() != unsorted
