"""`gpu-planner gpus`: search, compare and show accelerators and systems; builds, own cards, those of this machine."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic_core import to_json

from planner.cli.gpus_build import add_build_options, print_build
from planner.cli.gpus_own import add_own_options, run_own, wants_own
from planner.cli.gpus_together import check_together
from planner.cli.parser import Parser
from planner.cli.people import persons_catalog
from planner.cli.table import Head, table, terminal_width
from planner.cost.market import CardPrices
from planner.errors import SpecError
from planner.hardware.catalog import load_hardware
from planner.hardware.derived import DERIVED_FIGURES
from planner.hardware.fields import JUDGED_FIELDS, PRICE_WORDS, Fits, Judged
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.hardware.query import QUERY_FIELDS, GpuQuery, select, used_words
from planner.memory.fit import CardFit
from planner.paths import catalog_dir, own_hardware_file
from planner.plan.catalog import Catalog
from planner.plan.prices import price_words, prices_by_card
from planner.present.columns import Column
from planner.present.flat_records import gpu_fields
from planner.present.gpus import GPU_COLUMNS, GpuRow, gpu_rows
from planner.present.record_text import to_csv

if TYPE_CHECKING:
    from planner.plan.job_costs import CardJob

_LISTED: Final = ("name", "year", "memory", "bandwidth", "bf16", "power", "price")
_LISTED_WHEN_JUDGED: Final = ("name", "fits", "job_time", "job_cost", "memory", "bandwidth", "power")
_SHOWN_WHEN_ASKED: Final = frozenset((*PRICE_WORDS, *DERIVED_FIGURES))
"""Words that have a column of their own in the list where it is filtered or sorted by them."""


class _Judgement(NamedTuple):
    """What a plan comes to on each card: whether it fits, and what its job takes and costs, by the card's id."""

    fits: Mapping[str, CardFit]
    jobs: "Mapping[str, CardJob]"

    def by_id(self) -> Fits:
        """Return it as queries read it."""
        return {
            gpu_id: Judged(fit.verdict, job.hours if job else None, job.usd if job else None)
            for gpu_id, fit in self.fits.items()
            for job in (self.jobs.get(gpu_id),)
        }


_DESCRIPTION: Final = """\
List accelerators, compare some, or show one with the source of every figure. Rates are dense, never sparse;
GiB is 2^30 bytes, GB is 10^9. What is not known is said to be unknown, and sorts last."""

_EXAMPLES: Final = """\
examples:
  gpu-planner gpus rtx 40
  gpu-planner gpus --where 'memory_gib >= 80 and vendor == "NVIDIA"' --sort -bandwidth
  gpu-planner gpus --where 'memory_gib >= 24 and used < 1000' --sort usd_per_gib
  gpu-planner gpus --fits meta-llama/Llama-3.1-70B --where 'fits == "fits"' --sort price
  gpu-planner gpus --fits plan.json --where 'hours < 24' --sort job_cost
  gpu-planner gpus --compare "RTX 4090" "2 x RTX 3090" dgx-a100-640gb
  gpu-planner gpus --compare dgx-a100-640gb "8 x H100 SXM" --fits plan.json
  gpu-planner gpus --show mi300x
  gpu-planner gpus --systems dgx
  gpu-planner gpus --build "2 x RTX 5090" --circuit 120V-15A
  gpu-planner gpus --change "RTX 3090" --paid 720 --power-limit 250
  gpu-planner gpus --here

fields for --where and --sort:
{fields}

--where joins comparisons (== != < <= > >= ~ in) with and, or, not and brackets; ~ looks for text within text."""


def run(argv: list[str], today: date | None = None) -> int:
    """Print what was asked, prices as of `today`, by default the day that it is, and return the exit code."""
    arguments = _parser().parse_args(_with_descending(argv))
    check_together(arguments)
    day = today or datetime.now(UTC).date()
    if wants_own(arguments):
        return run_own(arguments, load_hardware(catalog_dir()), own_hardware_file(), day)
    catalog = persons_catalog()
    return _about(arguments, catalog, day)


