"""Terms in the window: underlined, and explained by a click, a key, a menu and the palette."""

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QHelpEvent, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QLineEdit, QMenu, QToolTip, QWidget

from planner.glossary import find_term, glossary
from planner.gui.explainer import TermCard
from planner.gui.manual import Manual
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.widgets.terms import TermLabel, explain, terms_at
from planner.present.columns import number_column, text_column

SHIFT = Qt.KeyboardModifier.ShiftModifier
COLUMNS = (
    text_column("name", "Name", lambda row: row[0]),
    number_column("memory", "Memory", lambda row: row[1], unit="GiB", about="As sold"),
    number_column("ridge", "Ridge point", lambda row: row[1], unit="FLOP/byte"),
    number_column("kv", "KV cache", lambda row: row[1], shown=False),
)


@pytest.fixture(autouse=True)
def read_glossary():
    glossary()


@pytest.fixture
def form(window, theme):
    """A form over the window's tab, with a field whose label is a term and one whose label is none."""
    made = LabelledForm(theme)
    made.setParent(window.tab)
    made.add("&Sequence length", NumberField(1, 100_000), hint="Tokens of a sequence.")
    made.add("Color of the &card", NumberField(1, 9))
    made.resize(400, 120)
    made.show()
    return made


@pytest.fixture
def table(window, theme):
    model = RecordTableModel(COLUMNS, lambda row: row[0])
    model.set_records([("A", 24.0), ("B", 80.0)])
    made = RecordTable(model, theme, name="Things")
    made.setParent(window.tab)
    made.resize(500, 120)
    made.show()
    return made


def labels(form: QWidget) -> dict[str, TermLabel]:
    return {label.text().replace("&", ""): label for label in form.findChildren(TermLabel)}


def card() -> TermCard:
    (found,) = (widget for widget in QApplication.topLevelWidgets() if isinstance(widget, TermCard))
    return found


def texts(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel))


def manual(window) -> Manual:
    (found,) = window.findChildren(Manual)
    return found


def dotted(label: QLabel) -> bool:
    """Return whether a row of pixels has dots in the color of the underline, with gaps between them."""
    image, dot = label.grab().toImage(), label.palette().color(QPalette.ColorRole.PlaceholderText).rgb()
    rows = ([image.pixel(x, y) == dot for x in range(image.width())] for y in range(image.height()))
    return any(sum(before != after for before, after in pairwise(row)) > 20 for row in rows)


def test_a_label_that_names_a_term_is_underlined_with_dots_and_another_is_not(form):
    assert dotted(labels(form)["Sequence length"])
    assert not dotted(labels(form)["Color of the card"])


def test_nothing_is_underlined_before_the_glossary_is_read(form):
    glossary.cache_clear()
    assert not dotted(labels(form)["Sequence length"])
    glossary()


def test_a_label_that_wraps_is_underlined_on_each_line(theme, qtbot):
    label = TermLabel("Gradient accumulation steps")
    qtbot.addWidget(label)
    label.setWordWrap(True)
    label.setFixedSize(90, 60)
    label.show()
    assert dotted(label)


def test_the_letter_of_a_label_keeps_a_line_of_its_own(qtbot):
    plain, with_letter = TermLabel("Context length"), TermLabel("Context le&ngth")
    metrics = plain.fontMetrics()
    letter = range(metrics.horizontalAdvance("Context le"), metrics.horizontalAdvance("Context len"))
    ends = range(letter.start - 2), range(letter.stop + 2, metrics.horizontalAdvance("Context length"))
    for label in (plain, with_letter):
        qtbot.addWidget(label)
        label.setFixedSize(120, 24)
        label.show()

    def dotted_at(label: QLabel, columns: range) -> bool:
        """Return whether the lowest row that is painted, the dots, has a pixel in `columns`."""
        image = label.grab().toImage()
        ground = image.pixel(image.width() - 1, 0)
        painted = [y for y in range(image.height()) if any(image.pixel(x, y) != ground for x in range(image.width()))]
        return any(image.pixel(x, painted[-1]) != ground for x in columns)

    assert dotted_at(plain, letter)
    assert not dotted_at(with_letter, letter)
    assert all(dotted_at(with_letter, end) for end in ends)


