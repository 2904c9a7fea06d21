"""Figures as SVG."""

from xml.etree import ElementTree

from report_samples import DRAWING

from planner.present.report.html import figure_svg

_SVG = "{http://www.w3.org/2000/svg}"


def test_a_figure_is_valid_svg_with_its_caption_colors_and_places():
    root = ElementTree.fromstring(figure_svg(DRAWING, lambda role: f"var(--{role})"))
    assert root.get("aria-label") == 'Parts: "a" & b.'
    assert root.get("viewBox") == "0 -8 100 58"
    assert [shape.tag.removeprefix(_SVG) for shape in root] == [
        *("rect", "rect", "polyline", "polyline", "polygon", "text", "text"),
    ]
    bar, free, dashed, line, area, label, large = root
    assert (bar.get("fill"), bar.get("y"), bar.get("fill-opacity")) == ("var(--weights)", "0.12", None)
    assert free.get("fill-opacity") == "0.5"
    assert (dashed.get("points"), dashed.get("stroke-dasharray")) == ("0,0 1.5,2", "4 3")
    assert line.get("stroke-dasharray") is None
    assert area.get("points") == "0,0 1,1 2,0"
    assert (label.text, label.get("text-anchor")) == ("a < b", "end")
    assert int(label.get("font-size")) < int(large.get("font-size"))
