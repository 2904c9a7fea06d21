"""Measured against predicted memory, for every published row that the estimator covers.

    python benchmarks/accuracy.py [--rows] [--kind KIND] [--check] [--leave-one-out]

Prints, for each kind, the number of rows, the median and the worst error, and the bias (the median signed error: an
underestimate may cause an out-of-memory error). Then every row that is further off than the aim, with the mechanism
that explains it or without one; how often what was measured lies in the stated interval, and how often a stated chance
came true, also where the interval is found again without the row's source. Rows that are not covered are counted by
reason. `--rows` lists each row. `--leave-one-out` prints the constants that are estimated from several sources, each
left out in turn.
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from aims import Missed, limit_of, source_errors, unmet, unshown
from calibration import LEVELS, Stated, came_true, found_without_source, grouped, print_reliability
from counters import counter_of
from curves import write_curves
from explained_misses import Mechanism, mechanism_of, reason_for
from leave_one_out import print_leave_one_out
from memory_rows import Excluded, Predicted, Row
from tables import add_table_option, write_table
from traced_kernels import predict_kernels
from truth_rows import KINDS as OTHER_KINDS
from truth_rows import predict
from truth_tuned import TUNED, predict_tuned
from vllm_totals import print_vllm_totals, vllm_totals

from planner.plan.catalog import load_catalog

TRUTH = Path(__file__).resolve().parent.parent / "tests" / "truth" / "memory.csv"
GIB = 2**30
_CURVES = ("inference, allocated", "train_full, allocated")
FAR = 0.05
_PAGES = ("sdpa",)
"""Sources that are a page for each network, measured by different people."""
OPERATOR = "kernel"
KINDS = (*OTHER_KINDS, *TUNED, OPERATOR)
TITLES = {
    "weights_only": "weights alone",
    "kv_only": "KV caches alone",
    "activation_only": "activations alone",
    "inference": "inference, peak",
    "train_full": "full training, peak",
    "pretrain": "pretraining, mostly Megatron-LM on several GPUs",
    "lora": "LoRA",
    "qlora": "QLoRA, LitGPT",
    OPERATOR: "single operators, traced",
}


class Compared(NamedTuple):
    """A published measurement with its prediction."""

    row: Row
    predicted: Predicted

    @property
    def predicted_gib(self) -> float:
        """Return the prediction in GiB."""
        return self.predicted.bytes / GIB

    @property
    def how(self) -> str:
        """Return a description of the estimated run."""
        return self.predicted.how

    @property
    def error(self) -> float:
        """Return the signed relative error."""
        return self.predicted_gib / self.row.measured_gib - 1

    @property
    def strict(self) -> bool:
        """Return whether the row belongs to the strictest set."""
        return self.row.strict


def main() -> int:
    """Print the tables; return 1 if `--check` is set and an aim is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="list every compared row")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument(
        "--leave-one-out", action="store_true", help="only the constants estimated from several sources"
    )
    parser.add_argument("--check", action="store_true", help="end with 1 where an aim is not met")
    add_table_option(parser)
    arguments = parser.parse_args()
    if arguments.leave_one_out:
        print_leave_one_out()
        return 0
    kinds = (arguments.kind,) if arguments.kind else KINDS
    compared, excluded = compare(kinds)
    if arguments.rows:
        print_rows(compared)
    print_summary(compared, kinds)
    if "inference" in kinds:
        print_vllm_totals(vllm_totals(truth(), load_catalog()))
    print_misses(compared)
    stated = list(stated_of(compared))
    print_reliability([*stated, *found_without_source(stated)])
    print_coverage(compared, excluded)
    print_excluded(excluded)
    if arguments.table:
        write_tables(compared, excluded)
    failed = list(unmet(strict_rows(compared)))
    far = [mechanism_of(item.row.id) for item in compared if item.strict and abs(item.error) > FAR]
    failed += unshown(sum(map(is_shown, far)), len(far))
    print("\n".join(f"aim not met: {line}" for line in failed) or "every aim is met")
    return 1 if arguments.check and failed else 0


def write_tables(compared: list[Compared], excluded: list[tuple[Row, str]]) -> None:
    """Write the tables of the manual: errors and coverage by kind, and how often stated intervals hold."""
    for name, header, rows in manual_tables(compared, excluded):
        write_table("accuracy", name, header, rows)
    groups = {name: members for name, members in _drawn(compared).items() if "misses" not in name}
    write_curves(
        "memory-reliability",
        "Memory: how often what was stated with a chance came true",
        {_title(name): partial(came_true, members) for name, members in groups.items()},
    )


