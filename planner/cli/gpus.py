"""`gpu-planner gpus`: search, compare and show accelerators."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic_core import to_json

from planner.cli.details import details
from planner.cli.parser import Parser
from planner.cli.table import Head, table, terminal_width
from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.fields import JUDGED_FIELDS, Fits, Judged
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.hardware.query import QUERY_FIELDS, GpuQuery, select
from planner.memory.fit import CardFit
from planner.paths import catalog_dir, prices_dir
from planner.present.columns import Column
from planner.present.gpu_details import gpu_details
from planner.present.gpus import GPU_COLUMNS, GpuRow, gpu_rows

if TYPE_CHECKING:
    from planner.plan.job_costs import CardJob

_LISTED: Final = ("name", "year", "memory", "bandwidth", "bf16", "power", "price")
_JUDGED: Final = ("fits", "job_time", "job_cost")
_LISTED_WHEN_JUDGED: Final = ("name", *_JUDGED, "memory", "bandwidth", "power")


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
  gpu-planner gpus --fits meta-llama/Llama-3.1-70B --where 'fits == "fits"' --sort price
  gpu-planner gpus --fits plan.json --where 'hours < 24' --sort job_cost
  gpu-planner gpus --compare "RTX 4090" "RTX 5090" h100-sxm
  gpu-planner gpus --show mi300x

fields for --where and --sort:
{fields}

--where joins comparisons (== != < <= > >= ~ in) with and, or, not and brackets; ~ looks for text within text."""


def run(argv: list[str], today: date | None = None) -> int:
    """Print what was asked, prices as of `today`, by default the day that it is, and return the exit code."""
    arguments = _parser().parse_args(_with_descending(argv))
    hardware = load_hardware(catalog_dir())
    if arguments.show:
        return _show(resolve_gpu(hardware, arguments.show), hardware, as_json=arguments.json)
    if arguments.compare:
        gpus: Sequence[Gpu] = [resolve_gpu(hardware, name) for name in arguments.compare]
        return _print(gpus, hardware, None, arguments, compared=True)
    judged = _judged(arguments.fits, today or datetime.now(UTC).date()) if arguments.fits else None
    return _print(_selected(arguments, hardware, judged), hardware, judged, arguments)


def _parser() -> Parser:
    width = max(map(len, QUERY_FIELDS))
    fields = [f"  {field.name:<{width}}  {field.unit:<6}  {field.help}" for field in QUERY_FIELDS.values()]
    parser = Parser("gpu-planner gpus", _DESCRIPTION, _EXAMPLES.format(fields="\n".join(fields)))
    choice = parser.add_argument_group("which ones")
    choice.add_argument("words", metavar="WORDS", nargs="*", help="words that name, maker or architecture contain")
    choice.add_argument("--where", metavar="EXPR", default="", help="an expression over the fields below")
    choice.add_argument("--fits", metavar="MODEL", help="judge each card by this model (batch 1) or by a PLAN.json")
    choice.add_argument("--limit", metavar="N", type=_positive, help="print at most N")
    ordered = "a field below, with - before it descending; repeatable"
    choice.add_argument("--sort", metavar="FIELD", action="append", default=[], help=ordered)
    other = parser.add_argument_group("instead of a list")
    other.add_argument("--compare", metavar="GPU", nargs="+", help="set these side by side")
    other.add_argument("--show", metavar="GPU", help="show every figure of one with its source")
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


def _judged(word: str, today: date) -> _Judgement:
    from planner.cli.subjects import plan_about
    from planner.plan.catalog import load_catalog
    from planner.plan.evaluate import fits_by_gpu
    from planner.plan.job_costs import job_by_gpu

    catalog = load_catalog(prices=prices_dir())
    plan = plan_about(word, catalog)
    return _Judgement(fits_by_gpu(plan, catalog), job_by_gpu(plan, catalog, today) or {})


def _selected(arguments: argparse.Namespace, hardware: HardwareCatalog, judged: _Judgement | None) -> tuple[Gpu, ...]:
    fits = None if judged is None else judged.by_id()
    try:
        query = GpuQuery(text=" ".join(arguments.words), where=arguments.where, sort=tuple(arguments.sort))
        found = select(hardware.gpus, query, fits)
    except SpecError as error:
        if error.field in JUDGED_FIELDS:
            raise SpecError(error.field, error.reason, "Add --fits MODEL.") from error
        hint = error.hint or "`gpu-planner gpus --help` lists the fields and the comparisons."
        raise SpecError(f"--{error.field}", error.reason, hint) from error
    return found[: arguments.limit]


def _show(gpu: Gpu, hardware: HardwareCatalog, *, as_json: bool) -> int:
    if as_json:
        print(gpu.model_dump_json(indent=2))
    else:
        print(details(gpu.name, gpu_details(gpu, hardware.usable_memory(gpu)), gpu.notes))
    return 0


def _print(
    gpus: Sequence[Gpu],
    hardware: HardwareCatalog,
    judged: _Judgement | None,
    arguments: argparse.Namespace,
    *,
    compared: bool = False,
) -> int:
    if arguments.json:
        print(to_json([_record(gpu, judged) for gpu in gpus], indent=2).decode())
        return 0
    by_id = {row.id: row for row in _rows(hardware, judged)}
    rows = [by_id[gpu.id] for gpu in gpus]
    if compared:
        print(_side_by_side(rows))
    elif rows:
        print(f"{_list(rows, judged=judged is not None)}\n\n{len(rows):,} of {len(hardware.gpus):,} accelerators")
    else:
        print(f"No accelerator of {len(hardware.gpus):,} matches.")
    return 0


def _rows(hardware: HardwareCatalog, judged: _Judgement | None) -> tuple[GpuRow, ...]:
    if judged is None:
        return gpu_rows(hardware)
    from planner.present.card_jobs import job_words

    return gpu_rows(hardware, judged.fits, job_words(judged.jobs))


def _record(gpu: Gpu, judged: _Judgement | None) -> dict[str, object]:
    record = gpu.model_dump(mode="json")
    if judged is None:
        return record
    job = judged.jobs.get(gpu.id)
    told = None if job is None else {**job._asdict(), "usd": job.usd}
    return {**record, "fit": judged.fits[gpu.id]._asdict(), "job": told}


def _list(rows: Sequence[GpuRow], *, judged: bool) -> str:
    columns = [_column(key) for key in (_LISTED_WHEN_JUDGED if judged else _LISTED)]
    heads = [Head(column.title, column.align, column.key == "name", column.unit) for column in columns]
    return table(heads, [[column.text(row) for column in columns] for row in rows], terminal_width())


def _side_by_side(rows: Sequence[GpuRow]) -> str:
    heads = [Head(""), *(Head(row.gpu.name, "right", flexible=True) for row in rows)]
    columns = [column for column in GPU_COLUMNS if column.key not in ("name", *_JUDGED)]
    return table(heads, [[column.header, *(column.text(row) for row in rows)] for column in columns], terminal_width())


def _column(key: str) -> Column[GpuRow]:
    return next(column for column in GPU_COLUMNS if column.key == key)
