"""Measured against estimated speed, for every published row that the estimator covers.

    python benchmarks/throughput_accuracy.py [--truth PATH] [--task TASK] [--rows] [--check]

Prints, for each task and each family of cards in it, the median and the 90th percentile of the absolute error: ours,
that of 6ND with a flat 40 % of the dense rate, and that of the plain bandwidth bound; and the bias, the median signed
error. Rows of quality A come first, and of them those whose configuration is stated in full. Then how often what was
said comes true on rows whose source is left out (`throughput_left_out`), and the number of rows that are not covered,
by reason. `--rows` lists each row. `benchmarks/throughput_classes.py` fits the classes.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import tables
import throughput_inference
import throughput_training
from tables import add_table_option, write_table
from throughput_left_out import Ratio, classes_of, every_source_left_out, logarithm_of
from throughput_reliability import Stated, grouped, half_width, print_reliability, reliability_table, write_curves
from throughput_rows import Excluded, Row, Speeds, family, truth

from planner.plan.catalog import Catalog, load_catalog

_PREDICTORS: Final[dict[str, Callable[[Row, Catalog], Speeds | Excluded]]] = {
    task: module.predict for module in (throughput_training, throughput_inference) for task in module.TASKS
}
_AIM_MEDIAN: Final = 0.15
_AIM_90TH: Final = 0.40
_OFF_THE_CHART: Final = 10.0
TITLES: Final = {
    "train": "training",
    "finetune": "fine-tuning, also LoRA and QLoRA",
    "infer_decode": "decode",
    "infer_prefill": "prefill",
    "infer_offline": "requests in batches",
    "image_infer": "images, inference",
    "image_train": "images, training",
}


class Compared(NamedTuple):
    """A published speed with its estimate."""

    row: Row
    family: str
    speeds: Speeds

    def error(self, speed: float) -> float:
        """Return the signed relative error of `speed`; errors of times are converted to errors of speeds."""
        measured = self.row.value or 0.0
        return measured / speed - 1 if self.row.unit.startswith(("s/", "ms")) else speed / measured - 1


def main() -> int:
    """Print the tables; return 1 if `--check` is set and an aim is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, help="another table of the same columns")
    parser.add_argument("--task", choices=sorted(_PREDICTORS), action="append", help="only this task")
    parser.add_argument("--rows", action="store_true", help="list every compared row")
    parser.add_argument("--check", action="store_true", help="end with 1 where an aim is not met")
    add_table_option(parser)
    arguments = parser.parse_args()
    compared, excluded = compare(truth(arguments.truth), arguments.task or sorted(_PREDICTORS))
    if arguments.rows:
        print_rows(compared)
    print_summary(compared)
    said = stated_without_source(compared)
    print_reliability(said)
    print_excluded(excluded)
    if arguments.table:
        write_table("accuracy", "time", *manual_table(compared))
        write_table("accuracy", "time-reliability", *reliability_table(said))
        write_curves(tables.DOCS / "pictures" / "speed-reliability.svg", said)
    failed = list(unmet(compared))
    print("\n".join(f"aim not met: {line}" for line in failed) or "every aim is met")
    return 1 if arguments.check and failed else 0


def compare(rows: Iterable[Row], tasks: Iterable[str]) -> tuple[list[Compared], list[tuple[Row, str]]]:
    """Return the rows of `tasks` with their estimates, and the rows that are not covered with the reason."""
    catalog, chosen = load_catalog(), set(tasks)
    compared, excluded = [], []
    for row in rows:
        if row.task not in chosen:
            continue
        found = _PREDICTORS[row.task](row, catalog)
        if isinstance(found, Excluded):
            excluded.append((row, found.reason))
        else:
            compared.append(Compared(row, family(row, catalog), found))
    return compared, excluded


def print_rows(compared: Iterable[Compared]) -> None:
    """Print each row: id, task, model, cards, measured, estimated, error."""
    for item in compared:
        row = item.row
        print(
            f"{row.id:12} {row.task:13} {row.model[:28]:28} {row.gpu[:18]:18} × {row.cards:<6} "
            f"{row.value:12.5g} {item.speeds.ours:12.5g} {row.unit:14} {item.error(item.speeds.ours):+8.1%}"
        )
    print()


