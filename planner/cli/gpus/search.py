"""Lists of `gpu-planner gpus` and `--systems`: the cards or systems that match a query, as a table, CSV or JSON."""

import argparse
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pydantic_core import to_json

from planner.cli.table import ProgressLine, column_table
from planner.cost.card_prices import CardPrices
from planner.cost.figure import Figure
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.hardware.kinds import describe_kinds
from planner.hardware.names import hardware_family
from planner.hardware.query import CatalogQuery, GpuQuery, SystemQuery, select, used_fields
from planner.hardware.query_fields import GPU_QUERY_FIELDS, PRICE_FIELDS, RENT_FIELD, SYSTEM_QUERY_SCHEMA
from planner.hardware.query_schema import AnyRecord, PlanOutcome, PlanOutcomes, Prices
from planner.hardware.system import System
from planner.memory.fit import CardFit
from planner.plan.catalog import Catalog
from planner.plan.cost import CardJob, job_by_gpu
from planner.plan.evaluate import fits_by_gpu
from planner.plan.plan import Plan
from planner.plan.prices import buying_prices, price_words, prices_by_card, rents_by_system, system_price_fields
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import BUYING_COLUMN, GPU_COLUMNS, buying_phrase
from planner.present.catalog.gpu_row import GpuRow, gpu_rows, job_summaries
from planner.present.catalog.records import (
    GPU_FIELDS,
    SYSTEM_FIELDS,
    gpu_fields,
    price_fields,
    rent_fields,
    system_fields,
)
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import SystemRow, system_rows, system_rows_without_plan
from planner.present.columns import Column, Row, text_column, to_csv

if TYPE_CHECKING:
    from planner.plan.placement import SystemFit


AnyQuery = TypeVar("AnyQuery", bound=CatalogQuery)


def query_from_arguments(kind: type[AnyQuery], arguments: argparse.Namespace) -> AnyQuery:
    """Return the catalog query that WORDS, --where, --price-under and --sort describe.

    --price-under lists the cheapest first, and of a plan only what holds it.

    Raises:
        SpecError: If an expression or a field is invalid; the error names the option.
    """
    where, sort = arguments.where or "", tuple(arguments.sort)
    if arguments.price_under is not None:
        holds = ['fits in ("fits", "tight")'] if arguments.fits else []
        where = " and ".join((*holds, f"price < {arguments.price_under!r}", *([f"({where})"] if where.strip() else [])))
        sort = sort or ("price",)
    try:
        return kind(text=" ".join(arguments.words), where=where, sort=sort)
    except SpecError as error:
        hint = error.hint or "See `gpu-planner gpus --help` for the fields and comparisons."
        raise SpecError(f"--{error.field}", error.reason, hint) from error


def matching_records(
    records: Iterable[AnyRecord], query: CatalogQuery, fits: PlanOutcomes | None, prices: Prices | None
) -> tuple[AnyRecord, ...]:
    """Return the `records` that match `query`, in the order that `query` requests.

    Raises:
        SpecError: If `query` uses a field that needs a plan, and there is no plan.
    """
    try:
        return select(records, query, fits, prices)
    except SpecError as error:
        hint = "Add --fits MODEL." if error.field in query.words.plan_fields else error.hint
        raise SpecError(error.field, error.reason, hint) from error


def list_columns(
    columns: Sequence[Column[Row]], default_keys: Sequence[str], requested_keys: Iterable[str]
) -> list[Column[Row]]:
    """Return the default columns, then the columns (`requested_keys`) by which the list is filtered or sorted."""
    by_key, requested = {column.key: column for column in columns}, set(requested_keys)
    return [
        by_key[key] for key in (*default_keys, *(key for key in by_key if key in requested and key not in default_keys))
    ]


def _fitted_table(columns: Sequence[Column[Row]], rows: Sequence[Row], requested: Collection[str] = ()) -> str:
    """Return a table that leaves out what a narrow terminal has no room for and was not requested."""
    return column_table(columns, rows, dispensable=[key for key in ("year", "power") if key not in requested])


