"""`gpu-planner gpus --systems`: the machines that a query finds, with the accelerators in them."""

import argparse
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Final

from pydantic_core import to_json

from planner.cli.gpus.search import columns_of, query_of, selected
from planner.cli.table import column_table
from planner.hardware.query import used_words
from planner.hardware.system_fields import RENT, SYSTEM_WORDS, SystemQuery
from planner.hardware.vocabulary import Fits, Judged
from planner.plan.catalog import Catalog
from planner.plan.prices import rent_words, rents_by_system
from planner.present.catalog.records import SYSTEM_FIELDS, rent_fields, system_fields
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import SystemRow, system_rows
from planner.present.columns import Column, words
from planner.present.record_text import to_csv

if TYPE_CHECKING:
    from planner.plan.placement import SystemFit

_LISTED: Final = ("name", "accelerators", "memory", "bandwidth", "bf16", "power", "price", "year")
_LISTED_WHEN_JUDGED: Final = ("name", "fits", "accelerators", "memory", "bandwidth", "bf16", "power", "price")
COLUMN_OF: Final[Mapping[str, str]] = {
    **{word: word for word in SYSTEM_WORDS.fields},
    "chip": "accelerators",
    "memory_gib": "memory",
    "memory_each_gib": "memory_each",
    "bf16_dense": "bf16",
    "fp16_dense": "fp16",
    "preliminary": "certainty",
}
"""The column of each query word, shown if the list is filtered or sorted by the word."""
_ID: Final[Column[SystemRow]] = words("id", "Id", lambda row: row.id)
_SHARING: Final = "Checked with the plan's parallelism; without any, each accelerator holds the whole model."


def print_systems(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    """Print the systems that match the query, with the verdicts of a plan if one is given.

    Raises:
        PlannerError: If the query or the plan is invalid.
    """
    query = query_of(SystemQuery, arguments)
    used = used_words(query)
    rents = rents_by_system(catalog, today) if RENT in used or arguments.csv else None
    fits = _judged(arguments.fits, catalog) if arguments.fits else None
    every = system_rows(catalog.hardware, fits, catalog.software, rents)
    known = None if fits is None else _verdicts(every)
    rows = selected(every, query, known, None if rents is None else rent_words(rents))[: arguments.limit]
    if arguments.json:
        print(to_json([_record(row) for row in rows], indent=2).decode())
    elif arguments.csv:
        print(to_csv(SYSTEM_FIELDS, [system_fields(row) for row in rows]), end="")
    elif rows:
        usual = _LISTED if fits is None else _LISTED_WHEN_JUDGED
        shown = columns_of(SYSTEM_COLUMNS, usual, (COLUMN_OF[word] for word in used))
        flexible = [column.key for column in shown if column.align == "left"]
        note = "" if fits is None else f"\n{_SHARING}"
        print(f"{column_table([_ID, *shown], rows, flexible)}\n\n{len(rows):,} of {len(every):,} systems{note}")
    else:
        print(f"None of {len(every):,} systems matches.")
    return 0


def _judged(word: str, catalog: Catalog) -> "Mapping[str, SystemFit]":
    from planner.cli.named_plan import plan_about
    from planner.plan.placement import fits_by_system

    return fits_by_system(plan_about(word, catalog), catalog)


def _verdicts(rows: tuple[SystemRow, ...]) -> Fits:
    return {row.id: Judged(row.verdict) for row in rows}


def _record(row: SystemRow) -> dict[str, object]:
    """Return a system's record, with its rent if the query uses it, and with the plan's verdict if there is a plan."""
    record = row.system.model_dump(mode="json") | ({} if row.rented is None else rent_fields(row.on_demand))
    if row.fit is None:
        return record
    fit = row.fit.fit
    return {**record, "fit": None if fit is None else fit._asdict(), "fit_reason": row.reason}
