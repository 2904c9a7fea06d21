"""`gpu-planner gpus --systems`: machines as they are sold, with the accelerators in them."""

import argparse

from pydantic_core import to_json

from planner.cli.table import Head, table, terminal_width
from planner.hardware.catalog import HardwareCatalog
from planner.present.flat_records import system_fields
from planner.present.record_text import to_csv
from planner.present.systems import SYSTEM_COLUMNS, system_rows


def print_systems(arguments: argparse.Namespace, hardware: HardwareCatalog) -> int:
    """Print the systems whose name, id, vendor or accelerator has every word."""
    words = " ".join(arguments.words).lower().split()
    rows = [row for row in system_rows(hardware) if all(word in row.search_text for word in words)][: arguments.limit]
    if arguments.json:
        print(to_json([row.system.model_dump(mode="json") for row in rows], indent=2).decode())
    elif arguments.csv:
        print(to_csv([system_fields(row) for row in rows]), end="")
    elif rows:
        columns = [column for column in SYSTEM_COLUMNS if column.shown]
        heads = [Head("Id"), *(Head(each.title, each.align, each.align == "left", each.unit) for each in columns)]
        cells = [[row.id, *(column.text(row) for column in columns)] for row in rows]
        print(f"{table(heads, cells, terminal_width())}\n\n{len(rows):,} of {len(hardware.systems):,} systems")
    else:
        print(f"No system of {len(hardware.systems):,} matches.")
    return 0
