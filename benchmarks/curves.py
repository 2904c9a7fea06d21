"""Reliability curves as pictures of the manual: how often what was stated with a chance came true."""

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Final

from tables import DOCS

_LEVELS: Final = tuple(level / 20 for level in range(1, 20))
_SIDE: Final = 320
_LEFT, _TOP, _LEGEND = 60, 20, 24
_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")


def write_curves(name: str, title: str, curves: Mapping[str, Callable[[float], float]]) -> None:
    """Write docs/pictures/NAME.svg: for each of `curves`, the share that came true of what was stated as a chance."""
    (DOCS / "pictures" / f"{name}.svg").write_text(curves_picture(title, curves), encoding="utf-8")


def curves_picture(title: str, curves: Mapping[str, Callable[[float], float]]) -> str:
    """Return the curves as the text of an SVG picture; an honest curve lies on the diagonal."""
    height = _TOP + _SIDE + 50 + _LEGEND * len(curves)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _SIDE + 40} {height}" '
            'font-family="sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{_LEFT + _SIDE + 40}" height="{height}" fill="#ffffff"/>',
            *_axes(),
            *(line for place, curve in enumerate(curves.items()) for line in _curve(place, *curve)),
            "</svg>\n",
        )
    )


def _axes() -> Iterable[str]:
    right, bottom = _LEFT + _SIDE, _TOP + _SIDE
    yield f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#555555"/>'
    yield f'<path d="M{_LEFT},{bottom} L{right},{_TOP}" stroke="#999999" stroke-dasharray="4 4"/>'
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = _place(tick, tick)
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#222222">{tick:.0%}</text>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end" fill="#222222">{tick:.0%}</text>'
    yield f'<text x="{_LEFT + _SIDE / 2}" y="{bottom + 36}" text-anchor="middle" fill="#222222">stated</text>'
    yield (
        f'<text transform="translate(14 {_TOP + _SIDE / 2}) rotate(-90)" text-anchor="middle" '
        'fill="#222222">came true</text>'
    )


def _curve(place: int, label: str, came_true: Callable[[float], float]) -> Iterable[str]:
    color, y = _COLORS[place % len(_COLORS)], _TOP + _SIDE + 50 + _LEGEND * place + 12
    points = " ".join("{:.1f},{:.1f}".format(*_place(level, came_true(level))) for level in _LEVELS)
    yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
    yield f'<path d="M{_LEFT},{y - 4} h24" stroke="{color}" stroke-width="2"/>'
    yield f'<text x="{_LEFT + 32}" y="{y}" fill="#222222">{escape(label)}</text>'


def _place(stated: float, came_true: float) -> tuple[float, float]:
    return _LEFT + _SIDE * stated, _TOP + _SIDE * (1 - came_true)
