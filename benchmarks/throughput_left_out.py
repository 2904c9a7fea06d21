"""Generalization of the speeds: cross-validation that leaves out one card, then one source at a time.

    python benchmarks/throughput_left_out.py [--truth PATH]

A class is, of training, a family of cards and a width of numbers; of inference, an engine with a kind of memory and a
width of weights; of images, a kind of network, eager or compiled. For each thing left out, the factor of every class is
fitted anew to the other rows of quality A in it (their median ratio of measured to estimated), and what was left out is
predicted with that. If a class has none left, wider ones with the same constants follow. Where nothing is left at all,
the constants are lost: training then takes those of similar cards or of isolated products, inference those of the most
similar program, whose mechanisms are not exchanged, and images keep the mechanism alone. A sum of measured kernels has
no constant from a row.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import exp, log
from pathlib import Path
from statistics import median
from typing import NamedTuple

import throughput_images
import throughput_inference
import throughput_training
from throughput_classes import error_of, formats_of
from throughput_rows import Excluded, Row, truth

from planner.performance.efficiency import INPUT_BITS, MEASURED_EFFICIENCY, InputBits, MatrixFamily, matrix_family
from planner.plan.catalog import Catalog, load_catalog

TASKS = (*throughput_training.TASKS, *throughput_inference.TASKS)


class Ratio(NamedTuple):
    """A row with its classes, the nearest first, and the logarithm of measured over estimated speed."""

    row: Row
    efficiency: tuple[tuple[str, ...], ...]
    logarithm: float


class LeftOut(NamedTuple):
    """A row predicted without its source: the logarithm of measured over estimated speed, and the sources that remain.

    `remaining` is the number of other sources in the class of the row.
    """

    row: Row
    logarithm: float
    remaining: int


def main() -> None:
    """Print the errors of what was left out, by task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, help="another table of the same columns")
    catalog = load_catalog()
    rows = list(truth(parser.parse_args().truth))
    found = list(ratios(rows, catalog))
    for title, key in (("card", lambda one: one.row.gpu), ("source", lambda one: one.row.source)):
        print(f"one {title} left out at a time: median / 90th percentile of the absolute error, 80th of the factor")
        for task in TASKS:
            print_task(task, found, key, catalog)
        print()
    print_kernels(rows, found, catalog)


def ratios(rows: Iterable[Row], catalog: Catalog) -> Iterator[Ratio]:
    """Yield the ratio of each covered row of quality A."""
    for row in rows:
        if row.quality == "A" and row.task in TASKS and row.value:
            module = throughput_training if row.task in throughput_training.TASKS else throughput_inference
            speeds = module.predict(row, catalog)
            if not isinstance(speeds, Excluded):
                yield Ratio(row, classes_of(row, catalog), logarithm_of(row, speeds.ours))


def print_kernels(rows: Iterable[Row], found: Iterable[Ratio], catalog: Catalog) -> None:
    """Print the errors of rows whose estimate is a sum of kernels beside those by classes, one source left out."""
    print("sums of kernels, beside classes with one source left out")
    without = {one.row.id: one for one in every_source_left_out(ratios_by_classes(rows, catalog), catalog)}
    by_kind: dict[str, list[Ratio]] = defaultdict(list)
    for one in found:
        if not one.efficiency:
            by_kind[f"{one.row.source} {one.row.model[:24]} {one.row.gpu[:14]}"].append(one)
            by_kind["all"].append(one)
    for kind, own in sorted(by_kind.items(), key=lambda item: (item[0] == "all", item[0])):
        print_line(f"  {kind:48} kernels", [abs(exp(-one.logarithm) - 1) for one in own])
        print_line(f"  {'':48} classes", [abs(exp(-without[one.row.id].logarithm) - 1) for one in own])


def ratios_by_classes(rows: Iterable[Row], catalog: Catalog) -> Iterator[Ratio]:
    """Yield the ratio of each covered row of inference as if no kernels were measured."""
    for row in rows:
        if row.quality == "A" and row.task in throughput_inference.TASKS and row.value:
            speeds = throughput_inference.predict(row, catalog, by_classes=True)
            if not isinstance(speeds, Excluded):
                yield Ratio(row, classes_of(row, catalog, by_classes=True), logarithm_of(row, speeds.ours))


def logarithm_of(row: Row, speed: float) -> float:
    """Return the logarithm of measured over estimated speed; a row of seconds has the reciprocals."""
    ratio = log((row.value or 0.0) / speed)
    return -ratio if row.unit.startswith("s/") else ratio