def _about(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    """Print the one card, the system, the build or the machine that is asked about, or else a list."""
    if arguments.here:
        from planner.cli.gpus_here import print_here  # starts the sampler

        return print_here(catalog.hardware, as_json=arguments.json)
    if arguments.build:
        return print_build(arguments, catalog)
    if arguments.systems:
        from planner.cli.gpus_systems import print_systems

        return print_systems(arguments, catalog.hardware)
    if arguments.show:
        from planner.cli.gpus_show import show

        return show(resolve_gpu(catalog.hardware, arguments.show), catalog, today, as_json=arguments.json)
    if arguments.compare:
        from planner.cli.gpus_compare import print_comparison

        return print_comparison(arguments, catalog, prices_by_card(catalog, today), today)
    return _print_list(arguments, catalog, today)


def _parser() -> Parser:
    width = max(map(len, QUERY_FIELDS))
    fields = [f"  {field.name:<{width}}  {field.unit:<10}  {field.help}" for field in QUERY_FIELDS.values()]
    parser = Parser("gpu-planner gpus", _DESCRIPTION, _EXAMPLES.format(fields="\n".join(fields)))
    choice = parser.add_argument_group("which ones")
    choice.add_argument("words", metavar="WORDS", nargs="*", help="words that name, maker or architecture contain")
    choice.add_argument("--where", metavar="EXPR", help="an expression over the fields below")
    choice.add_argument("--fits", metavar="MODEL", help="judge each card by this model (batch 1) or by a PLAN.json")
    choice.add_argument("--limit", metavar="N", type=_positive, help="print at most N")
    ordered = "a field below, with - before it descending; repeatable"
    choice.add_argument("--sort", metavar="FIELD", action="append", default=[], help=ordered)
    choice.add_argument("--csv", action="store_true", help="print a table for other programs, with sources")
    other = parser.add_argument_group("instead of a list")
    other.add_argument(
        "--compare", metavar="GPU", nargs="+", help="set cards or systems side by side, with the plan of --fits on each"
    )
    other.add_argument(
        "--show", metavar="GPU", help="show one: figures with sources, prices, software, measured speeds"
    )
    other.add_argument("--systems", action="store_true", help="list machines: DGX, HGX, NVL72, TPU slices")
    other.add_argument("--here", action="store_true", help="the cards of this machine, matched to the catalog")
    add_build_options(parser.add_argument_group("power and cooling"))
    add_own_options(parser.add_argument_group("cards of your own"))
    parser.add_general()
    return parser


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _with_descending(argv: list[str]) -> list[str]:
    """Join `--sort -price`, which argparse would take for two options."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] == "--sort" and word.startswith("-"):
            joined[-1] = f"--sort={word}"
        else:
            joined.append(word)
    return joined


def _print_list(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    query = _query(arguments)
    priced = used_words(query) & PRICE_WORDS.keys()
    prices = prices_by_card(catalog, today) if priced else None
    judged = _judged(arguments.fits, catalog, today) if arguments.fits else None
    gpus = _selected(query, catalog, judged, prices)[: arguments.limit]
    if arguments.json:
        print(to_json([_record(gpu, judged) for gpu in gpus], indent=2).decode())
        return 0
    by_id = {row.id: row for row in _rows(catalog, judged, prices)}
    rows = [by_id[gpu.id] for gpu in gpus]
    everything = len(catalog.hardware.gpus)
    if arguments.csv:
        print(to_csv([gpu_fields(row) for row in rows]), end="")
    elif rows:
        shown = _columns(used_words(query) & _SHOWN_WHEN_ASKED, judged=judged is not None)
        print(f"{_list(rows, shown)}\n\n{len(rows):,} of {everything:,} accelerators")
    else:
        print(f"No accelerator of {everything:,} matches.")
    return 0


def _query(arguments: argparse.Namespace) -> GpuQuery:
    try:
        return GpuQuery(text=" ".join(arguments.words), where=arguments.where or "", sort=tuple(arguments.sort))
    except SpecError as error:
        hint = error.hint or "`gpu-planner gpus --help` lists the fields and the comparisons."
        raise SpecError(f"--{error.field}", error.reason, hint) from error


def _judged(word: str, catalog: Catalog, today: date) -> _Judgement:
    from planner.cli.subjects import plan_about
    from planner.plan.evaluate import fits_by_gpu
    from planner.plan.job_costs import job_by_gpu

    plan = plan_about(word, catalog)
    return _Judgement(fits_by_gpu(plan, catalog), job_by_gpu(plan, catalog, today) or {})


def _selected(
    query: GpuQuery, catalog: Catalog, judged: _Judgement | None, prices: Mapping[str, CardPrices] | None
) -> tuple[Gpu, ...]:
    fits = None if judged is None else judged.by_id()
    try:
        return select(catalog.hardware.gpus, query, fits, None if prices is None else price_words(prices))
    except SpecError as error:
        hint = "Add --fits MODEL." if error.field in JUDGED_FIELDS else error.hint
        raise SpecError(error.field, error.reason, hint) from error


def _rows(catalog: Catalog, judged: _Judgement | None, prices: Mapping[str, CardPrices] | None) -> tuple[GpuRow, ...]:
    if judged is None:
        return gpu_rows(catalog.hardware, prices=prices, software=catalog.software)
    from planner.present.card_jobs import job_words

    return gpu_rows(catalog.hardware, judged.fits, job_words(judged.jobs), prices, catalog.software)


def _record(gpu: Gpu, judged: _Judgement | None) -> dict[str, object]:
    record = gpu.model_dump(mode="json")
    if judged is None:
        return record
    job = judged.jobs.get(gpu.id)
    told = None if job is None else {**job._asdict(), "usd": job.usd}
    return {**record, "fit": judged.fits[gpu.id]._asdict(), "job": told}


def _columns(asked: frozenset[str], *, judged: bool) -> list[Column[GpuRow]]:
    """Return the usual columns, and one for each word that is asked for and has a column of its own."""
    by_key = {column.key: column for column in GPU_COLUMNS}
    usual = _LISTED_WHEN_JUDGED if judged else _LISTED
    return [by_key[key] for key in (*usual, *(key for key in by_key if key in asked and key not in usual))]


def _list(rows: Sequence[GpuRow], columns: Sequence[Column[GpuRow]]) -> str:
    heads = [Head(column.title, column.align, column.key == "name", column.unit) for column in columns]
    return table(heads, [[column.text(row) for column in columns] for row in rows], terminal_width())
