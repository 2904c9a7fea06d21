"""A report for printing."""

from report_samples import SAMPLE

from planner.present.report.html import scheme_colors
from planner.present.report.printed import printed_report


def test_the_text_names_its_figures_which_have_colors_of_their_own():
    found = printed_report(SAMPLE)
    assert found.title == SAMPLE.title
    assert [(figure.width, figure.height) for figure in found.figures] == [(100, 50)]
    assert 'src="figure:0"' in found.html
    assert scheme_colors("light")["weights"] in found.figures[0].svg
    assert "var(" not in found.figures[0].svg
    assert "@" not in found.style
    assert found.plan.startswith("<script")


def test_every_block_is_in_the_text():
    html = printed_report(SAMPLE._replace(plan=None)).html
    for said in ("Does it fit?", "1. a *b* &lt;c&gt;", "<li>- one</li>", "<b>Total</b>", "start.sh", "Made on a day."):
        assert said in html
    assert html.count("<pre>") == 2
    assert html.count('class="muted">start.sh') == 1
    assert printed_report(SAMPLE._replace(plan=None)).plan == ""