def _key(run: throughput_training.Run) -> tuple[MatrixFamily, InputBits]:
    return matrix_family(run.gpu), INPUT_BITS[formats_of(run)[0]]


def logarithm_without_class(one: Ratio, catalog: Catalog) -> float:
    """Return the logarithm of measured over estimated speed of a row without the constants of its class."""
    if one.row.task in throughput_training.TASKS:
        run = throughput_training.training_run(one.row, catalog)
        if isinstance(run, Excluded):
            raise TypeError(run.reason)  # only covered rows come here
        rest = {key: share for key, share in MEASURED_EFFICIENCY.matrix_shares.items() if key != _key(run)}
        return -error_of(run, MEASURED_EFFICIENCY._replace(matrix_shares=rest))
    other = throughput_inference.predict(one.row, catalog, substituted=True)
    return one.logarithm if isinstance(other, Excluded) else logarithm_of(one.row, other.ours)


def classes_of(row: Row, catalog: Catalog, *, by_classes: bool = False) -> tuple[tuple[str, ...], ...]:
    """Return the classes of a covered row, the nearest first; none if no constant of its estimate is from a row.

    `by_classes` means that sums of kernels count as estimates by classes.
    """
    if row.task in throughput_training.TASKS:
        run = throughput_training.training_run(row, catalog)
        if isinstance(run, Excluded):
            raise TypeError(run.reason)  # only covered rows come here
        return ((row.task, *_key(run)),)
    if row.task in throughput_images.TASKS:
        return ((row.task, throughput_images.kind_of(row), str(throughput_images.is_compiled(row))),)
    case = throughput_inference.case_of(row, catalog)
    if isinstance(case, Excluded):
        raise TypeError(case.reason)  # only covered rows come here
    return throughput_inference.classes_of(case, by_classes=by_classes)


def print_task(task: str, found: list[Ratio], key: Callable[[Ratio], str], catalog: Catalog) -> None:
    """Print the errors of each card or source left out, and the errors of all together."""
    errors: list[float] = []
    for name in sorted({key(one) for one in found if one.row.task == task}):
        rows = [one for one in left_out(found, name, key, catalog) if one.row.task == task]
        own = [abs(exp(-one.logarithm) - 1) for one in rows]
        errors += own
        print_line(f"  {task:14} without {name[:34]:34}", own)
    if errors:
        print_line(f"  {task:14} {'all':42}", errors)


def every_source_left_out(found: Iterable[Ratio], catalog: Catalog) -> list[LeftOut]:
    """Return each row, predicted without its source."""
    rows = list(found)
    predicted = [
        row
        for name in sorted({one.row.source for one in rows})
        for row in left_out(rows, name, lambda one: one.row.source, catalog)
    ]
    tasks = list(dict.fromkeys(one.row.task for one in rows))
    return sorted(predicted, key=lambda one: tasks.index(one.row.task))


def left_out(found: list[Ratio], name: str, key: Callable[[Ratio], str], catalog: Catalog) -> Iterator[LeftOut]:
    """Yield the rows of the card or source `name`, with the classes fitted to all other rows."""
    others: dict[tuple[str, ...], list[Ratio]] = defaultdict(list)
    for one in found:
        if key(one) != name:
            for of_class in one.efficiency:
                others[of_class].append(one)
    for one in found:
        if key(one) == name:
            yield _without(one, others, catalog)


def _without(one: Ratio, others: dict[tuple[str, ...], list[Ratio]], catalog: Catalog) -> LeftOut:
    """Return a row with the factor of its nearest class in `others`."""
    if not one.efficiency:
        return LeftOut(one.row, one.logarithm, 0)
    rest = next((others[of_class] for of_class in one.efficiency if of_class in others), None)
    if rest is None:
        return LeftOut(one.row, logarithm_without_class(one, catalog), 0)
    shift = median(other.logarithm for other in rest)
    return LeftOut(one.row, one.logarithm - shift, len({other.row.source for other in rest}))


def print_line(label: str, errors: list[float]) -> None:
    """Print the number of rows with the median and the 90th percentile."""
    sizes = sorted(errors)
    high = sizes[min(int(0.9 * len(sizes)), len(sizes) - 1)]
    factor = 1 + sizes[min(int(0.8 * len(sizes)), len(sizes) - 1)]
    print(f"{label} {len(sizes):5} {median(sizes):8.1%} / {high:7.1%}   {factor:5.2f}")


if __name__ == "__main__":
    main()
