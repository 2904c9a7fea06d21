"""Compare the curves of `catalog/kernels` with measured kernels, beside a plain roofline.

    python benchmarks/kernel_accuracy.py [FOLDER] [--table] [--check]

Reads the tables below FOLDER, or below the folder in the variable KERNEL_TABLES, else the committed sample of them.
Only rows count to which no curve was fitted. *On the GPU itself* uses the curves of the GPU, *left out* those that
it gets when none of its rows is used (tests/truth/kernels/left-out.json.gz, which `kernel_fit.py --left-out` writes).
The roofline is the larger of operations ÷ dense rate and bytes ÷ bandwidth. `--table` writes docs/accuracy.md;
`--check` exits with 1 if a median exceeds its aim.
"""

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from kernel_fit import CARDS, LEFT_OUT, SAMPLE, card_of, errors_of, spread
from kernel_rows import KernelRow, read_sample, read_tables
from tables import add_table_option, write_table

from planner.performance.flops import mean_context_tokens
from planner.performance.kernels.curves import KernelCurve, curves_of

OWN_AIM: Final = 0.08
LEFT_OUT_AIM: Final = 0.20
FAMILIES: Final = {
    "product": "matrix products",
    "attention-read": "attention, reading",
    "attention-write": "attention, writing",
    "attention-write-single": "attention, writing",
    "latent-read": "latent attention, reading",
    "latent-write": "latent attention, writing",
    "experts": "mixtures of experts",
    "all-reduce": "collectives",
    "all-gather": "collectives",
    "reduce-scatter": "collectives",
    "all-to-all": "collectives",
}
_ALL: Final = "all"


class Judged(NamedTuple):
    """A row with its relative errors: of one kind of curves, and of the roofline."""

    row: KernelRow
    error: float
    roofline: float


def main() -> int:
    """Print the errors of each family of kernels and of each card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=os.environ.get("KERNEL_TABLES"))
    parser.add_argument("--check", action="store_true", help="exit with 1 if a median exceeds its aim")
    add_table_option(parser)
    arguments = parser.parse_args()
    rows = read_tables(Path(arguments.folder)) if arguments.folder else read_sample(SAMPLE)
    rows = [row for row in rows if row.is_held_out]
    own = list(judge(rows, {card: list(curves_of(card)) for card in CARDS.values()}))
    without = list(judge(rows, left_out()))
    for title, chosen in (("on the GPU itself", own), ("left out", without)):
        print(f"{title}: median / 90th percentile of the error; of the roofline")
        for name in (*dict.fromkeys(FAMILIES.values()), *CARDS.values(), _ALL):
            print(f"  {name:32}", *_figures(_of(chosen, name)))
    if arguments.table:
        names = (*dict.fromkeys(FAMILIES.values()), _ALL)
        header = ["kernels", "rows", "on the GPU itself", "90 % within", "GPU left out", "90 % within", "roofline"]
        write_table("accuracy", "kernels", header, [_table_row(name, own, without) for name in names])
    failed = [
        f"{name}, {title}: {spread_of(_of(chosen, name))[0]:.1%}, aim {aim:.0%}"
        for title, chosen, aim in (("on the GPU itself", own, OWN_AIM), ("left out", without, LEFT_OUT_AIM))
        for name in (*dict.fromkeys(FAMILIES.values()), _ALL)
        if spread_of(_of(chosen, name))[0] > aim
    ]
    print("\n".join(f"aim not met: {line}" for line in failed) or "every aim is met")
    return 1 if arguments.check and failed else 0


def left_out() -> dict[str, list[KernelCurve]]:
    """Return the curves that each card gets when none of its rows is used."""
    found = json.loads(gzip.decompress(LEFT_OUT.read_bytes()))
    return {card: [KernelCurve(*row[:4], *map(_tupled, row[4:])) for row in rows] for card, rows in found.items()}


def _tupled(part: object) -> object:
    return tuple(part) if isinstance(part, list) else part


def judge(rows: Iterable[KernelRow], curves: dict[str, list[KernelCurve]]) -> Iterator[Judged]:
    """Yield each row that has a curve among those of its card, with its errors."""
    rows = list(rows)
    for card, own in curves.items():
        covered, errors = errors_of([row for row in rows if row.card == card], own)
        for row, error in zip(covered, errors, strict=True):
            yield Judged(row, float(error), roofline_seconds(row) / row.seconds - 1)


def roofline_seconds(row: KernelRow) -> float:
    """Return the larger of operations ÷ dense rate and bytes ÷ bandwidth, or bytes ÷ link of a collective."""
    card, size = card_of(row), row.shape
    match row.kernel:
        case "product":
            rows, columns, inner, weight, entered = size
            operations, moved = 2 * rows * columns * inner, columns * inner * weight + rows * inner * entered
        case "attention-read":
            sequences, tokens, heads, keys, head, window, stored = size
            pairs = tokens * mean_context_tokens(int(tokens), int(window) or None, causal=True)
            operations = 4 * sequences * heads * head * pairs
            moved = sequences * tokens * head * (4 * heads + 2 * keys * stored)
        case "attention-write" | "attention-write-single":
            sequences, tokens, heads, keys, head, _, stored = size
            operations, moved = 4 * sequences * heads * head * tokens, 2 * sequences * keys * head * tokens * stored
        case "latent-read":
            sequences, tokens, heads, stored = size
            operations, moved = 320 * sequences * heads * tokens**2, sequences * tokens * heads * 640 * 2
        case "latent-write":
            sequences, tokens, heads, stored = size
            operations, moved = 2 * 1_088 * sequences * heads * tokens, 576 * sequences * tokens * stored
        case "experts":
            tokens, hidden, width, experts, chosen, cards, matrices, weight, _ = size
            rows, held = tokens * chosen / cards, experts / cards
            operations = 2 * rows * matrices * hidden * width
            moved = min(rows, held) * matrices * hidden * width * weight
        case _:
            return size[1] / card.link_bytes_per_s
    return max(operations / card.ops_per_s, moved / card.bytes_per_s)


def _of(judged: list[Judged], name: str) -> list[Judged]:
    return [item for item in judged if name in (FAMILIES[item.row.kernel], item.row.card, _ALL)]


def spread_of(judged: list[Judged], *, roofline: bool = False) -> tuple[float, float]:
    """Return the median and the 90th percentile of the errors; 0 without rows."""
    errors = np.array([item.roofline if roofline else item.error for item in judged] or [0.0])
    return spread(errors)


def _figures(judged: list[Judged]) -> tuple[str, ...]:
    (middle, high), (roof, roof_high) = spread_of(judged), spread_of(judged, roofline=True)
    return f"{len(judged):7}", f"{middle:6.1%} / {high:6.1%}", f"{roof:9.1%} / {roof_high:6.1%}"


def _table_row(name: str, own: list[Judged], without: list[Judged]) -> list[str]:
    mine, left = _of(own, name), _of(without, name)
    (middle, high), (carried, carried_high) = spread_of(mine), spread_of(left)
    roof = spread_of(mine, roofline=True)[0]
    errors = f"{middle:.1%}", f"{high:.0%}", f"{carried:.1%}", f"{carried_high:.0%}", f"{roof:.0%}"
    return [name, f"{len(mine):,}", *errors]


if __name__ == "__main__":
    sys.exit(main())
