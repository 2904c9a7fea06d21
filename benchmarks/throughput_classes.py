"""Fit the efficiency classes of training to the published speeds, and measure how well they generalize.

    python benchmarks/throughput_classes.py [--fit] [--leave-one-out]

Classes are of families of cards and sizes of numbers, never of rows: each source counts by the square root of its rows,
errors beyond a quarter count linearly, and rows of quality C not at all. `--fit` prints the constants that
`planner/performance/efficiency.py` holds; without it the constants there are judged as they are. `--leave-one-out`
leaves out one source, one card, then one family of cards at a time, fits the rest and predicts what was left out; five
folds over models come first. Constants without remaining measurements are then taken from the other families.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from math import exp, log
from statistics import median
from typing import Any, Final, NamedTuple

from throughput_rows import Excluded, truth
from throughput_training import TASKS, Run, training_run

from planner.performance.efficiency import (
    INPUT_BITS,
    ISOLATED_MATRIX_SHARES,
    MEASURED_EFFICIENCY,
    MatrixFormat,
    TrainingEfficiency,
    family_of,
    matrix_family,
)
from planner.performance.training.compute import wide_format
from planner.performance.training.step import TrainingStep, training_step_on
from planner.plan.catalog import load_catalog

_STEPS: Final = (0.2, 0.1, 0.05, 0.02)
_LINEAR_BEYOND: Final = 0.25
_CEILING: Final = 0.9
_FLOOR: Final = 0.6
"""Minimum share of a ceiling that training reaches; lower shares have another cause."""
_WEIGHTS: Final = {"A": 1.0, "B": 0.5, "C": 0.0}
_GLOBALS: Final = (
    "memory_passes",
    "fused_memory_passes",
    "experts_fraction",
    "exposed_fraction",
    "layer_launch_seconds",
    "expert_launch_seconds",
)
_BOUNDS: Final = {
    "memory_passes": (1.0, 4.0),
    "fused_memory_passes": (1.0, 3.0),
    "experts_fraction": (0.1, 1.0),
    "exposed_fraction": (0.05, 0.2),
    "layer_launch_seconds": (0.2e-3, 0.84e-3),
    "expert_launch_seconds": (0.1e-3, 3e-3),
}
"""What the mechanisms allow: an element is moved once at least; a fifth of what can be hidden is seen at most; launches
take between a lean loop and transformers' generation."""

Name = tuple[str, Any]


class Weighted(NamedTuple):
    """A training run with its weight in the fit."""

    run: Run
    weight: float


