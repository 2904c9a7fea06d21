"""`gpu-planner gpus`: search, compare and show accelerators and systems; builds, own cards, those of this machine."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

from pydantic_core import to_json

from planner.cli.gpus_build import add_build_options, print_build
from planner.cli.gpus_own import add_own_options, run_own, wants_own
from planner.cli.parser import Parser
from planner.cli.table import Head, table, terminal_width
from planner.cost.market import CardPrices
from planner.errors import SpecError
from planner.hardware.catalog import load_hardware
from planner.hardware.derived import DERIVED_FIGURES
from planner.hardware.fields import PRICE_WORDS
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.hardware.query import QUERY_FIELDS, GpuQuery, select, used_words
from planner.memory.fit import CardFit
from planner.paths import catalog_dir, own_hardware_file, prices_dir
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.prices import price_words, prices_by_card
from planner.present.columns import Column
from planner.present.flat_records import gpu_fields
from planner.present.gpus import GPU_COLUMNS, GpuRow, gpu_rows
from planner.present.record_text import to_csv

_LISTED: Final = ("name", "year", "memory", "bandwidth", "bf16", "power", "price")
_SHOWN_WHEN_ASKED: Final = frozenset((*PRICE_WORDS, *DERIVED_FIGURES))
"""Words that have a column of their own in the list where it is filtered or sorted by them."""

_DESCRIPTION: Final = """\
List accelerators, compare some, or show one with the source of every figure. Rates are dense, never sparse;
GiB is 2^30 bytes, GB is 10^9. What is not known is said to be unknown, and sorts last."""

_EXAMPLES: Final = """\
examples:
  gpu-planner gpus rtx 40
  gpu-planner gpus --where 'memory_gib >= 80 and vendor == "NVIDIA"' --sort -bandwidth
  gpu-planner gpus --where 'memory_gib >= 24 and used < 1000' --sort usd_per_gib
  gpu-planner gpus --fits meta-llama/Llama-3.1-70B --where 'fits == "fits"' --sort price
  gpu-planner gpus --compare "RTX 4090" "2 x RTX 3090" dgx-a100-640gb
  gpu-planner gpus --show mi300x
  gpu-planner gpus --systems dgx
  gpu-planner gpus --build "2 x RTX 5090" --circuit 120V-15A
  gpu-planner gpus --change "RTX 3090" --paid 720 --power-limit 250
  gpu-planner gpus --here

fields for --where and --sort:
{fields}

