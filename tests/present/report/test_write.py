"""The file of a report."""

import pytest
from report_samples import PLAN, SAMPLE

from planner.errors import MissingPackageError, PlannerError
from planner.plan.files import parse_plan
from planner.present.report import write
from planner.present.report.document import CodeListing, ReportColumn, ReportSection, ReportTable
from planner.present.report.write import report_format, report_markdown, write_report


@pytest.mark.parametrize(("name", "start"), [("a.html", "<!DOCTYPE"), ("a.HTM", "<!DOCTYPE"), ("a.md", "# ")])
def test_the_ending_of_the_name_chooses_the_format(tmp_path, name, start):
    file = tmp_path / name
    file.write_text("old")
    assert write_report(SAMPLE, file) == report_format(file)
    assert file.read_text(encoding="utf-8").startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_another_ending_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(PlannerError, match="cannot have this format") as refused:
        write_report(SAMPLE, tmp_path / "a.docx")
    assert ".html, .pdf or .md" in refused.value.hint


def test_a_pdf_is_written_by_a_process_of_its_own_and_repeats_to_the_byte(tmp_path):
    pytest.importorskip("PySide6")
    first, second = tmp_path / "a.pdf", tmp_path / "b.pdf"
    assert write_report(SAMPLE, first) == "pdf"
    write_report(SAMPLE, second)
    assert first.read_bytes().startswith(b"%PDF-")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["a.html", "a.pdf"])
def test_a_folder_that_is_not_there_is_named(tmp_path, name):
    with pytest.raises(PlannerError, match="cannot be written") as refused:
        write_report(SAMPLE, tmp_path / "missing" / name)
    assert "Choose another folder" in refused.value.hint


def test_a_crash_of_the_writer_ends_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(write.sys, "executable", "/bin/false")
    with pytest.raises(PlannerError, match="it crashed"):
        write_report(SAMPLE, tmp_path / "a.pdf")


def test_without_the_windows_packages_a_pdf_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError, match="packages of the window") as refused:
        write_report(SAMPLE, tmp_path / "a.pdf")
    assert "app" in refused.value.hint


def test_every_block_is_written_and_nothing_is_taken_for_markup(tmp_path):
    text = report_markdown(SAMPLE)
    shown = text.partition("---\n\nMade on a day.")[0]
    assert shown == (
        "# Model on 1 × GPU\n\n**Does it fit?**\n\n- **Fits: 3 GiB** – on one. card\n- **Rent**\n\n"
        "## Memory\n\n1\\. a \\*b\\* \\<c\\>\n\n- \\- one\n- two \\| three\n\n"
        '*Figure in the HTML and PDF reports: Parts: "a" & b.*\n\n'
        "## Table\n\n| Part | GiB |\n| --- | ---: |\n| Weights | 2 |\n|  | 1 |\n| **Total** | **3** |\n\n"
        "`start.sh`\n\n```\nrun <it> ``now``\n```\n\n```\nbare\n```\n\n"
    )
    assert parse_plan(text, tmp_path) == PLAN


def test_an_empty_cell_of_a_total_stays_empty():
    table = ReportTable((ReportColumn("Part"), ReportColumn("a|b")), (("Total", ""),), last_is_total=True)
    text = report_markdown(SAMPLE._replace(sections=(ReportSection("Sums", (table,)),)))
    assert "| Part | a\\|b |\n| --- | --- |\n| **Total** |  |\n" in text


def test_a_listing_with_backticks_has_a_longer_fence():
    listing = CodeListing("```\nx\n```")
    text = report_markdown(SAMPLE._replace(sections=(ReportSection("Code", (listing,)),), plan=None))
    assert "````\n```\nx\n```\n````" in text
    assert "schema_version" not in text
