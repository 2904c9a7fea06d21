"""Figures of a report as SVG."""

from collections.abc import Callable, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from planner.present.report.document import Area, Drawing, Polyline, Rectangle, Shape

_FONT: Final = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_TEXT_PIXELS: Final = 13
_SMALL_PIXELS: Final = 11
_MARGIN: Final = 8
"""Room above the drawing for what rises over it."""


def figure_svg(figure: Drawing, color: Callable[[str], str]) -> str:
    """Return the figure as one SVG element; `color` gives the color for the name of a role."""
    shapes = "\n".join(_shape_element(shape, color) for shape in figure.shapes)
    width, height = _number(figure.width), _number(figure.height + _MARGIN)
    label = quoteattr(figure.caption)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-_MARGIN} {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label={label} font-family="{_FONT}">\n{shapes}\n</svg>'
    )


def _shape_element(shape: Shape, color: Callable[[str], str]) -> str:
    match shape:
        case Rectangle(x, y, width, height, role, opacity):
            place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
            return f'<rect {place} fill="{color(role)}"{_opacity(opacity)}/>'
        case Polyline(points, role, width, is_dashed):
            dashes = ' stroke-dasharray="4 3"' if is_dashed else ""
            path = f'<polyline points="{_points(points)}" fill="none" stroke="{color(role)}"'
            return f'{path} stroke-width="{_number(width)}" stroke-linejoin="round"{dashes}/>'
        case Area(points, role, opacity):
            return f'<polygon points="{_points(points)}" fill="{color(role)}"{_opacity(opacity)}/>'
        case _:
            x, y, text, anchor, role, is_small = shape
            size = _SMALL_PIXELS if is_small else _TEXT_PIXELS
            place = f'x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"'
            return f'<text {place} font-size="{size}" fill="{color(role)}">{escape(text)}</text>'


def _opacity(value: float) -> str:
    return "" if value == 1 else f' fill-opacity="{_number(value)}"'


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """Return a coordinate with at most two decimals, so that a report is the same on every machine."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
