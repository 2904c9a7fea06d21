"""Lists of `gpu-planner gpus` and `--systems`: the cards or systems that match a query, as a table, CSV or JSON."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pydantic_core import to_json

from planner.cli.table import column_table
from planner.cost.card_prices import CardPrices
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.hardware.gpu_fields import GPU_QUERY_FIELDS, PRICE_FIELDS
from planner.hardware.query import CatalogQuery, GpuQuery, select, used_fields
from planner.hardware.query_schema import AnyRecord, PlanOutcome, PlanOutcomes, Prices
from planner.hardware.system_fields import RENT_FIELD, SYSTEM_QUERY_SCHEMA, SystemQuery
from planner.memory.fit import CardFit
from planner.plan.catalog import Catalog
from planner.plan.prices import price_words, prices_by_card, rents_by_system, system_price_fields
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_row import GpuRow, gpu_rows
from planner.present.catalog.records import (
    GPU_FIELDS,
    SYSTEM_FIELDS,
    gpu_fields,
    price_fields,
    rent_fields,
    system_fields,
)
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import SystemRow, system_rows
from planner.present.columns import Column, Row, text_column
from planner.present.record_text import to_csv

if TYPE_CHECKING:
    from planner.plan.job_costs import CardJob
    from planner.plan.placement import SystemFit


AnyQuery = TypeVar("AnyQuery", bound=CatalogQuery)


def query_of(kind: type[AnyQuery], arguments: argparse.Namespace) -> AnyQuery:
    """Return the query of WORDS, --where and --sort.

    Raises:
        SpecError: If an expression or a field is invalid; it names the option.
    """
    try:
        return kind(text=" ".join(arguments.words), where=arguments.where or "", sort=tuple(arguments.sort))
    except SpecError as error:
        hint = error.hint or "See `gpu-planner gpus --help` for the fields and comparisons."
        raise SpecError(f"--{error.field}", error.reason, hint) from error


def selected(
    records: Iterable[AnyRecord], query: CatalogQuery, fits: PlanOutcomes | None, prices: Prices | None
) -> tuple[AnyRecord, ...]:
    """Return the `records` that match `query`, in its order.

    Raises:
        SpecError: If it uses a field that needs a plan, and there is none.
    """
    try:
        return select(records, query, fits, prices)
    except SpecError as error:
        hint = "Add --fits MODEL." if error.field in query.words.plan_fields else error.hint
        raise SpecError(error.field, error.reason, hint) from error


def columns_of(columns: Sequence[Column[Row]], usual: Sequence[str], asked: Iterable[str]) -> list[Column[Row]]:
    """Return the usual columns, followed by those that the list is filtered or sorted by (`asked`), by key."""
    by_key, wanted = {column.key: column for column in columns}, set(asked)
    return [by_key[key] for key in (*usual, *(key for key in by_key if key in wanted and key not in usual))]


_LISTED: Final = ("name", "year", "memory", "bandwidth", "bf16", "power", "price")
_LISTED_WITH_PLAN: Final = ("name", "fits", "job_time", "job_cost", "memory", "bandwidth", "power")
GPU_COLUMN_OF: Final[Mapping[str, str]] = {
    **{word: word for word in GPU_QUERY_FIELDS},
    "memory_gib": "memory",
    "bf16_dense": "bf16",
    "fp16_dense": "fp16",
    "fp8_dense": "fp8",
    "int8_dense": "int8",
    "hours": "job_time",
    "nvlink": "interconnect",
    "laptop": "part",
    "preliminary": "certainty",
}
"""The column of each query word, shown if the list is filtered or sorted by the word."""


class _PlanVerdicts(NamedTuple):
    """Verdicts of a plan, and time and cost of its job, by card id."""

    fits: Mapping[str, CardFit]
    jobs: "Mapping[str, CardJob]"

    def by_id(self) -> PlanOutcomes:
        """Return the values that queries read, by card id."""
        return {
            gpu_id: PlanOutcome(fit.verdict, job.hours, job.usd, job.usd_per_million_tokens)
            if job
            else PlanOutcome(fit.verdict)
            for gpu_id, fit in self.fits.items()
            for job in (self.jobs.get(gpu_id),)
        }


def print_list(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    """Print the cards that match the query, with the verdicts of a plan if one is given.

    Raises:
        PlannerError: If the query or the plan is invalid.
    """
    query = query_of(GpuQuery, arguments)
    priced = used_fields(query) & PRICE_FIELDS.keys()
    prices = prices_by_card(catalog, today) if priced or arguments.csv else None
    judged = _plan_verdicts(arguments.fits, catalog, today) if arguments.fits else None
    fits, price_figures = None if judged is None else judged.by_id(), None if prices is None else price_words(prices)
    gpus = selected(catalog.hardware.gpus, query, fits, price_figures)[: arguments.limit]
    if arguments.json:
        print(to_json([_record(gpu, judged, prices) for gpu in gpus], indent=2).decode())
        return 0
    by_id = {row.id: row for row in _rows(catalog, judged, prices)}
    rows = [by_id[gpu.id] for gpu in gpus]
    everything = len(catalog.hardware.gpus)
    if arguments.csv:
        print(to_csv(GPU_FIELDS, [gpu_fields(row) for row in rows]), end="")
    elif rows:
        usual = _LISTED_WITH_PLAN if judged else _LISTED
        shown = columns_of(GPU_COLUMNS, usual, (GPU_COLUMN_OF[word] for word in used_fields(query)))
        print(f"{column_table(shown, rows, ('name',))}\n\n{len(rows):,} of {everything:,} accelerators")
    else:
        print(f"None of {everything:,} accelerators matches.")
    return 0


def _plan_verdicts(word: str, catalog: Catalog, today: date) -> _PlanVerdicts:
    from planner.cli.named_plan import plan_about
    from planner.plan.evaluate import fits_by_gpu
    from planner.plan.job_costs import job_by_gpu

    plan = plan_about(word, catalog)
    return _PlanVerdicts(fits_by_gpu(plan, catalog), job_by_gpu(plan, catalog, today) or {})


def _rows(
    catalog: Catalog, judged: _PlanVerdicts | None, prices: Mapping[str, CardPrices] | None
) -> tuple[GpuRow, ...]:
    if judged is None:
        return gpu_rows(catalog.hardware, prices=prices, software=catalog.software)
    from planner.present.catalog.job_summary import job_summaries

    return gpu_rows(catalog.hardware, judged.fits, job_summaries(judged.jobs), prices, catalog.software)


def _record(gpu: Gpu, judged: _PlanVerdicts | None, prices: Mapping[str, CardPrices] | None) -> dict[str, object]:
    """Return a card's record, with its prices if the query uses one, and with the plan's verdict and job."""
    record = gpu.model_dump(mode="json") | ({} if prices is None else price_fields(prices[gpu.id]))
    if judged is None:
        return record
    job = judged.jobs.get(gpu.id)
    told = None if job is None else {**job._asdict(), "usd": job.usd}
    return {**record, "fit": judged.fits[gpu.id]._asdict(), "job": told}


_SYSTEMS_LISTED: Final = ("name", "accelerators", "memory", "bandwidth", "bf16", "power", "price", "year")
_SYSTEMS_LISTED_WITH_PLAN: Final = ("name", "fits", "accelerators", "memory", "bandwidth", "bf16", "power", "price")
SYSTEM_COLUMN_OF: Final[Mapping[str, str]] = {
    **{word: word for word in SYSTEM_QUERY_SCHEMA.fields},
    "chip": "accelerators",
    "memory_gib": "memory",
    "memory_each_gib": "memory_each",
    "bf16_dense": "bf16",
    "fp16_dense": "fp16",
    "preliminary": "certainty",
}
"""The column of each query word, shown if the list is filtered or sorted by the word."""
_ID: Final[Column[SystemRow]] = text_column("id", "Id", lambda row: row.id)
_SHARING: Final = "Checked with the plan's parallelism; without any, its software decides how to share the model."


def print_systems(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    """Print the systems that match the query, with the verdicts of a plan if one is given.

    Raises:
        PlannerError: If the query or the plan is invalid.
    """
    query = query_of(SystemQuery, arguments)
    used = used_fields(query)
    rents = rents_by_system(catalog, today) if RENT_FIELD in used or arguments.csv else None
    fits = _system_fits(arguments.fits, catalog) if arguments.fits else None
    every = system_rows(catalog.hardware, fits, catalog.software, rents)
    known = None if fits is None else _verdicts(every)
    rows = selected(every, query, known, None if rents is None else system_price_fields(rents))[: arguments.limit]
    if arguments.json:
        print(to_json([_system_record(row) for row in rows], indent=2).decode())
    elif arguments.csv:
        print(to_csv(SYSTEM_FIELDS, [system_fields(row) for row in rows]), end="")
    elif rows:
        usual = _SYSTEMS_LISTED if fits is None else _SYSTEMS_LISTED_WITH_PLAN
        shown = columns_of(SYSTEM_COLUMNS, usual, (SYSTEM_COLUMN_OF[word] for word in used))
        flexible = [column.key for column in shown if column.align == "left"]
        note = "" if fits is None else f"\n{_SHARING}"
        print(f"{column_table([_ID, *shown], rows, flexible)}\n\n{len(rows):,} of {len(every):,} systems{note}")
    else:
        print(f"None of {len(every):,} systems matches.")
    return 0


def _system_fits(word: str, catalog: Catalog) -> "Mapping[str, SystemFit]":
    from planner.cli.named_plan import plan_about
    from planner.plan.placement import fits_by_system

    return fits_by_system(plan_about(word, catalog), catalog)


def _verdicts(rows: tuple[SystemRow, ...]) -> PlanOutcomes:
    return {row.id: PlanOutcome(row.verdict) for row in rows}


def _system_record(row: SystemRow) -> dict[str, object]:
    """Return a system's record, with its rent if the query uses it, and with the plan's verdict if there is a plan."""
    record = row.system.model_dump(mode="json") | ({} if row.rented is None else rent_fields(row.on_demand))
    if row.fit is None:
        return record
    fit = row.fit.fit
    return {**record, "fit": None if fit is None else fit._asdict(), "fit_reason": row.reason}
