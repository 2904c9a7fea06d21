"""Four random audits of the catalog against sources that it was not made from.

    python benchmarks/catalog_audit.py draw --seed 20261128    # the figures that a seed draws
    python benchmarks/catalog_audit.py check    # what the independent sources say of them, from catalog_audit.csv

The draw is from the records as they are, so that a catalog that has grown draws other figures: `check` therefore reads
the records and fields from `catalog_audit.csv`, compares each with the catalog of today, and ends with 1 if a figure
differs without an explanation or is not the one that was audited. What a draw has in common with an earlier one is
left out of it, so that no figure is in two audits.
Empty `theirs`: no independent source was found; `was`: the figure that the audit found wrong. `public code` is a file
of a public repository, found by its words; a repository's name is followed by the commit that was read.
"""

import argparse
import csv
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from planner.paths import catalog_dir

SEEDS: Final = (20261123, 20261124, 20261125, 20261128)
TABLE: Final = Path(__file__).with_suffix(".csv")
_DRAWN: Final[Mapping[str, tuple[int, int, tuple[str, ...]]]] = {
    "gpus": (
        34,
        12,
        (
            "memory_bytes",
            "bandwidth_bytes_per_s",
            "board_power_watts",
            "boost_clock_hz",
            "shader_cores",
            "launch_price_usd",
            "released",
            "rates",
        ),
    ),
    "systems": (6, 2, ("gpu_count", "memory_bytes", "host_memory_bytes", "max_power_watts", "price_usd")),
    "models": (12, 4, ("parameters", "num_hidden_layers", "num_attention_heads", "hidden_size", "torch_dtype")),
    "energy": (4, 3, ("household_usd_per_kwh", "carbon_grams_per_kwh")),
    "offers": (4, 3, ("on_demand_price_usd_per_hour",)),
}
"""How many figures are drawn from each folder of the catalog, first and then further, and of which fields.

The further ones follow because not every one of the first 60 has an independent source."""
_ROUNDING: Final = 0.005
"""Largest relative difference that is still the same figure: sources print two to four digits."""


def figures(folder: str, fields: tuple[str, ...]) -> Iterator[tuple[str, str, Any]]:
    """Yield each figure in `folder` as its record's id, its field and its value; of rates, each by its format."""
    for path in sorted((catalog_dir() / folder).rglob("*.json")):
        records = json.loads(path.read_text(encoding="utf-8"))
        for record in records if isinstance(records, list) else ():
            stated = record.get("config", {}) | record
            for field in fields:
                if field == "rates":
                    for rate in record.get("rates", ()):
                        yield record["id"], f"{rate['dtype']} {rate['unit']}", rate["ops_per_s"]
                elif stated.get(field) is not None:
                    yield record["id"], field, stated[field]


def draw(seed: int) -> list[tuple[str, str, str, Any]]:
    """Return the figures that `seed` draws: folder, record, field and value; first 60, then further ones."""
    chance = random.Random(seed)
    return list(
        dict.fromkeys(
            (folder, *each)
            for turn in (0, 1)
            for folder, (*counts, fields) in _DRAWN.items()
            for each in chance.sample(list(figures(folder, fields)), counts[turn])
        )
    )


def verdict(row: Mapping[str, str], ours: object) -> str:
    """Return what the audit says of a row: agrees, mended, explained, differs, not found, or that ours has changed."""
    if str(ours) != row["ours"]:
        return "changed"
    if not row["theirs"]:
        return "not found"
    if _same(row["ours"], row["theirs"]):
        return "mended" if row["was"] else "agrees"
    return "explained" if row["note"] else "differs"


def _same(ours: str, theirs: str) -> bool:
    try:
        return abs(float(ours) - float(theirs)) <= _ROUNDING * abs(float(ours))
    except ValueError:
        return ours.startswith(theirs) or theirs.startswith(ours)


def main(words: list[str] | None = None) -> int:
    """Print the draw, or the audit with its counts; return 1 if a figure differs unexplained or has changed."""
    parser = argparse.ArgumentParser(description="Audit random figures of the catalog.")
    parser.add_argument("what", choices=("draw", "check"))
    parser.add_argument("--seed", type=int, default=SEEDS[-1])
    asked = parser.parse_args(words)
    if asked.what == "draw":
        for each in draw(asked.seed):
            print(*each, sep="\t")
        return 0
    today = {
        (folder, record, field): value
        for folder, (*_, fields) in _DRAWN.items()
        for record, field, value in figures(folder, fields)
    }
    counts: Counter[str] = Counter()
    with TABLE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            said = verdict(row, today.get((row["folder"], row["record"], row["field"])))
            counts[said] += 1
            print(f"{said:10} {row['record']}: {row['field']} {row['ours']} / {row['theirs']} {row['note']}")
    print(", ".join(f"{count} {said}" for said, count in counts.items()))
    return int(bool(counts["differs"] or counts["changed"]))


if __name__ == "__main__":
    sys.exit(main())