_DEFAULT_COLUMNS: Final = ("name", "year", "memory", "bandwidth", "bf16", "power", "price")
_DEFAULT_COLUMNS_WITH_PLAN: Final = ("name", "fits", "job_time", "job_cost", "memory", "bandwidth", "power", "buy")
_PRICE_COLUMN: Final = replace(
    BUYING_COLUMN, text=lambda row: fmt.UNKNOWN if row.buying is None else buying_phrase(row.buying, row.gpu)
)
_PRICE_NOTE: Final = "Price: what sellers asked for one GPU, with the year; at launch: the list price of that year."
_HOLDING_HINT: Final = "Those that hold it, the cheapest first: --where 'fits == \"fits\"' --sort price"
_MEMORY_SIZE: Final = re.compile(r"(\d{1,4})\s?g(?:i?b)?", re.IGNORECASE)
_LIST_COLUMNS: Final = tuple(_PRICE_COLUMN if column.key == "buy" else column for column in GPU_COLUMNS)
GPU_COLUMN_OF: Final[Mapping[str, str]] = {
    **{word: word for word in GPU_QUERY_FIELDS},
    "memory_gib": "memory",
    "bf16_dense": "bf16",
    "fp16_dense": "fp16",
    "fp8_dense": "fp8",
    "int8_dense": "int8",
    "price": "buy",
    "launch_price": "price",
    "hours": "job_time",
    "nvlink": "interconnect",
    "laptop": "part",
    "preliminary": "certainty",
}
"""Column key of each query field; the column is shown if the list is filtered or sorted by the field."""


class _KnownPrices(NamedTuple):
    """Prices of each card by kind, and what one card costs, by card id."""

    by_kind: Mapping[str, CardPrices]
    buying: Mapping[str, Figure]


class _PlanVerdicts(NamedTuple):
    """Verdicts of a plan on each card, and time and cost of the plan's job, by card id."""

    fits: Mapping[str, CardFit]
    jobs: Mapping[str, CardJob]

    def outcomes_by_id(self) -> PlanOutcomes:
        """Return the outcome of the plan that queries filter and sort by, by card id."""
        return {
            gpu_id: PlanOutcome(fit.verdict, job.hours, job.usd, job.usd_per_million_tokens)
            if job
            else PlanOutcome(fit.verdict)
            for gpu_id, fit in self.fits.items()
            for job in (self.jobs.get(gpu_id),)
        }