def main() -> int:
    """Print the constants or their errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the classes anew and print them")
    parser.add_argument("--leave-one-out", action="store_true", help="leave one source and one family out at a time")
    arguments = parser.parse_args()
    rows = weighted(runs())
    efficiency = fitted(rows, MEASURED_EFFICIENCY) if arguments.fit else MEASURED_EFFICIENCY
    if arguments.fit:
        print_classes(efficiency)
    print_groups("in sample", [(item, error_of(item.run, efficiency)) for item in rows])
    if arguments.leave_one_out:
        leave_out(rows, efficiency)
    return 0


def runs() -> list[Run]:
    """Return every training row that the estimator covers."""
    catalog = load_catalog()
    found = [training_run(row, catalog) for row in truth() if row.task in TASKS]
    return [run for run in found if not isinstance(run, Excluded)]


def weighted(chosen: Iterable[Run]) -> list[Weighted]:
    """Return the runs with weights that limit the influence of sources with many rows of one kind."""
    chosen = list(chosen)
    sizes = Counter(_kind(run) for run in chosen)
    return [Weighted(run, _worth(run) / sizes[_kind(run)] ** 0.5) for run in chosen]


def _worth(run: Run) -> float:
    """Return the weight of a row: half if the configuration was completed by assumptions."""
    return _WEIGHTS[run.row.quality] * (0.5 if run.assumed else 1.0)


def _kind(run: Run) -> tuple[str, str, str, str]:
    return run.row.source, run.row.task, family_of(run.gpu), run.row.precision


def error_of(run: Run, efficiency: TrainingEfficiency) -> float:
    """Return the logarithm of predicted to measured speed."""
    step = training_step_on(run.architecture, run.workload, run.gpu, run.setting, efficiency)
    assert isinstance(step, TrainingStep), step
    return log(step.tokens / step.seconds / run.measured_tokens_per_second)


def loss(rows: Iterable[Weighted], efficiency: TrainingEfficiency) -> float:
    """Return the weighted sum of squares, linear beyond a quarter."""
    found = 0.0
    for item in rows:
        if item.weight:
            error = abs(error_of(item.run, efficiency))
            square = error * error if error < _LINEAR_BEYOND else _LINEAR_BEYOND * (2 * error - _LINEAR_BEYOND)
            found += item.weight * square
    return found


def fitted(rows: list[Weighted], start: TrainingEfficiency, steps: Iterable[float] = _STEPS) -> TrainingEfficiency:
    """Return the classes with the lowest loss near `start`, fitted one constant at a time."""
    efficiency = start
    names = _names(rows, start)
    active_share = {name: [item for item in rows if item.weight and _touches(name, item.run)] for name in names}
    for step in steps:
        for _ in range(3):
            before = efficiency
            for name in names:
                efficiency = _moved(efficiency, name, step, active_share[name])
            if efficiency == before:
                break
    return efficiency


def _names(rows: list[Weighted], start: TrainingEfficiency) -> list[Name]:
    families = {family_of(item.run.gpu) for item in rows if item.weight}
    units = {matrix_family(item.run.gpu) for item in rows if item.weight}
    matrix = [("matrix_shares", key) for key in start.matrix_shares if key[0] in units]
    attention = [("attention_shares", family) for family in start.attention_shares if family in families]
    memory = [("memory_shares", family) for family in start.memory_shares if family in families]
    return [*matrix, *attention, *memory, *((name, None) for name in _GLOBALS)]


def _touches(name: Name, run: Run) -> bool:
    field, key = name
    if key is None:
        return True
    return matrix_family(run.gpu) == key[0] if field == "matrix_shares" else family_of(run.gpu) == key


def _moved(efficiency: TrainingEfficiency, name: Name, step: float, rows: list[Weighted]) -> TrainingEfficiency:
    """Return `efficiency` with one constant changed for as long as the errors of its rows decrease."""
    best, least = efficiency, loss(rows, efficiency)
    for factor in (1 + step, 1 / (1 + step)):
        while (changed := _with(best, name, factor)) is not None:
            found = loss(rows, changed)
            if found >= least - 1e-6:
                break
            best, least = changed, found
    return best


def _with(efficiency: TrainingEfficiency, name: Name, factor: float) -> TrainingEfficiency | None:
    field, key = name
    if key is None:
        value = getattr(efficiency, field) * factor
        low, high = _BOUNDS[field]
        return efficiency._replace(**{field: value}) if low <= value <= high else None
    table = dict(getattr(efficiency, field))
    table[key] *= factor
    least = _FLOOR * ISOLATED_MATRIX_SHARES.get(key, 0.0)
    return (
        efficiency._replace(**{field: table})
        if least <= table[key] <= ISOLATED_MATRIX_SHARES.get(key, _CEILING)
        else None
    )


def leave_out(rows: list[Weighted], efficiency: TrainingEfficiency) -> None:
    """Predict model folds, then each source, card and family, with classes fitted to all other rows."""
    models = sorted({item.run.row.model for item in rows})
    folds: list[tuple[Weighted, float]] = []
    for fold in range(5):
        held = set(models[fold::5])
        folds += _predicted(rows, efficiency, lambda run, held=held: run.row.model in held)
    print_groups("five folds over models", folds)
    for what, of in _PARTS.items():
        found: list[tuple[Weighted, float]] = []
        for name in sorted({of(item.run) for item in rows}):
            found += _predicted(rows, efficiency, lambda run, name=name, of=of: of(run) == name)
        print_groups(f"leaving one {what} out", found, of)


_PARTS: Final[dict[str, Callable[[Run], str]]] = {
    "source": lambda run: run.row.source,
    "card": lambda run: run.gpu.id,
    "family of cards": lambda run: family_of(run.gpu),
}


def _predicted(
    rows: list[Weighted], efficiency: TrainingEfficiency, held: Callable[[Run], bool]
) -> list[tuple[Weighted, float]]:
    rest = [item for item in rows if not held(item.run)]
    other = fitted(rest, supported(efficiency, rest), (0.08,))
    return [(item, error_of(item.run, other)) for item in rows if held(item.run)]


def supported(efficiency: TrainingEfficiency, rows: list[Weighted]) -> TrainingEfficiency:
    """Return `efficiency` with only the constants that some of `rows` measure."""
    runs_ = [item.run for item in rows if item.weight]
    families = {family_of(run.gpu) for run in runs_}
    sizes = {(matrix_family(run.gpu), INPUT_BITS[name]) for run in runs_ for name in formats_of(run)}
    return efficiency._replace(
        matrix_shares={key: value for key, value in efficiency.matrix_shares.items() if key in sizes},
        attention_shares={key: value for key, value in efficiency.attention_shares.items() if key in families},
        memory_shares={key: value for key, value in efficiency.memory_shares.items() if key in families},
    )


def formats_of(run: Run) -> tuple[MatrixFormat, MatrixFormat]:
    """Return the number formats of a run's layers and of its head."""
    wide = wide_format(run.gpu, run.workload.compute)
    return run.setting.matrix_format or ("fp8" if run.workload.compute == "fp8" else wide), wide


def print_groups(
    title: str, found: list[tuple[Weighted, float]], of: Callable[[Run], str] = lambda run: run.row.source
) -> None:
    """Print median, 90th percentile and bias of the errors: for all rows of quality A, then by group."""
    print(f"\n{title}: rows, median and 90th percentile of the absolute error, median signed error")
    groups: dict[str, list[float]] = defaultdict(list)
    for item, error in found:
        signed = exp(error) - 1
        groups[f"  {of(item.run)}"].append(signed)
        if item.run.row.quality == "A":
            groups[" quality A"].append(signed)
            if not item.run.assumed:
                groups[" quality A, all stated"].append(signed)
    for name, errors in sorted(groups.items()):
        sizes = sorted(abs(error) for error in errors)
        high = sizes[min(int(0.9 * len(sizes)), len(sizes) - 1)]
        print(f"{name:28} {len(errors):4} {median(sizes):7.1%} {high:7.1%} {median(errors):+7.1%}")


def print_classes(efficiency: TrainingEfficiency) -> None:
    """Print the constants in the form of `planner/performance/efficiency.py`."""
    for field in ("matrix_shares", "attention_shares", "memory_shares"):
        print(field)
        for key, value in getattr(efficiency, field).items():
            print(f"    {key!r}: {value:.2f},")
    for name in _GLOBALS:
        print(f"{name}={getattr(efficiency, name):.3g}")


if __name__ == "__main__":
    sys.exit(main())
