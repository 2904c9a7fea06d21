"""Measured against predicted memory, for every published row that the estimator covers.

    python benchmarks/accuracy.py [--rows] [--kind KIND]

Prints, for each kind, the number of rows, the median and the worst error, and the bias (the median signed error: an
under-estimate costs an out-of-memory). Rows that are not covered are counted by reason. `--rows` lists each row.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from truth_rows import KINDS as OTHER_KINDS
from truth_rows import Excluded, Row, predict
from truth_tuned import TUNED, predict_tuned

from planner.plan.catalog import load_catalog

TRUTH = Path(__file__).resolve().parent.parent / "tests" / "truth" / "memory.csv"
GIB = 2**30
KINDS = (*OTHER_KINDS, *TUNED)


class Compared(NamedTuple):
    """One row with its prediction."""

    row: Row
    predicted_gib: float
    how: str

    @property
    def error(self) -> float:
        """Return the signed relative error."""
        return self.predicted_gib / self.row.measured_gib - 1

    @property
    def strict(self) -> bool:
        """Return whether the row belongs to the strictest set."""
        return self.row.confidence == "A" and self.row.complete


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="list every compared row")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    arguments = parser.parse_args()
    kinds = (arguments.kind,) if arguments.kind else KINDS
    compared, excluded = compare(kinds)
    if arguments.rows:
        print_rows(compared)
    print_summary(compared, kinds)
    print_excluded(excluded)


def compare(kinds: Iterable[str]) -> tuple[list[Compared], list[tuple[Row, str]]]:
    """Return the rows of `kinds` with their predictions, and those that are not covered with the reason."""
    catalog = load_catalog()
    compared, excluded = [], []
    with TRUTH.open(encoding="utf-8", newline="") as stream:
        rows = [Row.from_csv(record) for record in csv.DictReader(stream) if record["kind"] in kinds]
    for row in rows:
        answer = (predict_tuned if row.kind in TUNED else predict)(row, catalog)
        if isinstance(answer, Excluded):
            excluded.append((row, answer.reason))
        else:
            compared.append(Compared(row, answer.bytes / GIB, answer.how))
    return compared, excluded


def print_rows(compared: list[Compared]) -> None:
    """Print each row: id, model, what was run, measured, predicted, error."""
    print(f"{'row':16} {'model':38} {'run':46} {'measured':>9} {'predicted':>9} {'error':>8}")
    for item in sorted(compared, key=lambda item: (KINDS.index(item.row.kind), item.row.id)):
        row = item.row
        print(
            f"{row.id:16} {row.model[:38]:38} {item.how[:46]:46} "
            f"{row.measured_gib:9.3f} {item.predicted_gib:9.3f} {item.error:+8.2%}"
        )
    print()


def print_summary(compared: list[Compared], kinds: Iterable[str]) -> None:
    """Print median, worst and bias by kind, for the strict set and for all rows; then the sources of each kind."""
    print(f"{'kind':14} {'set':24} {'rows':>5} {'median':>8} {'≤ 5 %':>7} {'worst':>9} {'bias':>8}  worst row")
    for kind in kinds:
        of_kind = [item for item in compared if item.row.kind == kind]
        for label, chosen in (("A, complete", [i for i in of_kind if i.strict]), ("all covered", of_kind)):
            if chosen:
                print_line(kind, label, chosen)
        for source in sorted({item.row.family for item in of_kind}):
            print_line("", f"  {source}", [item for item in of_kind if item.row.family == source])
    print()


def print_line(kind: str, label: str, chosen: list[Compared]) -> None:
    """Print one line of the summary."""
    worst = max(chosen, key=lambda item: abs(item.error))
    near = sum(abs(item.error) <= 0.05 for item in chosen) / len(chosen)
    print(
        f"{kind:14} {label:24} {len(chosen):5} {median(abs(i.error) for i in chosen):8.2%} {near:7.0%} "
        f"{worst.error:+9.2%} {median(i.error for i in chosen):+8.2%}  {worst.row.id}"
    )


def print_excluded(excluded: list[tuple[Row, str]]) -> None:
    """Print how many rows are not covered, by reason."""
    print("not covered:")
    for reason, count in Counter(reason for _, reason in excluded).most_common():
        print(f"  {count:4}  {reason}")


if __name__ == "__main__":
    main()