def print_list(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    """Print the cards that match the query, with the verdicts of the plan of `--fits` if given.

    Raises:
        PlannerError: If the query or the plan is invalid.
    """
    query = query_from_arguments(GpuQuery, arguments)
    priced = arguments.fits or arguments.csv or used_fields(query) & {"price", *PRICE_FIELDS}
    prices = _KnownPrices(prices_by_card(catalog, today), buying_prices(catalog, today)) if priced else None
    plan_verdicts = _plan_verdicts(arguments, catalog, today) if arguments.fits else None
    fits, price_figures = (
        None if plan_verdicts is None else plan_verdicts.outcomes_by_id(),
        None if prices is None else price_words(*prices),
    )
    gpus = matching_records(catalog.hardware.gpus, query, fits, price_figures)[: arguments.limit]
    if arguments.json:
        print(to_json([_card_record(gpu, plan_verdicts, prices) for gpu in gpus], indent=2).decode())
        return 0
    outcomes_by_id = {row.id: row for row in _card_rows(catalog, plan_verdicts, prices)}
    rows = [outcomes_by_id[gpu.id] for gpu in gpus]
    total = len(catalog.hardware.gpus)
    if arguments.csv:
        print(to_csv(GPU_FIELDS, [gpu_fields(row) for row in rows]), end="")
    elif rows:
        plain_keys = tuple("buy" if priced and key == "price" else key for key in _DEFAULT_COLUMNS)
        default_keys = _DEFAULT_COLUMNS_WITH_PLAN if plan_verdicts else plain_keys
        used = {GPU_COLUMN_OF[word] for word in used_fields(query)}
        shown = list_columns(_LIST_COLUMNS, default_keys, used)
        print(f"{_fitted_table(shown, rows, used)}\n\n{len(rows):,} of {total:,} accelerators")
        if plan_verdicts is not None and any(row.verdict == "does-not-fit" for row in rows):
            print(_HOLDING_HINT)
        if _PRICE_COLUMN in shown:
            print(_PRICE_NOTE)
        if about := describe_kinds(query.text):
            print(about)
        if size := next(filter(None, map(_MEMORY_SIZE.fullmatch, arguments.words)), None):
            print(f"These have {size[0]} in their names; all of this size: --where 'memory_gib == {size[1]}'")
    else:
        print(f"None of {total:,} accelerators matches. {_empty_list_hint(arguments.words, query, catalog)}".rstrip())
    return 0


def _empty_list_hint(words: Sequence[str], query: GpuQuery, catalog: Catalog) -> str:
    """Return what else `words` that no name holds may mean: cards to compare, a bound, or other hardware."""
    names = [word for word in words if hardware_family(catalog.hardware, word)]
    if len(names) > 1:
        return f"GPUs are compared by: gpu-planner gpus --compare {shlex.join(names)}"
    from planner.cli.command_guess import suggested_command

    text = " ".join(words)
    about = describe_kinds(text)
    if "--" in (meant := suggested_command(words, catalog)):
        return f"Did you mean: {meant}\n{about}"
    if "price <" in query.where:
        return "Prices are of new GPUs; used ones are found by --where 'used < 700', rents by --where 'rent < 1'."
    if any(map(str.isdigit, words)) and not names:
        return "Bounds are given by options: --price-under 700, --where 'memory_gib >= 24'."
    return about


def family_text(name: str, family: Iterable[Gpu | System], catalog: Catalog) -> str:
    """Return the accelerators and the systems that share `name` as tables with the id of each."""
    members = tuple(family)
    cards = [GpuRow(each, usable=None) for each in members if isinstance(each, Gpu)]
    systems = system_rows_without_plan(
        [each for each in members if isinstance(each, System)], catalog.hardware, catalog.software
    )
    tables = [f"{name} is the name of {len(members)} records; `gpu-planner gpus --show ID` shows one:"]
    if cards:
        id_column: Column[GpuRow] = text_column("id", "Id", lambda row: row.id)
        tables.append(_fitted_table([id_column, *list_columns(GPU_COLUMNS, _DEFAULT_COLUMNS, ())], cards))
    if systems:
        shown = [_ID_COLUMN, *list_columns(SYSTEM_COLUMNS, _DEFAULT_SYSTEM_COLUMNS, ())]
        tables.append(_fitted_table(shown, systems))
    return "\n\n".join(tables)


def plan_of_fits(arguments: argparse.Namespace, catalog: Catalog) -> Plan:
    """Return the plan that `--fits` names, changed by the workload options given with it.

    Raises:
        PlannerError: If there is no such plan or model, or an option is not allowed; the error names the option.
    """
    from planner.cli.plan_arguments import changed_workload
    from planner.plan.files import named_plan

    plan = named_plan(arguments.fits, catalog)
    return plan.evolve(workload=changed_workload(arguments, plan))


def _plan_verdicts(arguments: argparse.Namespace, catalog: Catalog, today: date) -> _PlanVerdicts:
    plan = plan_of_fits(arguments, catalog)
    with ProgressLine(sys.stderr) as line:
        line.show(f"Checking {len(catalog.hardware.gpus):,} accelerators")
        fits = fits_by_gpu(plan, catalog)
        line.show(f"Time and cost on {sum(fit.likely for fit in fits.values()):,} accelerators that may hold it")
        return _PlanVerdicts(fits, job_by_gpu(plan, catalog, today) or {})


def _card_rows(
    catalog: Catalog, plan_verdicts: _PlanVerdicts | None, prices: _KnownPrices | None
) -> tuple[GpuRow, ...]:
    by_kind, buying = (None, None) if prices is None else prices
    if plan_verdicts is None:
        return gpu_rows(catalog.hardware, prices=by_kind, software=catalog.software, buying=buying)
    jobs = job_summaries(plan_verdicts.jobs)
    return gpu_rows(catalog.hardware, plan_verdicts.fits, jobs, by_kind, catalog.software, buying)


def _card_record(gpu: Gpu, plan_verdicts: _PlanVerdicts | None, prices: _KnownPrices | None) -> dict[str, object]:
    """Return a card's JSON record, with prices if the query uses a price, and with the plan's verdict and job."""
    record = gpu.model_dump(mode="json")
    if prices is not None:
        record |= price_fields(prices.by_kind[gpu.id]) | _buying_fields(prices.buying.get(gpu.id))
    if plan_verdicts is None:
        return record
    job = plan_verdicts.jobs.get(gpu.id)
    job_record = None if job is None else {**job._asdict(), "usd": job.usd}
    return {**record, "fit": plan_verdicts.fits[gpu.id]._asdict(), "job": job_record}


def _buying_fields(price: Figure | None) -> dict[str, object]:
    """Return what one card costs, with its source; a price at launch says so there."""
    return {
        "price_usd": None if price is None else price.value,
        "price_source": None if price is None else f"{price.source}{f', {price.date}' if price.date else ''}",
    }


_DEFAULT_SYSTEM_COLUMNS: Final = ("name", "accelerators", "memory", "bandwidth", "bf16", "power", "price", "year")
_DEFAULT_SYSTEM_COLUMNS_WITH_PLAN: Final = (
    "name",
    "fits",
    "accelerators",
    "memory",
    "bandwidth",
    "bf16",
    "power",
    "price",
)
SYSTEM_COLUMN_OF: Final[Mapping[str, str]] = {
    **{word: word for word in SYSTEM_QUERY_SCHEMA.fields},
    "chip": "accelerators",
    "memory_gib": "memory",
    "memory_each_gib": "memory_each",
    "bf16_dense": "bf16",
    "fp16_dense": "fp16",
    "preliminary": "certainty",
}
"""Column key of each query field; the column is shown if the list is filtered or sorted by the field."""
_ID_COLUMN: Final[Column[SystemRow]] = text_column("id", "Id", lambda row: row.id)
_SHARING_NOTE: Final = "Checked with the plan's parallelism; without any, its software decides how to share the model."


def print_systems(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    """Print the systems that match the query, with the verdicts of the plan of `--fits` if given.

    Raises:
        PlannerError: If the query or the plan is invalid.
    """
    query = query_from_arguments(SystemQuery, arguments)
    used = used_fields(query)
    rents = rents_by_system(catalog, today) if RENT_FIELD in used or arguments.csv else None
    fits = _system_fits(arguments, catalog) if arguments.fits else None
    all_rows = system_rows(catalog.hardware, fits, catalog.software, rents)
    outcomes = None if fits is None else {row.id: PlanOutcome(row.verdict) for row in all_rows}
    rows = matching_records(all_rows, query, outcomes, None if rents is None else system_price_fields(rents))[
        : arguments.limit
    ]
    if arguments.json:
        print(to_json([_system_record(row) for row in rows], indent=2).decode())
    elif arguments.csv:
        print(to_csv(SYSTEM_FIELDS, [system_fields(row) for row in rows]), end="")
    elif rows:
        default_keys = _DEFAULT_SYSTEM_COLUMNS if fits is None else _DEFAULT_SYSTEM_COLUMNS_WITH_PLAN
        requested = {SYSTEM_COLUMN_OF[word] for word in used}
        shown = [_ID_COLUMN, *list_columns(SYSTEM_COLUMNS, default_keys, requested)]
        note = "" if fits is None else f"\n{_SHARING_NOTE}"
        print(f"{_fitted_table(shown, rows, requested)}\n\n{len(rows):,} of {len(all_rows):,} systems{note}")
    else:
        print(f"None of {len(all_rows):,} systems matches.")
    return 0


def _system_fits(arguments: argparse.Namespace, catalog: Catalog) -> "Mapping[str, SystemFit]":
    from planner.plan.placement import fits_by_system

    with ProgressLine(sys.stderr) as line:
        line.show(f"Checking {len(catalog.hardware.systems):,} systems")
        return fits_by_system(plan_of_fits(arguments, catalog), catalog)


def _system_record(row: SystemRow) -> dict[str, object]:
    """Return a system's JSON record, with the rent if the query uses the rent, and with the verdict of a plan."""
    record = row.system.model_dump(mode="json") | ({} if row.rented is None else rent_fields(row.on_demand))
    if row.fit is None:
        return record
    fit = row.fit.fit
    return {**record, "fit": None if fit is None else fit._asdict(), "fit_reason": row.reason}