--where joins comparisons (== != < <= > >= ~ in) with and, or, not and brackets; ~ looks for text within text."""


def run(argv: list[str]) -> int:
    """Print what was asked and return the exit code."""
    arguments = _parser().parse_args(_with_descending(argv))
    if wants_own(arguments):
        return run_own(arguments, load_hardware(catalog_dir()), own_hardware_file(), _today())
    catalog = load_catalog(prices=prices_dir(), own=own_hardware_file())
    return _about(arguments, catalog)


def _about(arguments: argparse.Namespace, catalog: Catalog) -> int:
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

        return show(resolve_gpu(catalog.hardware, arguments.show), catalog, _today(), as_json=arguments.json)
    if arguments.compare:
        from planner.cli.gpus_compare import print_comparison

        return print_comparison(arguments, catalog, _prices(catalog))
    fits = _fits(arguments.fits, catalog) if arguments.fits else None
    return _print(_selected(arguments, catalog, fits), catalog, fits, arguments)


def _parser() -> Parser:
    width = max(map(len, QUERY_FIELDS))
    fields = [f"  {field.name:<{width}}  {field.unit:<10}  {field.help}" for field in QUERY_FIELDS.values()]
    parser = Parser("gpu-planner gpus", _DESCRIPTION, _EXAMPLES.format(fields="\n".join(fields)))
    choice = parser.add_argument_group("which ones")
    choice.add_argument("words", metavar="WORDS", nargs="*", help="words that name, maker or architecture contain")
    choice.add_argument("--where", metavar="EXPR", default="", help="an expression over the fields below")
    choice.add_argument("--fits", metavar="MODEL", help="judge each card by this model (batch 1) or by a PLAN.json")
    choice.add_argument("--limit", metavar="N", type=_positive, help="print at most N")
    ordered = "a field below, with - before it descending; repeatable"
    choice.add_argument("--sort", metavar="FIELD", action="append", default=[], help=ordered)
    choice.add_argument("--csv", action="store_true", help="print a table for other programs, with sources")
    other = parser.add_argument_group("instead of a list")
    other.add_argument("--compare", metavar="GPU", nargs="+", help="set cards or systems side by side")
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


def _fits(word: str, catalog: Catalog) -> Mapping[str, CardFit]:
    from planner.cli.subjects import plan_about
    from planner.plan.evaluate import fits_by_gpu

    return fits_by_gpu(plan_about(word, catalog), catalog)


def _selected(arguments: argparse.Namespace, catalog: Catalog, fits: Mapping[str, CardFit] | None) -> tuple[Gpu, ...]:
    verdicts = None if fits is None else {gpu_id: fit.verdict for gpu_id, fit in fits.items() if fit.verdict}
    try:
        query = GpuQuery(text=" ".join(arguments.words), where=arguments.where, sort=tuple(arguments.sort))
        prices = price_words(_prices(catalog)) if used_words(query) & PRICE_WORDS.keys() else None
        found = select(catalog.hardware.gpus, query, verdicts, prices)
    except SpecError as error:
        if error.field == "fits":
            raise SpecError("fits", error.reason, "Add --fits MODEL.") from error
        hint = error.hint or "`gpu-planner gpus --help` lists the fields and the comparisons."
        raise SpecError(f"--{error.field}", error.reason, hint) from error
    return found[: arguments.limit]


def _print(
    gpus: Sequence[Gpu],
    catalog: Catalog,
    fits: Mapping[str, CardFit] | None,
    arguments: argparse.Namespace,
) -> int:
    if arguments.json:
        print(to_json([_record(gpu, fits) for gpu in gpus], indent=2).decode())
        return 0
    asked = _asked(arguments)
    by_id = {row.id: row for row in _rows(catalog, fits, priced=bool(asked & PRICE_WORDS.keys()))}
    rows = [by_id[gpu.id] for gpu in gpus]
    everything = len(catalog.hardware.gpus)
    if arguments.csv:
        print(to_csv([gpu_fields(row) for row in rows]), end="")
    elif rows:
        print(f"{_list(rows, asked, judged=fits is not None)}\n\n{len(rows):,} of {everything:,} accelerators")
    else:
        print(f"No accelerator of {everything:,} matches.")
    return 0


def _today() -> date:
    return date.today()


def _prices(catalog: Catalog) -> dict[str, CardPrices]:
    return prices_by_card(catalog, _today())


def _rows(catalog: Catalog, fits: Mapping[str, CardFit] | None, *, priced: bool) -> tuple[GpuRow, ...]:
    return gpu_rows(catalog.hardware, fits, _prices(catalog) if priced else None)


def _asked(arguments: argparse.Namespace) -> frozenset[str]:
    query = GpuQuery(where=arguments.where, sort=tuple(arguments.sort))
    return used_words(query) & _SHOWN_WHEN_ASKED


def _record(gpu: Gpu, fits: Mapping[str, CardFit] | None) -> dict[str, object]:
    record = gpu.model_dump(mode="json")
    return record if fits is None else {**record, "fit": fits[gpu.id]._asdict()}


def _list(rows: Sequence[GpuRow], asked: frozenset[str], *, judged: bool) -> str:
    keys = {*_LISTED, *asked, *(("fits",) if judged else ())}
    order = (*_LISTED[:1], "fits", *_LISTED[1:])
    shown = [_column(key) for key in order if key in keys] + [each for each in GPU_COLUMNS if each.key in asked]
    heads = [Head(column.title, column.align, column.key == "name", column.unit) for column in shown]
    return table(heads, [[column.text(row) for column in shown] for row in rows], terminal_width())


def _column(key: str) -> Column[GpuRow]:
    return next(column for column in GPU_COLUMNS if column.key == key)
