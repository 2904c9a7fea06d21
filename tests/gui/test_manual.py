"""The manual in the window: pages, links, search, without a network."""

import pytest
from each_record import for_each
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextLayout
from PySide6.QtWidgets import QLabel

from planner.gui.manual import Manual, heading_slug, manual_pages
from planner.paths import docs_dir


@pytest.fixture
def manual(qtbot, theme):
    dialog = Manual(theme, "memory.md")
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def listed(manual):
    return [
        manual.pages.item(row).text() for row in range(manual.pages.count()) if not manual.pages.item(row).isHidden()
    ]


def test_the_manual_opens_at_a_page_and_lists_all_pages(manual):
    assert manual.text.toPlainText().startswith("Check whether a model fits")
    assert manual.pages.currentItem().text() == "Check whether a model fits"
    assert listed(manual) == list(manual_pages(docs_dir()).values())


@for_each("page", manual_pages(docs_dir()))
def test_every_page_shows_its_title_without_script_comments(manual, page):
    manual.open_page(page)
    shown = manual.text.toPlainText()
    assert shown.splitlines()[0] == (docs_dir() / page).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    assert "<!--" not in shown


def test_a_chosen_page_is_shown_and_back_returns(manual):
    manual.pages.setCurrentRow(0)
    assert manual.text.toPlainText().startswith("GPU Planner")
    manual.text.backward()
    assert manual.pages.currentItem().text() == "Check whether a model fits"


def test_a_link_to_a_heading_scrolls_to_it(manual):
    manual.open_page("accuracy.md#speeds")
    assert manual.pages.currentItem().text() == "Accuracy"
    assert manual.text.textCursor().block().text() == "Speeds"
    assert manual.text.verticalScrollBar().value() > 0


def test_a_link_between_folders_leads_to_its_page(manual):
    manual.text.setSource(QUrl("index.md"))
    manual.text.anchorClicked.emit(QUrl("reference/workload.md"))
    manual.open_page("reference/workload.md")
    assert manual.pages.currentItem().text() == "Workload fields"


def test_search_lists_matching_pages_and_selects_the_match(manual, qtbot):
    qtbot.keyClicks(manual.search, "cudnn")
    assert "Trace your own network" in listed(manual)
    assert "Choose hardware" not in listed(manual)
    qtbot.keyClick(manual.search, Qt.Key.Key_Return)
    assert manual.text.textCursor().selectedText().lower() == "cudnn"
    assert manual.isVisible()


def test_a_search_lands_on_the_heading_of_that_name_on_any_page(manual, qtbot):
    qtbot.keyClicks(manual.search, "kv cache")
    assert manual.pages.currentItem().text() == "GPU basics"
    assert manual.text.textCursor().block().text() == "KV cache"


def test_a_search_without_a_result_says_so_and_returns_to_the_page(manual, qtbot):
    qtbot.keyClicks(manual.search, "qxqx")
    assert listed(manual) == []
    assert "Nothing found for “qxqx”." in [label.text() for label in manual.findChildren(QLabel) if label.isVisible()]
    assert not manual.text.isVisible()
    manual.search.clear()
    assert manual.text.isVisible()
    assert manual.text.toPlainText().startswith("Check whether a model fits")


@pytest.mark.parametrize("words", ["offline", "internet", "connection", "without a network"])
def test_what_works_without_a_network_is_found(manual, qtbot, words):
    qtbot.keyClicks(manual.search, words)
    assert "First steps" in listed(manual)


def test_pictures_fit_the_page(manual):
    name = QUrl("pictures/memory-dark.png")
    picture = manual.text.loadResource(2, name)
    assert 0 < picture.deviceIndependentSize().width() <= manual.text.viewport().width()


def test_a_wider_window_keeps_the_place(manual, qtbot):
    manual.text.verticalScrollBar().setValue(40)
    manual.resize(manual.width() + 120, manual.height())
    assert manual.text.verticalScrollBar().value() == 40


@pytest.mark.parametrize(("heading", "slug"), [("Time and cost", "time-and-cost"), ("Rent, or buy?", "rent-or-buy")])
def test_headings_are_named_as_links_name_them(heading, slug):
    assert heading_slug(heading) == slug


def test_long_lines_of_code_are_wrapped(manual):
    manual.resize(700, 500)
    manual.open_page("first-steps.md")
    assert "for Wayland" in manual.text.toPlainText()
    assert not manual.text.horizontalScrollBar().isVisible()
    assert manual.text.document().idealWidth() <= manual.text.viewport().width()


@for_each("page", manual_pages(docs_dir()))
def test_every_character_has_a_glyph(page, qapp):
    """The fonts of a bare system suffice."""
    text = (docs_dir() / page).read_text(encoding="utf-8")
    without = set()
    for character in set(text) - {"\n"}:
        layout = QTextLayout(character, qapp.font())
        layout.beginLayout()
        layout.createLine()
        layout.endLayout()
        if any(0 in run.glyphIndexes() for run in layout.glyphRuns()):
            without.add(character)
    assert without == set()