def manual_tables(
    compared: list[Compared], excluded: list[tuple[Row, str]]
) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield the name, the header and the rows of each table of the manual."""
    of_kind = {kind: [item for item in compared if item.row.kind == kind] for kind in KINDS}
    strict = {kind: [item for item in items if item.strict] for kind, items in of_kind.items()}
    yield (
        "memory",
        ["measured (complete, quality A)", "rows", "median error", "of sources", "within 5%", "worst", "bias"],
        [_errors(title, items) for title, items in _by_profile(strict) if items],
    )
    left_out = Counter(row.kind for row, _ in excluded)
    strictly_left_out = Counter(row.kind for row, _ in excluded if row.strict)
    missed = {
        kind: [reason_for(item.row.id) for item in items if abs(item.error) > limit_of(kind)]
        for kind, items in of_kind.items()
    }
    yield (
        "memory-coverage",
        [
            "measured (all rows)",
            "covered",
            "not covered",
            "covered of the complete, quality A",
            "of these, without a profile",
            "outside the aim, explained",
            "outside the aim, unexplained",
        ],
        [
            [
                TITLES[kind],
                *map(str, (len(items), left_out[kind])),
                f"{len(strict[kind])} of {len(strict[kind]) + strictly_left_out[kind]}",
                str(sum(not item.predicted.has_profile for item in strict[kind])),
                *map(str, _explained(missed[kind])),
            ]
            for kind, items in of_kind.items()
            if items
        ],
    )
    yield (
        "memory-confidence",
        [
            "measured",
            "rows",
            "in the interval",
            "Winkler's score",
            *(f"a stated {level:.0%} came true" for level in LEVELS),
        ],
        [_confidence(name, rows) for name, rows in _drawn(compared).items()],
    )


def _drawn(compared: list[Compared]) -> dict[str, list[Stated]]:
    """Return the groups of rows that the manual shows, also with intervals found without a row's source."""
    stated = list(stated_of(compared))
    groups = grouped([*stated, *found_without_source(stated)])
    return {name: members for name, members in sorted(groups.items()) if name.startswith(_CURVES)}


def _by_profile(strict: dict[str, list[Compared]]) -> Iterator[tuple[str, list[Compared]]]:
    """Yield the rows of each kind, those of programs without a profile apart, with their titles."""
    for kind, items in strict.items():
        yield TITLES[kind], [item for item in items if item.predicted.has_profile]
        yield f"{TITLES[kind]}, programs without a profile", [item for item in items if not item.predicted.has_profile]


def _errors(title: str, items: list[Compared]) -> list[str]:
    worst = max((item.error for item in items), key=abs)
    near = sum(abs(item.error) <= FAR for item in items) / len(items)
    middle, bias = median(abs(item.error) for item in items), median(item.error for item in items)
    half = median(source_errors((item.row.family, item.error) for item in items))
    return [title, str(len(items)), f"{middle:.2%}", f"{half:.2%}", f"{near:.0%}", f"{worst:+.1%}", f"{bias:+.1%}"]


def _explained(reasons: list[str | None]) -> tuple[int, int]:
    known = sum(reason is not None for reason in reasons)
    return known, len(reasons) - known


def _confidence(name: str, rows: list[Stated]) -> list[str]:
    count = len(rows)
    inside = sum(row.stated.low <= row.measured <= row.stated.high for row in rows) / count
    score = mean(row.score for row in rows)
    true = (f"{came_true(rows, level):.0%}" for level in LEVELS)
    return [_title(name), str(count), f"{inside:.0%}", f"{score:.2f}", *true]


def _title(group: str) -> str:
    kind, _, rest = group.partition(", ")
    return f"{TITLES[kind]}, {rest}"


def strict_rows(compared: list[Compared]) -> Iterator[Missed]:
    """Yield the rows of the strictest set that a profile covers, as the aims ask for them."""
    for item in compared:
        if item.strict and item.predicted.has_profile:
            yield Missed(item.row.kind, item.row.family, item.row.id, item.error, reason_for(item.row.id) is not None)


def compare(kinds: Iterable[str]) -> tuple[list[Compared], list[tuple[Row, str]]]:
    """Return the rows of `kinds` with their predictions, and the rows that are not covered with the reason."""
    catalog, kinds = load_catalog(), set(kinds)
    compared, excluded = [], []
    rows = [row for row in map(Row.from_csv, truth()) if row.kind in kinds]
    operators = [row for row in rows if row.kind == OPERATOR]
    networks = (
        (row, (predict_tuned if row.kind in TUNED else predict)(row, catalog)) for row in rows if row.kind != OPERATOR
    )
    for row, answer in (*networks, *predict_kernels(operators, catalog.hardware)):
        if isinstance(answer, Excluded):
            excluded.append((row, answer.reason))
        else:
            compared.append(Compared(row, answer))
    return compared, excluded


def truth() -> list[dict[str, str]]:
    """Return the published measurements."""
    with TRUTH.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


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
                print_sources("its sources", chosen)
                for counter, items in by_counter(chosen).items():
                    print_sources(f"  {counter}", items)
        for source in sorted({item.row.family for item in of_kind}):
            print_line("", f"  {source}", [item for item in of_kind if item.row.family == source])
    print()


