"""`gpu-planner gpus --compare`: cards, several of one, and systems side by side, as the window sets them."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from pydantic_core import to_json

from planner.cli.cards import named_cards, named_system
from planner.cli.table import Head, table, terminal_width
from planner.cost.market import CardPrices
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.plan.catalog import Catalog
from planner.present.gpus import GpuRow
from planner.present.record_text import rows_to_csv
from planner.present.side_by_side import MOST, ComparedRow, Entry, comparison_rows, side_by_side
from planner.present.systems import SystemRow

_BEST: Final = " *"


def print_comparison(arguments: argparse.Namespace, catalog: Catalog, prices: Mapping[str, CardPrices]) -> int:
    """Print what is named side by side; the best of a figure has a star.

    Raises:
        PlannerError: If a name means nothing or several things, or there are too many.
    """
    if len(arguments.compare) > MOST:
        raise SpecError("--compare", f"{len(arguments.compare)} are too many", f"At most {MOST} stand side by side.")
    entries = [_entry(name, catalog, prices) for name in arguments.compare]
    rows = side_by_side(entries, {})
    if arguments.json:
        print(to_json([_record(entry) for entry in entries], indent=2).decode())
    elif arguments.csv:
        print(rows_to_csv(comparison_rows(entries, rows)), end="")
    else:
        heads = [Head(""), *(Head(entry.title, "right", flexible=True) for entry in entries)]
        print(f"{table(heads, list(_lines(entries, rows)), terminal_width())}\n\n* best of the row")
    return 0


def _record(entry: Entry) -> dict[str, object] | None:
    if entry.system is not None:
        return entry.system.system.model_dump(mode="json")
    return None if entry.row is None else entry.row.gpu.model_dump(mode="json")


def _lines(entries: Sequence[Entry], rows: Sequence[ComparedRow]) -> Iterator[tuple[str, ...]]:
    for group, figures in groupby(rows, key=lambda row: row.group):
        yield (group, *("" for _ in entries))
        for row in figures:
            yield (f"  {row.title}", *(f"{cell.text}{_BEST}" if cell.is_best else cell.text for cell in row.cells))


def _entry(name: str, catalog: Catalog, prices: Mapping[str, CardPrices]) -> Entry:
    system = named_system(name, catalog.hardware)
    if system is None:
        (cards,) = named_cards([name], catalog)
        gpu = catalog.hardware.gpu(cards.id)
        return Entry(name, gpu.name, cards.count, _row(gpu, catalog, prices))
    gpu_of = catalog.hardware.gpu(system.gpu_id) if system.gpu_id else None
    row = None if gpu_of is None else _row(gpu_of, catalog, prices)
    return Entry(name, system.name, system.gpu_count or 1, row, SystemRow(system, gpu_of))


def _row(gpu: Gpu, catalog: Catalog, prices: Mapping[str, CardPrices]) -> GpuRow:
    return GpuRow(gpu, usable=catalog.hardware.usable_memory(gpu), prices=prices.get(gpu.id))
