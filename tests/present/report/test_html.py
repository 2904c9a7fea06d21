"""A report as one HTML file."""

from html.parser import HTMLParser

from report_samples import PLAN, SAMPLE

from planner.plan.files import is_plan_file, load_plan, parse_plan
from planner.present.report.html import report_html, scheme_colors

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
    assert f"Model on 1{nobr}× card" in reader.texts
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