def print_summary(compared: list[Compared]) -> None:
    """Print each task: rows of quality A, those with a full configuration, each card family, and all rows."""
    print("absolute error: median / 90th percentile; bias: the median signed error of ours")
    columns = f"{'ours':>18} {'6ND at 40 %':>18} {'bandwidth':>18}"
    print(f"{'task':14} {'rows of':38} {'rows':>5} {columns} {'bias':>7}")
    for task in sorted({item.row.task for item in compared}):
        of_task = [item for item in compared if item.row.task == task]
        best = [item for item in of_task if item.row.quality == "A"]
        print_line(task, "quality A", best)
        print_line("", "quality A, all stated", [item for item in best if not item.speeds.assumed])
        for name in sorted({item.family for item in best}):
            print_line("", f"  {name}", [item for item in best if item.family == name])
        print_line("", "every quality", of_task)
    print()


def print_line(task: str, label: str, chosen: list[Compared]) -> None:
    """Print one line of the summary."""
    if not chosen:
        return
    errors = (
        spread_of([item.error(speed(item.speeds)) for item in chosen])
        for speed in (lambda found: found.ours, lambda found: found.flat_mfu, lambda found: found.bandwidth)
    )
    shown = " ".join(f"{middle:8.1%} / {high:7.1%}" for middle, high in errors)
    bias = median(item.error(item.speeds.ours) for item in chosen)
    print(f"{task:14} {label[:38]:38} {len(chosen):5} {shown} {bias:+7.1%}")


def manual_table(compared: list[Compared]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the manual's table: rows of quality A by task, beside two rules of thumb."""
    header = [
        "rows of quality A",
        "rows",
        "median error",
        "90 % within",
        "6ND at 40 % MFU",
        "bandwidth",
    ]
    rows = []
    for task, title in TITLES.items():
        best = [item for item in compared if item.row.task == task and item.row.quality == "A"]
        if not best:
            continue
        middle, high = spread_of([item.error(item.speeds.ours) for item in best])
        rules = (
            spread_of([item.error(speed(item.speeds)) for item in best])[0]
            for speed in (lambda found: found.flat_mfu, lambda found: found.bandwidth)
        )
        shown = (f"{error:.0%}" if error <= _OFF_THE_CHART else "> 1,000%" for error in rules)
        rows.append([title, str(len(best)), f"{middle:.1%}", f"{high:.0%}", *shown])
    return header, rows


def spread_of(errors: Iterable[float]) -> tuple[float, float]:
    """Return the median and the 90th percentile of the absolute errors."""
    sizes = sorted(abs(error) for error in errors)
    return median(sizes), sizes[min(int(0.9 * len(sizes)), len(sizes) - 1)]


def stated_without_source(compared: Iterable[Compared]) -> dict[str, list[Stated]]:
    """Return the rows of quality A by task, with their stated intervals around predictions without their source."""
    catalog = load_catalog()
    widths, found = {}, []
    for item in compared:
        if item.speeds.high is not None and item.row.quality == "A":
            widths[item.row.id] = abs(half_width(item.speeds.ours, item.speeds.high))
            found.append(Ratio(item.row, classes_of(item.row, catalog), logarithm_of(item.row, item.speeds.ours)))
    return grouped(
        (TITLES[one.row.task], Stated(one.row.source, one.logarithm, widths[one.row.id]))
        for one in every_source_left_out(found, catalog)
    )


def print_excluded(excluded: list[tuple[Row, str]]) -> None:
    """Print how many rows are not covered, by task and reason."""
    print("not covered:")
    for (task, reason), count in sorted(Counter((row.task, reason) for row, reason in excluded).items()):
        print(f"  {count:4}  {task:14} {reason}")
    print()


def unmet(compared: list[Compared]) -> Iterable[str]:
    """Yield each task whose rows of quality A miss the aims."""
    for task in sorted({item.row.task for item in compared}):
        best = [item for item in compared if item.row.task == task and item.row.quality == "A"]
        if not best:
            continue
        middle, high = spread_of([item.error(item.speeds.ours) for item in best])
        if middle > _AIM_MEDIAN or high > _AIM_90TH:
            yield f"{task}: median {middle:.1%} of {_AIM_MEDIAN:.0%}, 90th percentile {high:.1%} of {_AIM_90TH:.0%}"


if __name__ == "__main__":
    sys.exit(main())
