"""A report for printing."""

import re

from report_samples import SAMPLE

from planner.present.report.document import CodeListing, ReportColumn, ReportTable, section
from planner.present.report.html import scheme_colors
from planner.present.report.printed import printed_report


def test_the_text_names_its_figures_which_have_colors_of_their_own():
    found = printed_report(SAMPLE)
    assert found["title"] == SAMPLE.title
    assert [(figure["width"], figure["height"]) for figure in found["figures"]] == [(100, 50)]
    assert 'src="figure:0"' in found["html"]
    assert scheme_colors("light")["weights"] in found["figures"][0]["svg"]
    assert "var(" not in found["figures"][0]["svg"]
    assert "@" not in found["style"]
    assert found["plan"].startswith("<script")


def test_every_block_is_in_the_text():
    html = printed_report(SAMPLE._replace(plan=None))["html"]
    for said in ("Does it fit?", "1. a *b* &lt;c&gt;", "<li>- one</li>", "<b>Total</b>", "start.sh", "Made on a day."):
        assert said in html
    assert html.count("<pre>") == 2
    assert html.count('class="muted">start.sh') == 1
    assert printed_report(SAMPLE._replace(plan=None))["plan"] == ""


def _html_of(*blocks):
    return printed_report(SAMPLE._replace(sections=(section("One", *blocks),), plan=None))["html"]


def test_a_column_has_room_for_its_longest_word_and_the_rest_goes_to_long_lines():
    columns = tuple(map(ReportColumn, ("Throttled", "Figure", "Source")))
    html = _html_of(ReportTable(columns, (("slowed by: temperature", "2", "measured on a card " * 30),)))
    widths = [int(each) for each in re.findall(r'width="(\d+)%" style', html)]
    assert sum(widths) in (99, 100, 101)
    assert widths[0] * 88 / 100 > len("temperature")
    assert widths[2] > widths[0] > widths[1]


def test_a_column_of_words_only_gets_no_more_than_these():
    html = _html_of(ReportTable(tuple(map(ReportColumn, ("A", "Bcd"))), (("a", "b"),)))
    assert [int(each) for each in re.findall(r'width="(\d+)%" style', html)] == [37, 63]


def test_a_long_comment_stands_above_its_line_so_that_a_copy_still_runs():
    comment = "share of the memory of each GPU: " * 5
    html = _html_of(CodeListing(f"run (\n  --share 0.5  # {comment}\n  --short  # a\n{'x' * 120}\n)"))
    lines = re.search("<pre>(.*)</pre>", html, re.DOTALL)[1].split("\n")
    assert lines[0] == "run ("
    assert lines[1].startswith("  # share of")
    assert lines[2].startswith("  # ")
    assert lines[3:] == ["  --share 0.5", "  --short  # a", "x" * 120, ")"]
    assert max(map(len, lines[1:3])) <= 95
