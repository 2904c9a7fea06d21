"""Reliability of stated speeds: how often what was said came true, and the score of the intervals.

An estimate states a speed and the ends of an interval of 80 %, which a log-normal distribution turns into a speed for
every chance: "with 25 % it is at most this". Each row is predicted without its source (`throughput_left_out`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log
from pathlib import Path
from statistics import NormalDist, mean
from typing import Final, NamedTuple

LEVELS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_MISSED: Final = 0.2
_END: Final = NormalDist().inv_cdf(1 - _MISSED / 2)
_SIDE: Final = 300
_MARGIN: Final = 46
_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
"""Colors that people with color blindness tell apart (Okabe and Ito 2008)."""


class Stated(NamedTuple):
    """A row predicted without its source: logarithms of measured over estimated speed, and of the stated factor."""

    source: str
    logarithm: float
    half_width: float

    @property
    def inside(self) -> bool:
        """Return whether the measured speed lies in the interval."""
        return abs(self.logarithm) <= self.half_width

    @property
    def score(self) -> float:
        """Return the interval score: its width, and 2 ÷ 0.2 times the distance beyond it, in logarithms.

        **Source**: Gneiting and Raftery 2007, §6.2 (Winkler 1972).
        """
        return 2 * self.half_width + 2 / _MISSED * max(0.0, abs(self.logarithm) - self.half_width)

    def at_most(self, level: float) -> bool:
        """Return whether the measured speed is at most the speed that was said to be so with the chance `level`."""
        return self.logarithm <= self.half_width / _END * NormalDist().inv_cdf(level)


def came_true(rows: Sequence[Stated]) -> list[float]:
    """Return the share of rows for which each of the stated chances came true."""
    return [mean(row.at_most(level) for row in rows) for level in LEVELS]


def calibrated_without_source(rows: Sequence[Stated]) -> list[Stated]:
    """Return the rows with intervals scaled so that they hold 80 % of the rows of all other sources."""
    found = []
    for row in rows:
        others = [abs(other.logarithm) / other.half_width for other in rows if other.source != row.source]
        scale = sorted(others)[int((1 - _MISSED) * len(others))] if others else 1.0
        found.append(row._replace(half_width=row.half_width * scale))
    return found


def reliability_table(by_title: Mapping[str, Sequence[Stated]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the manual's table: what came true of stated chances and intervals."""
    header = ["left-out sources", "rows", "in the interval", "score", *(f"a stated {level:.0%}" for level in LEVELS)]
    lines = [
        [
            title,
            str(len(rows)),
            f"{mean(row.inside for row in rows):.0%}",
            f"{mean(row.score for row in rows):.2f}",
            *(f"{share:.0%}" for share in came_true(rows)),
        ]
        for title, rows in by_title.items()
    ]
    return header, lines


def print_reliability(by_title: Mapping[str, Sequence[Stated]]) -> None:
    """Print for each kind how many rows lie in the interval, its score, and what came true."""
    print("left out: rows predicted without their source; score of the interval of 80 % (smaller is better)")
    said = "".join(f"{f'said {level:.0%}':>10}" for level in LEVELS)
    print(f"{'':34} {'rows':>5} {'inside':>7} {'scaled':>7} {'score':>6}{said}")
    for title, rows in by_title.items():
        scaled = mean(row.inside for row in calibrated_without_source(rows))
        shares = "".join(f"{share:>10.0%}" for share in came_true(rows))
        inside, score = mean(row.inside for row in rows), mean(row.score for row in rows)
        print(f"{title:34} {len(rows):5} {inside:7.0%} {scaled:7.0%} {score:6.2f}{shares}")
    print("    (scaled: with the width calibrated on the other sources alone)\n")


def write_curves(path: Path, by_title: Mapping[str, Sequence[Stated]]) -> None:
    """Draw said against came true, a line for each kind."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(_drawing({title: came_true(rows) for title, rows in by_title.items()}), encoding="utf-8")


def _drawing(curves: Mapping[str, Sequence[float]]) -> str:
    width, height = _SIDE + 2 * _MARGIN + 190, _SIDE + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<path d="M{_x(0)} {_y(0)}H{_x(1)}M{_x(0)} {_y(0)}V{_y(1)}" stroke="#333333" fill="none"/>',
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#999999" stroke-dasharray="4 4"/>',
        *(_text(_x(at), _y(0) + 18, f"{at:.0%}", "middle") for at in (0.0, 0.25, 0.5, 0.75, 1.0)),
        *(_text(_x(0) - 6, _y(at) + 4, f"{at:.0%}", "end") for at in (0.25, 0.5, 0.75, 1.0)),
        _text(_x(0.5), height - 6, "said: the speed is at most this", "middle"),
        _text(_x(0), _MARGIN - 14, "came true", "start"),
    ]
    for place, (title, shares) in enumerate(curves.items()):
        color = _COLORS[place % len(_COLORS)]
        points = " ".join(f"{_x(level):.1f},{_y(share):.1f}" for level, share in zip(LEVELS, shares, strict=True))
        parts.append(f'<polyline points="{points}" stroke="{color}" stroke-width="2" fill="none"/>')
        parts.append(_text(_x(1) + 16, _MARGIN + 14 + 20 * place, title, "start", color))
    return "\n".join([*parts, "</svg>", ""])


def _x(share: float) -> float:
    return _MARGIN + _SIDE * share


def _y(share: float) -> float:
    return _MARGIN + _SIDE * (1 - share)


def _text(x: float, y: float, text: str, anchor: str, color: str = "#333333") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}">{text}</text>'


def grouped(rows: Iterable[tuple[str, Stated]]) -> dict[str, list[Stated]]:
    """Return the rows of each title."""
    found: dict[str, list[Stated]] = defaultdict(list)
    for title, row in rows:
        found[title].append(row)
    return found


def half_width(speed: float, high: float) -> float:
    """Return the logarithm of the factor between a speed and the upper end of its interval."""
    return log(high / speed)