def test_the_window_underlines_its_terms_shortly_after_its_start(window, qtbot):
    glossary.cache_clear()
    window.explainer.underline_terms()
    assert glossary.cache_info().currsize


def test_a_click_on_an_underlined_label_opens_its_card(form):
    QTest.mouseClick(labels(form)["Sequence length"], Qt.MouseButton.LeftButton)
    assert card().term.term == "Sequence length"
    assert find_term("Sequence length").definition in texts(card())
    card().close()


def test_a_click_on_another_label_opens_nothing(form):
    QTest.mouseClick(labels(form)["Color of the card"], Qt.MouseButton.LeftButton)
    assert QApplication.activePopupWidget() is None


def test_a_right_click_opens_nothing(form):
    QTest.mouseClick(labels(form)["Sequence length"], Qt.MouseButton.RightButton)
    assert QApplication.activePopupWidget() is None


def test_the_card_says_what_the_term_is_in_the_plan_and_draws_it(window, form):
    explain(find_term("KV cache"), form)
    assert "In the sample plan: 384" in texts(card())
    assert any(not label.pixmap().isNull() for label in card().findChildren(QLabel))
    card().close()


def test_return_in_a_card_reads_more(window, form, qtbot):
    explain(find_term("KV cache"), form)
    qtbot.keyClick(card().more_button, Qt.Key.Key_Return)
    manual = next(widget for widget in QApplication.topLevelWidgets() if isinstance(widget, Manual))
    qtbot.waitUntil(lambda: manual.text.source().fragment() == "kv-cache")
    manual.close()


def test_a_card_needs_neither_a_drawing_nor_a_figure(form):
    explain(find_term("Xid"), form)
    assert "In your plan" not in texts(card())
    assert all(label.pixmap().isNull() for label in card().findChildren(QLabel))
    card().close()


def test_a_card_fits_into_the_window_and_cuts_no_text(window, form):
    for term in glossary():
        window.explainer.show_card(term, labels(form)["Sequence length"])
        shown = card()
        for label in shown.findChildren(QLabel):
            assert label.height() >= label.heightForWidth(label.width()), term.term
        shown.close()
        QApplication.processEvents()


def test_escape_closes_the_card_and_the_focus_stays_in_the_field(form, window, qtbot):
    field = form.findChild(QLineEdit)
    window.activateWindow()
    field.setFocus()
    explain(find_term("KV cache"), form)
    QTest.keyClick(card(), Qt.Key.Key_Escape)
    QApplication.processEvents()
    assert not [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, TermCard)]
    assert window.focusWidget() is field


def test_more_opens_gpu_basics_at_the_term(form, window, qtbot):
    explain(find_term("Ridge point"), form)
    card().more_button.click()
    qtbot.waitUntil(lambda: manual(window).text.source().toString() == "gpu-basics.md#ridge-point")
    assert manual(window).text.textCursor().block().text() == "Ridge point"
    manual(window).close()


def test_shift_f1_explains_the_focused_field(form, window, qtbot):
    window.activateWindow()
    field = form.findChild(QLineEdit)
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    window.commands["help.explain"].trigger()
    assert card().term.term == "Sequence length"
    card().close()


def test_shift_f1_in_a_dialog_explains_the_focused_field(window, theme, qtbot):
    dialog, form = QDialog(window), LabelledForm(theme)
    form.add("&LoRA rank", NumberField(1, 512))
    form.add("&Color", NumberField(1, 9))
    in_column(form, owner=dialog)
    dialog.open()
    known, unknown = form.findChildren(QLineEdit)
    known.setFocus()
    QTest.keyClick(known, Qt.Key.Key_F1, SHIFT)
    assert card().term.term == "Adapter rank"
    card().close()
    QApplication.processEvents()
    unknown.setFocus()
    QTest.keyClick(unknown, Qt.Key.Key_F1, SHIFT)
    assert QApplication.activePopupWidget() is None
    dialog.close()


def test_shift_f1_without_a_term_opens_gpu_basics(window, qtbot):
    window.activateWindow()
    window.tab.focus_search()
    qtbot.waitUntil(window.tab.search.hasFocus)
    window.commands["help.explain"].trigger()
    assert manual(window).text.toPlainText().startswith("GPU basics")
    manual(window).close()


