"""Calibration: how often measurements lie within the stated intervals, and how often stated probabilities hold.

Each row asks: had the card exactly as much memory as was measured, what chance of fitting would the estimate have
stated? If the statements are honest, that chance is below 10 % in a tenth of the rows, below 50 % in half of them, and
so on. Rows of exact bytes (weights, caches) state no chance.
"""

from statistics import median
from typing import Final, NamedTuple

from planner.memory.chance import ByteInterval, memory_margin, probability_of_fit

LEVELS: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


class Stated(NamedTuple):
    """The stated and the measured result of a row; `group` is the group under which it is counted."""

    group: str
    stated: ByteInterval
    measured: float

    @property
    def chance(self) -> float:
        """Return the stated chance that the needed memory is at most the measured memory."""
        room = round(self.measured)
        return probability_of_fit(memory_margin(self.stated, ByteInterval(room, room, room)), room)


def print_reliability(rows: list[Stated]) -> None:
    """Print, for each group, how many rows lie below, within and above, and how often each stated chance came true."""
    if not rows:
        return
    groups: dict[str, list[Stated]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    heads = "".join(f"{f'said {level:.0%}':>10}" for level in LEVELS)
    print(f"intervals: {'':36} {'rows':>5} {'below':>6} {'within':>7} {'above':>6} {'width':>7}{heads}")
    for name, members in sorted(groups.items()):
        _print_group(name, members)
    print("    (share of the rows with a stated chance for which the measured memory was at most that quantile)\n")


def _print_group(name: str, members: list[Stated]) -> None:
    count = len(members)
    below = sum(row.measured < row.stated.low for row in members) / count
    above = sum(row.measured > row.stated.high for row in members) / count
    width = median((row.stated.high - row.stated.low) / row.stated.bytes for row in members)
    came_true = "".join(f"{sum(row.chance <= level for row in members) / count:>10.0%}" for level in LEVELS)
    print(f"  {name:45} {count:5} {below:6.0%} {1 - below - above:7.0%} {above:6.0%} {width:7.1%}{came_true}")
