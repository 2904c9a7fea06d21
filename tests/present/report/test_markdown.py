"""A report as Markdown."""

from report_samples import PLAN, SAMPLE

from planner.plan.files import parse_plan
from planner.present.report.document import CodeListing, ReportColumn, ReportSection, ReportTable
from planner.present.report.markdown import report_markdown


def test_every_block_is_written_and_nothing_is_taken_for_markup(tmp_path):
    text = report_markdown(SAMPLE)
    shown = text.partition("---\n\nMade on a day.")[0]
    assert shown == (
        "# Model on 1 × card\n\n**Does it fit?**\n\n- **Fits: 3 GiB** – on one. card\n- **Rent**\n\n"
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