def test_typing_opens_no_card(form):
    QTest.keyClicks(form.findChild(QLineEdit), "2048")
    assert QApplication.activePopupWidget() is None


def test_labels_take_no_place_in_the_tab_order(form):
    assert all(label.focusPolicy() == Qt.FocusPolicy.NoFocus for label in labels(form).values())


def test_the_tooltip_of_a_label_ends_with_the_first_sentence_about_its_term(form, qtbot):
    for name, expected in (("Sequence length", True), ("Color of the card", False)):
        label = labels(form)[name]
        place = QPoint(5, 5)
        QApplication.sendEvent(label, QHelpEvent(QHelpEvent.Type.ToolTip, place, label.mapToGlobal(place)))
        if expected:
            assert "Tokens of a sequence." in QToolTip.text()
            assert "Number of tokens of each training sequence" in QToolTip.text()
            QToolTip.hideText()
    assert labels(form)["Color of the card"].toolTip() == ""


def test_a_term_has_the_cursor_of_help(form):
    shapes = []
    for name in ("Sequence length", "Color of the card"):
        label = labels(form)[name]
        place = QPointF(5, 5)
        QApplication.sendEvent(label, QEnterEvent(place, place, QPointF(label.mapToGlobal(QPoint(5, 5)))))
        shapes.append(label.cursor().shape())
    assert shapes == [Qt.CursorShape.WhatsThisCursor, Qt.CursorShape.ArrowCursor]


def test_headers_that_name_a_term_say_so_in_their_tooltip(table):
    def tooltip(position: int) -> str:
        return str(table.model().headerData(position, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole))

    assert tooltip(0) == "Name"
    assert "As sold" in tooltip(1)
    assert "Memory on the GPU itself" in tooltip(1)
    assert "Operations per byte" in tooltip(2)


def test_the_menu_of_a_header_explains_its_term(table, window):
    header = table.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(2) + 5, 5)
    header.customContextMenuRequested.emit(place)
    (menu,) = (widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMenu) and widget.isVisible())
    assert menu.actions()[0].text() == "Explain: Ridge point"
    menu.actions()[0].trigger()
    assert card().term.term == "Ridge point"
    menu.close()
    card().close()


def test_the_menu_of_a_header_without_a_term_has_no_explanation(table):
    table.horizontalHeader().customContextMenuRequested.emit(QPoint(5, 5))
    (menu,) = (widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMenu) and widget.isVisible())
    assert "What is" not in menu.actions()[0].text()
    menu.close()


def test_shift_f1_in_a_table_offers_the_terms_of_its_visible_columns(table, window, qtbot):
    assert [term.term for term in terms_at(table)] == ["GPU memory", "Ridge point"]
    window.activateWindow()
    table.setFocus()
    qtbot.waitUntil(table.hasFocus)
    window.commands["help.explain"].trigger()
    menu = QApplication.activePopupWidget()
    assert [action.text() for action in menu.actions()] == ["Explain: GPU memory", "Explain: Ridge point"]
    menu.actions()[1].trigger()
    menu.close()
    assert card().term.term == "Ridge point"
    card().close()


def test_a_widget_outside_the_window_explains_nothing(qtbot):
    alone = QWidget()
    qtbot.addWidget(alone)
    explain(find_term("KV cache"), alone)
    assert QApplication.activePopupWidget() is None


def test_the_first_card_from_the_palette_stands_where_the_palette_was(window):
    window.open_palette()
    palette = window._command_palette
    place = palette.pos()
    palette.list.findChild(QLineEdit).setText("vram")
    QTest.keyClick(palette.list.findChild(QLineEdit), Qt.Key.Key_Return)
    assert card().pos() == place
    card().close()


def test_the_palette_explains_a_term_by_its_name_or_an_alias(window):
    window.open_palette()
    palette = window._command_palette
    palette.list.findChild(QLineEdit).setText("vram")
    QTest.keyClick(palette.list.findChild(QLineEdit), Qt.Key.Key_Return)
    assert card().term.term == "GPU memory"
    card().close()