def print_line(kind: str, label: str, chosen: list[Compared]) -> None:
    """Print one line of the summary."""
    worst = max(chosen, key=lambda item: abs(item.error))
    near = sum(abs(item.error) <= FAR for item in chosen) / len(chosen)
    print(
        f"{kind:14} {label:24} {len(chosen):5} {median(abs(i.error) for i in chosen):8.2%} {near:7.0%} "
        f"{worst.error:+9.2%} {median(i.error for i in chosen):+8.2%}  {worst.row.id}"
    )


def by_counter(chosen: list[Compared]) -> dict[str, list[Compared]]:
    """Return the rows by the memory counter that was read, if there are several."""
    counters: dict[str, list[Compared]] = {}
    for item in chosen:
        counters.setdefault(counter_of(item.row.metric), []).append(item)
    return counters if len(counters) > 1 else {}


def print_sources(name: str, chosen: list[Compared]) -> None:
    """Print how far sources are off, each by the median of its rows: half of them, and on average."""
    errors = source_errors((item.row.family, item.error) for item in chosen)
    print(f"{'':14}   {name:22} {len(errors):5} {median(errors):8.2%}  on average {mean(errors):.2%}")


def print_misses(compared: list[Compared]) -> None:
    """Print the rows that are further off than the aim of their kind: explained ones by mechanism, then the others."""
    missed: dict[Mechanism | None, list[Compared]] = {}
    for item in compared:
        if abs(item.error) > limit_of(item.row.kind):
            missed.setdefault(mechanism_of(item.row.id), []).append(item)
    unknown = missed.pop(None, [])
    known = sum(map(len, missed.values()))
    print(f"beyond the aim: {known} rows explained, {len(unknown)} not, of {len(compared)}")
    for label, chosen in (("A, complete", [item for item in compared if item.strict]), ("all covered", compared)):
        far = [mechanism_of(item.row.id) for item in chosen if abs(item.error) > FAR]
        known, shown = sum(found is not None for found in far), sum(is_shown(found) for found in far)
        print(f"off by more than {FAR:.0%}, {label}: {len(far)}, {known} with a mechanism, which is shown for {shown}")
    for mechanism, items in [(mechanism, items) for mechanism, items in missed.items() if mechanism]:
        print(f"  {said(items)}\n      {mechanism.reason}\n      {_how_shown(mechanism)}")
    if unknown:
        print(f"  not explained: {said(unknown)}")
    print()


def is_shown(mechanism: Mechanism | None) -> bool:
    """Return whether a row has a mechanism that a run or a second source shows."""
    return mechanism is not None and mechanism.shown_by is not None


def _how_shown(mechanism: Mechanism) -> str:
    return f"shown by: {mechanism.shown_by}" if mechanism.shown_by else "supposed"


def said(items: list[Compared]) -> str:
    """Return the ids of `items` with their errors, as text."""
    return ", ".join(f"{item.row.id} {item.error:+.1%}" for item in sorted(items, key=lambda item: item.row.id))


def stated_of(compared: list[Compared]) -> Iterator[Stated]:
    """Yield the stated interval or chance of each uncertain row, by kind and counter; doubtful rows teach nothing."""
    for item in compared:
        if item.predicted.interval is not None and item.row.confidence != "C":
            group = f"{item.row.kind}, {counter_of(item.row.metric)}"
            measured = item.row.measured_gib * GIB
            source = item.row.family + (f" {item.row.model}" if item.row.family in _PAGES else "")
            yield Stated(group, source, item.predicted.interval, measured)
            if reason_for(item.row.id) is None:
                yield Stated(f"{group}, without known misses", source, item.predicted.interval, measured)


def print_coverage(compared: list[Compared], excluded: list[tuple[Row, str]]) -> None:
    """Print how many rows of confidence A with a complete configuration are covered, by kind and in all."""
    covered = Counter(item.row.kind for item in compared if item.strict)
    left_out = Counter(row.kind for row, _ in excluded if row.strict)
    print("covered, of the rows of confidence A with a complete configuration:")
    for kind in sorted({*covered, *left_out}):
        print(_covered_line(kind, covered[kind], left_out[kind]))
    print(_covered_line("all", covered.total(), left_out.total()), end="\n\n")


def _covered_line(name: str, covered: int, left_out: int) -> str:
    return f"  {name:16} {covered:4} of {covered + left_out:4} {covered / (covered + left_out):7.1%}"


def print_excluded(excluded: list[tuple[Row, str]]) -> None:
    """Print the number of rows that are not covered, by reason: of confidence A and complete, and in all."""
    strict = Counter(reason for row, reason in excluded if row.strict)
    print("not covered (A and complete, all):")
    for reason, count in sorted(Counter(reason for _, reason in excluded).items(), key=lambda one: -strict[one[0]]):
        print(f"  {strict[reason]:4} {count:4}  {reason}")


if __name__ == "__main__":
    sys.exit(main())
