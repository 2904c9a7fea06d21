"""Reports that the window writes."""

import pytest
from PySide6.QtCore import QSizeF
from PySide6.QtWidgets import QFileDialog

from planner.gui import report_pdf
from planner.gui.report_pdf import pdf_bytes
from planner.gui.widgets.dialogs import choose_report_file
from planner.plan.files import embedded_plan_html, load_plan
from planner.present.report.document import (
    Drawing,
    Prose,
    Rectangle,
    Report,
    ReportAnswer,
    ReportColumn,
    ReportSection,
    ReportTable,
)
from planner.present.report.html import printed_report

_PATIENCE_MS = 60_000


def _choose(monkeypatch, path, kind="Web page (*.html)"):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path) if path else "", kind))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("a", "PDF (*.pdf)", "a.pdf"),
        ("a", "Markdown (*.md)", "a.md"),
        ("a.html", "PDF (*.pdf)", "a.html"),
        ("", "PDF (*.pdf)", None),
    ],
)
def test_a_name_without_an_ending_gets_that_of_the_chosen_format(qtbot, tmp_path, monkeypatch, name, kind, expected):
    _choose(monkeypatch, tmp_path / name if name else None, kind)
    assert choose_report_file(None, tmp_path) == (expected and tmp_path / expected)


def test_the_report_on_the_plan_is_written_in_the_background(window, qtbot, tmp_path, monkeypatch):
    _choose(monkeypatch, tmp_path / "plan")
    assert window.commands["file.report"].text() == "&Write report…"
    with qtbot.waitSignal(window.workspace.noticed, timeout=_PATIENCE_MS) as told:
        window.commands["file.report"].trigger()
    assert told.args[0] == f"Wrote the report to {tmp_path / 'plan.html'}."
    assert load_plan(tmp_path / "plan.html") == window.workspace.plan


def test_a_report_opens_as_a_plan_that_is_not_saved_over_it(window, qtbot, tmp_path):
    plan = window.workspace.plan.evolve(count=3)
    file = tmp_path / "report.html"
    file.write_text(f"<!DOCTYPE html>{embedded_plan_html(plan)}", encoding="utf-8")
    window.documents.open(file)
    qtbot.waitUntil(lambda: window.workspace.plan == plan, timeout=_PATIENCE_MS)
    assert window.workspace.path is None


def test_a_pinned_plan_is_reported_beside_the_plan(window, qtbot, tmp_path, monkeypatch):
    window.workspace.pin.put(window.workspace.plan.evolve(count=2))
    window.commands.refresh()
    assert window.commands["file.report"].text() == "&Write report on both plans…"
    _choose(monkeypatch, tmp_path / "both.md")
    with qtbot.waitSignal(window.workspace.noticed, timeout=_PATIENCE_MS):
        window.commands["file.report"].trigger()
    assert "Memory of both" in (tmp_path / "both.md").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_an_error_in_the_banner(window, qtbot, tmp_path, monkeypatch):
    _choose(monkeypatch, tmp_path / "gone" / "plan.html")
    window.commands["file.report"].trigger()
    qtbot.waitUntil(lambda: "cannot be written" in window.banner.text, timeout=_PATIENCE_MS)


def test_a_closed_question_writes_nothing(window, tmp_path, monkeypatch):
    _choose(monkeypatch, None)
    window.commands["file.report"].trigger()
    assert list(tmp_path.iterdir()) == []


def test_a_long_report_has_numbered_pages_of_the_same_bytes(qapp):
    figure = Drawing(400, 40, (Rectangle(0, 0, 400, 40, "weights"),), "A bar.")
    section = ReportSection("Many words", (*[Prose("A sentence. " * 60)] * 20, figure))
    report = Report("Title", "Why?", (ReportAnswer("Fits", "well", "ok"),), (section,), "Made.")
    first = pdf_bytes(printed_report(report))
    assert first.count(b"/Type /Page\n") == 3
    assert len(first) == len(pdf_bytes(printed_report(report)))


def _tables(document):
    return [frame for frame in document.rootFrame().childFrames() if hasattr(frame, "rows")]


@pytest.mark.parametrize("before", range(0, 30, 3))
def test_no_row_is_torn_no_heading_ends_a_page_captions_stay_and_nothing_is_lost(qapp, before):
    table = ReportTable((ReportColumn("A"), ReportColumn("B")), (("row", "word " * 60), ("end", "word " * 40)) * 6)
    figure = Drawing(400, 300, (Rectangle(0, 0, 400, 300, "weights"),), "A bar.")
    sections = (
        ReportSection("One", (*[Prose("A sentence.")] * before, table)),
        ReportSection("Two", (table, figure)),
        ReportSection("Three", (figure, Prose("The end."))),
    )
    height = 600.0
    document = report_pdf._document(printed_report(Report("T", "Why?", (), sections, "Made.")), QSizeF(600, height))
    layout, blocks = document.documentLayout(), []
    block = document.begin()
    while block.isValid():
        blocks.append(block)
        block = block.next()
    found = [layout.blockBoundingRect(block) for block in blocks]
    for table in _tables(document):
        for row in range(table.rows()):
            places = [
                layout.blockBoundingRect(table.cellAt(row, column).firstCursorPosition().block()) for column in (0, 1)
            ]
            assert len({edge // height for one in places for edge in (one.top(), one.bottom() - 1)}) == 1, row
    for block, place, below in zip(blocks, found, found[1:], strict=False):
        if block.blockFormat().headingLevel():
            assert place.top() // height in (below.top() // height, (below.bottom() - 1) // height), block.text()
        if block.text() == "\N{OBJECT REPLACEMENT CHARACTER}":
            assert (place.bottom() - 1) // height == (below.bottom() - 1) // height
    document.markContentsDirty(0, document.characterCount())
    assert [layout.blockBoundingRect(block) for block in blocks] == found
