"""Fit the curves of `catalog/kernels` to tables of measured kernels.

    python benchmarks/kernel_fit.py FOLDER [--sample] [--left-out]

`FOLDER` has one folder for each system with the tables of aiconfigurator, `TABLE-ENGINE-VERSION.csv.gz`. Curves are
fitted to one half of the rows and their errors are those on the other half; curves of a family and of all cards are
fitted to the rows of its cards, and their errors are those on each card when it is left out. `--sample` also writes the
committed sample of the rows that no curve was fitted to, `--left-out` the curves that each card gets when it is left
out. Everything is reproducible: nothing is drawn at random but by the hash of a row.

The formulas are those of `planner.performance.kernels`, which take numbers; here they take columns of numbers.
"""

import argparse
import builtins
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import numpy as np
from kernel_rows import CARDS, SOURCE, KernelRow, read_tables, write_sample

from planner.hardware.catalog import load_hardware
from planner.performance.efficiency import family_of
from planner.performance.kernels import attention, products, times
from planner.performance.kernels.curves import ALL_CARDS, WARP_LEVEL, KernelCurve, file_name, multiplies_by_warp
from planner.performance.kernels.gpu_figures import GpuFigures, gpu_figures
from planner.performance.kernels.times import FORMULAS, element_format

ROOT: Final = Path(__file__).resolve().parent.parent
CATALOG: Final = ROOT / "catalog"
SAMPLE: Final = ROOT / "tests" / "truth" / "kernels" / "rows.csv.gz"
LEFT_OUT: Final = ROOT / "tests" / "truth" / "kernels" / "left-out.json.gz"
_FEWEST_ROWS: Final = 40
_MOST_POOLED: Final = 900
_SAMPLED: Final = 10_000
_NOISE: Final = 0.03
"""Error below which a row is as good as exact, so that few exact rows do not decide a fit."""
_PRIOR: Final = 2e-4
"""Weight of the start values for each row, which decides only what the rows leave open."""


_WRITE: Final = (12, 0.8, 0.2, 2, 0.5, 1, 0.5, 1, 1, 0.05, 0.05, 1, 1, 1, 1)
_COLLECTIVE: Final = (10, 1.2, 0.7, 0.9, 1, 3)
STARTS: Final[dict[str, tuple[type[Any], tuple[float, ...]]]] = {
    "product": (products.ProductShape, (6, 0.8, 0.3, 1, 0.8, 0.5, 1, 4, 0.3, 1)),
    "attention-read": (attention.AttentionShape, (12, 0.6, 0.5, 0.5, 1, 0.5, 0.5, 0.6, 0.7, 1, 1, 1)),
    "attention-write": (attention.AttentionShape, _WRITE),
    "attention-write-single": (attention.AttentionShape, _WRITE),
    "latent-read": (attention.LatentShape, (8, 0.6, 0.5, 0.5, 1, 0.5, 0.6, 0.3)),
    "latent-write": (attention.LatentShape, (8, 0.7, 0.2, 2, 0.5, 1, 1, 1, 0.5)),
    "experts": (
        products.ExpertShape,
        (30, 0.6, 0.7, 1, 0.8, 1, 1, 0.1, 0.3, 0.3, 0.3, 0.6, 1, 0.5, 0.2, 1, 0.7),
    ),
    "all-reduce": (times.CollectiveShape, _COLLECTIVE),
    "all-gather": (times.CollectiveShape, _COLLECTIVE),
    "reduce-scatter": (times.CollectiveShape, _COLLECTIVE),
    "all-to-all": (times.CollectiveShape, _COLLECTIVE),
}
"""Shape of each kernel, and the parameters from which a fit starts."""
_ON_COLUMNS: Final = {
    "max": np.maximum,
    "min": np.minimum,
    "ceil": np.ceil,
    "log2": np.log2,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "float": np.asarray,
}
"""What the functions of a formula mean for columns."""
_cards = load_hardware(CATALOG)


