"""A report as one HTML file."""

import re
from html.parser import HTMLParser

from report_samples import PLAN, SAMPLE

from planner.plan.files import is_plan_file, load_plan, parse_plan
from planner.present.report.document import CodeListing, ReportColumn, ReportTable, section
from planner.present.report.html import printed_report, report_html, scheme_colors

_VOID = {"meta", "br"}


class _Reader(HTMLParser):
    """Collects the texts, and checks that every element ends where it should."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))
        if tag not in _VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script") and data.strip():
            self.texts.append(data.strip())


def _read(text):
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_the_document_is_well_formed_and_says_everything():
    reader = _read(report_html(SAMPLE))
    nobr = "\N{NO-BREAK SPACE}"
    assert f"Model on 1{nobr}× GPU" in reader.texts
    assert "1. a *b* <c>" in reader.texts
    assert [text for text in reader.texts if text in ("on one", "card")] == ["on one", "card"]
    assert {"Weights", "Total", "start.sh", "run <it> ``now``", 'Parts: "a" & b.'} <= set(reader.texts)
    classes = [attributes.get("class") for _, attributes in reader.attributes]
    assert {"answer ok", "answer none", "total", "right"} <= set(classes)


def test_it_needs_no_other_file_and_runs_nothing():
    reader = _read(report_html(SAMPLE))
    assert not any({"src", "href"} & attributes.keys() for _, attributes in reader.attributes)
    scripts = [attributes for tag, attributes in reader.attributes if tag == "script"]
    assert [script["type"] for script in scripts] == ["application/vnd.gpu-planner.plan+json"]


def test_the_plan_opens_again_whatever_its_names_are(tmp_path):
    file = tmp_path / "report.html"
    file.write_text(report_html(SAMPLE), encoding="utf-8")
    assert is_plan_file(file)
    assert load_plan(file) == PLAN
    assert parse_plan(report_html(SAMPLE._replace(title="<script></script>")), file) == PLAN


def test_a_report_without_a_plan_has_none():
    assert "<script" not in report_html(SAMPLE._replace(plan=None))


def test_both_schemes_have_the_same_roles():
    assert scheme_colors("light").keys() == scheme_colors("dark").keys()
    assert scheme_colors("light")["surface"] != scheme_colors("dark")["surface"]


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
    html = _html_of(ReportTable(columns, (("slowed by: temperature", "2", "measured on a GPU " * 30),)))
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
