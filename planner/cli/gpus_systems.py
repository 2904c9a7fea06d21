"""`gpu-planner gpus --systems`: machines as they are sold, with the accelerators in them."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic_core import to_json

from planner.cli.table import Head, table, terminal_width
from planner.plan.catalog import Catalog
from planner.present.flat_records import SYSTEM_FIELDS, system_fields
from planner.present.record_text import to_csv
from planner.present.systems import SYSTEM_COLUMNS, SystemRow, system_rows

if TYPE_CHECKING:
    from planner.plan.system_fits import SystemFit

_LISTED: Final = ("name", "accelerators", "memory", "bandwidth", "bf16", "power", "price", "year")
_LISTED_WHEN_JUDGED: Final = ("name", "fits", "accelerators", "memory", "bandwidth", "bf16", "power", "price")

_SHARING: Final = "Judged as the plan shares it; where it does not, each accelerator holds the whole model."


def print_systems(arguments: argparse.Namespace, catalog: Catalog) -> int:
    """Print the systems whose name, id, vendor or accelerator has every word.

    Raises:
        PlannerError: If they are to be judged by a model that is not known.
    """
    fits = _judged(arguments.fits, catalog) if arguments.fits else None
    words = " ".join(arguments.words).lower().split()
    every = system_rows(catalog.hardware, fits, catalog.software)
    rows = [row for row in every if all(word in row.search_text for word in words)][: arguments.limit]
    if arguments.json:
        print(to_json([_record(row) for row in rows], indent=2).decode())
    elif arguments.csv:
        print(to_csv(SYSTEM_FIELDS, [system_fields(row) for row in rows]), end="")
    elif rows:
        note = "" if fits is None else f"\n{_SHARING}"
        print(f"{_list(rows, judged=fits is not None)}\n\n{len(rows):,} of {len(every):,} systems{note}")
    else:
        print(f"No system of {len(every):,} matches.")
    return 0


def _judged(word: str, catalog: Catalog) -> "Mapping[str, SystemFit]":
    from planner.cli.subjects import plan_about
    from planner.plan.system_fits import fits_by_system

    return fits_by_system(plan_about(word, catalog), catalog)


def _record(row: SystemRow) -> dict[str, object]:
    record = row.system.model_dump(mode="json")
    if row.fit is None:
        return record
    fit = row.fit.fit
    return {**record, "fit": None if fit is None else fit._asdict(), "fit_reason": row.reason}


def _list(rows: list[SystemRow], *, judged: bool) -> str:
    by_key = {column.key: column for column in SYSTEM_COLUMNS}
    columns = [by_key[key] for key in (_LISTED_WHEN_JUDGED if judged else _LISTED)]
    heads = [Head("Id"), *(Head(each.title, each.align, each.align == "left", each.unit) for each in columns)]
    return table(heads, [[row.id, *(column.text(row) for column in columns)] for row in rows], terminal_width())
