"""Calibration: how often measurements lie within the stated intervals, and how often stated probabilities hold.

Each row asks: had the card exactly as much memory as was measured, what chance of fitting would the estimate have
stated? If the statements are honest, that chance is below 10 % in a tenth of the rows, below 50 % in half of them, and
so on. Rows of exact bytes (weights, caches) state no chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median
from typing import Final, NamedTuple

from planner.memory.chance import ByteInterval, memory_margin, probability_of_fit

LEVELS: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_FEWEST: Final = 50
"""Fewest rows of other sources from which an interval is found again."""
_BEYOND: Final = 0.05
_LEFT_OUT_BEYOND: Final = 0.04
"""Share of the other sources' rows beyond an end: less than is stated, as a source differs more than its rows."""


class Stated(NamedTuple):
    """The stated and the measured result of a row; `group` is the group under which it is counted."""

    group: str
    source: str
    stated: ByteInterval
    measured: float

    @property
    def chance(self) -> float:
        """Return the stated chance that the needed memory is at most the measured memory."""
        room = round(self.measured)
        return probability_of_fit(memory_margin(self.stated, ByteInterval(room, room, room)), room)

    @property
    def score(self) -> float:
        """Return Winkler's score of the interval as a share of what was measured: smaller is better.

        **Formula**: (high − low + 2 / α · what it is missed by) / measured, with α = 0.1.
        """
        low, _, high = self.stated
        missed = max(low - self.measured, self.measured - high, 0)
        return (high - low + missed / _BEYOND) / self.measured


def found_without_source(rows: Sequence[Stated]) -> Iterator[Stated]:
    """Yield the rows with intervals as the rows of all other sources of their group would have stated them.

    Both constants are found again without the source: what is held beside the counted bytes, as the median of what is
    measured more, and the shares below and above, as quantiles.
    """
    for group, members in grouped(rows).items():
        for source in sorted({row.source for row in members}):
            others = [row for row in members if row.source != source]
            if len(others) >= _FEWEST:
                yield from _restated(f"{group}, left out", others, [row for row in members if row.source == source])


def _restated(group: str, others: Sequence[Stated], rows: Iterable[Stated]) -> Iterator[Stated]:
    more = median(row.measured - row.stated.bytes for row in others)
    ratios = sorted((row.measured - more) / row.stated.bytes for row in others)
    beyond = round(_LEFT_OUT_BEYOND * len(ratios))
    below, above = ratios[beyond], ratios[-1 - beyond]
    for row in rows:
        counted = row.stated.bytes
        stated = ByteInterval(*(round(counted * share + more) for share in (min(below, 1), 1, max(above, 1))))
        yield Stated(group, row.source, stated, row.measured)


def came_true(rows: Sequence[Stated], level: float) -> float:
    """Return the share of `rows` whose measured memory was at most the quantile that was stated as `level`."""
    return sum(row.chance <= level for row in rows) / len(rows)


def grouped(rows: Iterable[Stated]) -> dict[str, list[Stated]]:
    """Return `rows` by their groups."""
    groups: dict[str, list[Stated]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return groups


def print_reliability(rows: list[Stated]) -> None:
    """Print, for each group, how many rows lie below, within and above, and how often each stated chance came true."""
    if not rows:
        return
    heads = "".join(f"{f'said {level:.0%}':>10}" for level in LEVELS)
    print(f"intervals: {'':36} {'rows':>5} {'below':>6} {'within':>7} {'above':>6} {'width':>7} {'Winkler':>8}{heads}")
    for name, members in sorted(grouped(rows).items()):
        _print_group(name, members)
    print("    (share of the rows with a stated chance for which the measured memory was at most that quantile)\n")


def _print_group(name: str, members: list[Stated]) -> None:
    count = len(members)
    below = sum(row.measured < row.stated.low for row in members) / count
    above = sum(row.measured > row.stated.high for row in members) / count
    width = median((row.stated.high - row.stated.low) / row.stated.bytes for row in members)
    true = "".join(f"{came_true(members, level):>10.0%}" for level in LEVELS)
    score = mean(row.score for row in members)
    print(f"  {name:45} {count:5} {below:6.0%} {1 - below - above:7.0%} {above:6.0%} {width:7.1%} {score:8.3f}{true}")