def main() -> None:
    """Fit all curves to the tables in a folder, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with one folder for each system")
    parser.add_argument("--sample", action="store_true", help="write the committed sample of the rows")
    parser.add_argument("--left-out", action="store_true", help="write the curves that each card gets when left out")
    arguments = parser.parse_args()
    rows = read_tables(arguments.folder)
    fitted = [row for row in rows if not row.is_held_out]
    judged = [row for row in rows if row.is_held_out]
    for card in CARDS.values():
        own = own_curves(_of_cards(fitted, {card}), _of_cards(judged, {card}))
        _write_curves(card, own, Counter(row.version for row in rows if row.card == card))
        print(f"{card}: {len(own)} curves", flush=True)
    left_out = {card: left_out_curves(fitted, card) for card in CARDS.values()}
    for name, members in pools().items():
        errors = _errors_by_key([row for row in judged if row.card in members], left_out)
        pooled = [
            curve._replace(median_error=errors[curve[:4]][0], error_90=errors[curve[:4]][1])
            for curve in pooled_curves(_of_cards(fitted, members))
            if curve[:4] in errors
        ]
        _write_curves(name, pooled, Counter())
        print(f"{name}: {len(pooled)} curves", flush=True)
    if arguments.left_out:
        text = json.dumps({card: [_as_list(curve) for curve in curves] for card, curves in left_out.items()})
        LEFT_OUT.write_bytes(gzip.compress(text.encode(), mtime=0))
    if arguments.sample:
        write_sample(SAMPLE, sample(judged))


def pools() -> dict[str, set[str]]:
    """Return the catalog files of several cards, with the cards whose rows they are fitted to, the nearest first."""
    found: dict[str, set[str]] = defaultdict(set)
    for card in CARDS.values():
        found[file_name(family_of(_cards.gpu(card)))].add(card)
    warp_level = {card for card in CARDS.values() if multiplies_by_warp(_cards.gpu(card))}
    return {**found, WARP_LEVEL: warp_level, ALL_CARDS: set(CARDS.values())}


def _of_cards(rows: Iterable[KernelRow], cards: set[str]) -> list[KernelRow]:
    return [row for row in rows if row.card in cards]


def own_curves(fitted: list[KernelRow], judged: list[KernelRow]) -> list[KernelCurve]:
    """Return the curves of one card, fitted to the rows `fitted`, with their errors on `judged`."""
    others = _by_key(judged)
    return [_fit_curve(key, rows, others.get(key, rows)) for key, rows in _by_key(fitted).items()]


def pooled_curves(fitted: list[KernelRow]) -> list[KernelCurve]:
    """Return the curves of several cards together, fitted to no more than 900 rows each."""
    return [
        _fit_curve(key, chosen, chosen)
        for key, rows in _by_key(fitted).items()
        for chosen in [sorted(rows, key=lambda row: row.draw)[:_MOST_POOLED]]
    ]


def left_out_curves(fitted: list[KernelRow], card: str) -> list[KernelCurve]:
    """Return the curves that `card` gets without its own rows: of the nearest cards on which each was measured."""
    curves: list[KernelCurve] = []
    for members in pools().values():
        if card in members:
            known = {curve[:4] for curve in curves}
            rows = [row for row in _of_cards(fitted, members - {card}) if row.key not in known]
            curves += pooled_curves(rows)
    return curves


def _by_key(rows: list[KernelRow]) -> dict[tuple[str, str, str, str], list[KernelRow]]:
    """Return the rows of each curve; implementations with few rows are left out."""
    found: dict[tuple[str, str, str, str], list[KernelRow]] = defaultdict(list)
    for row in rows:
        found[row.key].append(row)
    return {key: own for key, own in sorted(found.items()) if len(own) >= (_FEWEST_ROWS // 2)}


def _fit_curve(key: tuple[str, str, str, str], rows: list[KernelRow], judged: list[KernelRow]) -> KernelCurve:
    parameters = fit(key[0], rows)
    median, error_90 = spread(relative_errors(key[0], parameters, judged))
    counted = Counter(row.head_size for row in rows)
    sizes = tuple(sorted(size for size, count in counted.items() if size and count > len(rows) / 20))
    return KernelCurve(*key, sizes, len(rows), median, error_90, tuple(float(f"{each:.3g}") for each in parameters))


def spread(errors: np.ndarray) -> tuple[float, float]:
    """Return the median and the 90th percentile of the size of `errors`."""
    return round(float(np.median(np.abs(errors))), 4), round(float(np.quantile(np.abs(errors), 0.9)), 4)


def relative_errors(kernel: str, parameters: Iterable[float], rows: list[KernelRow]) -> np.ndarray:
    """Return estimate ÷ measurement − 1 of each row."""
    formula = FORMULAS[kernel]
    estimate = on_columns(formula.seconds)(formula.curve(*parameters), *_columns(kernel, rows))
    return np.asarray(estimate / np.array([row.seconds for row in rows]) - 1)


def fit(kernel: str, rows: list[KernelRow]) -> np.ndarray:
    """Return the parameters that make the median error of `rows` small.

    Gauss-Newton steps with damping on logarithms, with weights that make them steps towards the least absolute error.
    """
    formula, shape_card = FORMULAS[kernel], _columns(kernel, rows)
    seconds = on_columns(formula.seconds)
    measured = np.log([row.seconds for row in rows])
    start = np.log(np.array(STARTS[kernel][1], dtype=float))

    def residuals(logarithms: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(seconds(formula.curve(*np.exp(logarithms)), *shape_card)) - measured)

    def cost(rest: np.ndarray, logarithms: np.ndarray) -> float:
        return float(np.sum(np.sqrt(rest**2 + _NOISE**2)) + _PRIOR * len(rest) * np.sum((logarithms - start) ** 2))

    now, damping = start, 1e-2
    rest = residuals(now)
    value = cost(rest, now)
    for _ in range(40):
        slopes = np.array([(residuals(now + step) - rest) / 1e-4 for step in np.eye(len(now)) * 1e-4]).T
        weights = 1 / np.sqrt(rest**2 + _NOISE**2)
        matrix = (slopes * weights[:, None]).T @ slopes + 2 * _PRIOR * len(rest) * np.eye(len(now))
        slope = (slopes * weights[:, None]).T @ rest + 2 * _PRIOR * len(rest) * (now - start)
        before = value
        for _ in range(8):
            step = np.linalg.lstsq(matrix + damping * np.diag(np.diag(matrix)), -slope, rcond=None)[0]
            tried = now + np.clip(step, -1, 1)
            left = residuals(tried)
            if cost(left, tried) < value:
                now, rest, value, damping = tried, left, cost(left, tried), max(damping / 5, 1e-6)
                break
            damping *= 5
        if before - value < 1e-4 * before:
            break
    return np.exp(now)


def on_columns(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, a formula for numbers, for columns of numbers: its `max`, `ceil` and so on are numpy's."""
    names = function.__globals__ | {"__builtins__": vars(builtins)} | _ON_COLUMNS
    for name in function.__code__.co_names:
        if isinstance(names.get(name), FunctionType) and name not in _ON_COLUMNS:
            names[name] = on_columns(names[name])
    return FunctionType(function.__code__, names, argdefs=function.__defaults__)


def _columns(kernel: str, rows: list[KernelRow]) -> tuple[Any, GpuFigures]:
    """Return shapes and cards of `rows` as columns."""
    cards = {(row.card, row.format): card_of(row) for row in rows}
    shape = STARTS[kernel][0](*np.array([row.shape for row in rows], dtype=float).T)
    return shape, GpuFigures(*np.array([cards[row.card, row.format] for row in rows], dtype=float).T)


def card_of(row: KernelRow) -> GpuFigures:
    """Return the figures of the row's card, with the rate of its format."""
    found = gpu_figures(_cards.gpu(row.card), element_format(row.format).rate)
    if found is None:
        raise SystemExit(f"{row.card} has no bandwidth or rate in catalog/gpus")
    return found


def choose_curve(curves: Iterable[KernelCurve], row: KernelRow) -> KernelCurve | None:
    """Return the curve for `row`: of its own implementation, else the engine's, else any of its format."""
    same = [curve for curve in curves if (curve.kernel, curve.format) == (row.kernel, row.format)]
    return max(
        same,
        key=lambda curve: (
            curve.engine == row.engine,
            curve.implementation == row.implementation,
            row.head_size in curve.head_sizes,
            curve.rows,
        ),
        default=None,
    )


def errors_of(rows: list[KernelRow], curves: list[KernelCurve]) -> tuple[list[KernelRow], np.ndarray]:
    """Return the rows that have a curve, and their errors with it."""
    groups: dict[KernelCurve, list[KernelRow]] = defaultdict(list)
    chosen: dict[tuple[Any, ...], KernelCurve | None] = {}
    for row in rows:
        key = (*row.key, row.head_size)
        if key not in chosen:
            chosen[key] = choose_curve(curves, row)
        curve = chosen[key]
        if curve is not None:
            groups[curve].append(row)
    errors = [relative_errors(curve.kernel, curve.parameters, own) for curve, own in groups.items()]
    return [row for own in groups.values() for row in own], np.concatenate([*errors, []])


def _errors_by_key(
    judged: list[KernelRow], left_out: dict[str, list[KernelCurve]]
) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return median and 90th percentile of the errors on cards that were left out, for each curve."""
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for card in {row.card for row in judged}:
        for row, error in zip(*errors_of(_of_cards(judged, {card}), left_out[card]), strict=True):
            found[row.key].append(float(error))
    return {key: spread(np.array(errors)) for key, errors in found.items()}


def sample(rows: list[KernelRow]) -> list[KernelRow]:
    """Return the part of `rows` that is committed, in order of what they are."""
    return sorted(sorted(rows, key=lambda row: row.draw)[:_SAMPLED], key=lambda row: (row.card, *row.key, row.shape))


def _as_list(curve: KernelCurve) -> list[Any]:
    return [list(part) if isinstance(part, tuple) else part for part in curve]


def _write_curves(name: str, curves: list[KernelCurve], versions: Counter[str]) -> None:
    """Write `curves` to the catalog file `name`, one in a line."""
    lines = ",\n    ".join(json.dumps(_as_list(curve), separators=(",", ":")) for curve in curves)
    head = {"source": SOURCE, "as_of": "2026-11-23", "engine_versions": sorted(versions)}
    text = json.dumps(head, indent=2)[:-2] + ',\n  "curves": [\n    ' + lines + "\n  ]\n}\n"
    (CATALOG / "kernels" / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
