"""What tables show of an accelerator."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from planner.present import format as fmt
from planner.present.catalog.gpu_figures import DERIVED_COLUMNS, PRICE_COLUMNS
from planner.present.catalog.gpu_row import GpuRow, JobWords, gpu_rows, part_words
from planner.present.columns import Column, numbers, words
from planner.present.memory.fits import fits_rank, fits_tooltip, fits_words
from planner.present.names import CERTAINTY_WORDS
from planner.present.provenance import provenance_text
from planner.units import GIB

__all__ = ["DTYPE_TITLES", "GPU_COLUMNS", "SEGMENT_WORDS", "GpuRow", "JobWords", "gpu_rows", "part_words"]

SEGMENT_WORDS: Final[dict[str, str]] = {
    "consumer": "consumer",
    "workstation": "workstation",
    "datacenter": "data centre",
    "edge": "edge",
    "soc": "on a chip",
    "tpu": "TPU",
}
_NOT_RUN: Final = "–"
DTYPE_TITLES: Final = {
    "fp64": "FP64",
    "fp32": "FP32",
    "tf32": "TF32",
    "fp16": "FP16",
    "bf16": "BF16",
    "fp8": "FP8",
    "int8": "INT8",
    "fp4": "FP4",
}
_DENSE: Final = "Dense, without sparsity; the details say what the sums are kept in"
_HELP: Final = {
    "fits": "Whether the plan fits on as many of these as it has",
    "job_time": "How fast the plan's job runs here, or how long a run takes",
    "job_cost": "What a month or a run of the plan's job costs here, at the cheapest offer that can be compared",
    "job_cost_tokens": "What a million tokens of the plan's job cost here, at the same offer",
    "segment": "What it is sold for",
    "memory": "Of the whole card, as its chips hold",
    "usable_memory": "What programs can use of the memory",
    "bandwidth": "How fast memory is read, which sets the pace of writing tokens",
    "fp32": "On shader cores, which sets the pace without matrix units",
    **dict.fromkeys(("bf16", "fp16", "fp8", "int8", "fp4"), _DENSE),
    "power": "Of the board, as published",
    "price": "What the maker asked at launch",
    "paid": "What you paid for one, as you said",
    "compute_capability": "NVIDIA's compute capability or AMD's target, which decides what software runs",
    "mig": "Whether it can be split into instances with memory of their own (Multi-Instance GPU)",
    "ecc": "Whether its memory corrects errors",
    "devices": "How many devices programs see of one card",
    "certainty": "How many sources its figures rest on",
}
"""What a column means, where its title alone might not say it."""


def _source(field: str, get: Callable[[GpuRow], object]) -> Callable[[GpuRow], str]:
    """Return what says where a figure comes from; of one that is not known there is nothing to say."""
    return lambda row: "" if get(row) is None else provenance_text(row.gpu.provenance_of(field))


def _bandwidth(row: GpuRow) -> float | None:
    return row.gpu.bandwidth_bytes_per_s


def _power(row: GpuRow) -> float | None:
    return row.gpu.board_power_watts


def _price(row: GpuRow) -> float | None:
    return row.gpu.launch_price_usd


def _why_not_run(row: GpuRow) -> str:
    """Return why there is no time and no cost of the job."""
    if row.verdict == "does-not-fit":
        return "The plan does not fit."
    return row.reason or "Not known: a rate that it takes is not published, or it is still being worked out."


def _device_bytes(row: GpuRow) -> int | None:
    return row.usable.bytes if row.usable else row.gpu.usable_memory_bytes


def _usable_bytes(row: GpuRow) -> int | None:
    """Return what programs can use of the whole card, as its memory is that of the whole card."""
    each = _device_bytes(row)
    return None if each is None else each * row.gpu.device_count


def _usable_text(row: GpuRow) -> str:
    each, count = _device_bytes(row), row.gpu.device_count
    if each is None:
        return fmt.UNKNOWN
    shown = fmt.plain(each / GIB)
    return f"{count} × {shown}" if count > 1 else shown


def _rate(dtype: str, *, shown: bool = True) -> Column[GpuRow]:
    def get(row: GpuRow) -> float | None:
        rate = row.gpu.rate(dtype)
        return None if rate is None else rate.ops_per_s

    def unknown(row: GpuRow) -> str:
        return fmt.NONE if dtype in row.lacks else fmt.NOT_PUBLISHED

    known = _source(f"rate.{dtype}", get)

    def source(row: GpuRow) -> str:
        fact = row.lacks.get(dtype)
        return known(row) if fact is None else f"{fact.source}\nread {fmt.date(fact.as_of)}"

    title = f"{DTYPE_TITLES[dtype]}{'' if dtype in ('fp32', 'fp64') else ' dense'}"
    return numbers(
        dtype,
        title,
        get,
        unit=fmt.rate_unit(dtype),
        per_unit=1e12,
        unknown=unknown,
        meter=dtype in ("bf16", "fp32"),
        shown=shown,
        tooltip=source,
    )


_COLUMNS: Final[tuple[Column[GpuRow], ...]] = (
    Column(
        "name",
        "Name",
        lambda row: row.gpu.name,
        lambda row: row.marked_name,
        width=24,
        tooltip=lambda row: f"{row.marked_name}\n{row.gpu.id}",
    ),
    Column(
        "fits",
        "Fits my model",
        lambda row: fits_rank(row.verdict),
        lambda row: fits_words(row.verdict, row.reason),
        width=14,
        tooltip=lambda row: fits_tooltip(row.free_bytes, row.reason),
    ),
    Column(
        "job_time",
        "My job takes",
        lambda row: row.job.slowness if row.job else None,
        lambda row: row.job.time if row.job else _NOT_RUN,
        align="right",
        width=10,
        measure="hours of a run, else seconds a token",
        tooltip=lambda row: row.job.time_origin if row.job else _why_not_run(row),
    ),
    Column(
        "job_cost",
        "My job costs",
        lambda row: row.job.usd if row.job else None,
        lambda row: row.job.cost if row.job else _NOT_RUN,
        align="right",
        width=9,
        measure=fmt.USD,
        tooltip=lambda row: row.job.cost_origin if row.job else _why_not_run(row),
    ),
    numbers(
        "job_cost_tokens",
        "A million tokens",
        lambda row: row.job.usd_per_million_tokens if row.job else None,
        show=fmt.money,
        unknown=_NOT_RUN,
        width=12,
        shown=False,
        measure=fmt.USD,
        tooltip=lambda row: row.job.cost_origin if row.job else _why_not_run(row),
    ),
    words("vendor", "Vendor", lambda row: row.gpu.vendor, width=9),
    words("segment", "Segment", lambda row: SEGMENT_WORDS[row.gpu.segment]),
    words("architecture", "Architecture", lambda row: row.gpu.architecture, width=16),
    numbers("year", "Year", lambda row: row.gpu.year, show=lambda value: f"{value:.0f}", unknown=fmt.UNKNOWN, width=7),
    numbers(
        "memory",
        "Memory",
        lambda row: row.gpu.memory_bytes,
        unit="GiB",
        per_unit=GIB,
        width=6,
        meter=True,
        tooltip=lambda row: f"{row.gpu.memory_label}\n{fmt.exact_bytes(row.gpu.memory_bytes)}",
    ),
    Column(
        "usable_memory",
        "Usable",
        _usable_bytes,
        _usable_text,
        "GiB",
        "right",
        width=10,
        shown=False,
        tooltip=lambda row: row.usable.explanation if row.usable else "",
        per_unit=GIB,
    ),
    numbers(
        "bandwidth",
        "Bandwidth",
        _bandwidth,
        unit="GB/s",
        per_unit=1e9,
        width=8,
        meter=True,
        tooltip=_source("bandwidth_bytes_per_s", _bandwidth),
    ),
    _rate("fp32"),
    _rate("bf16"),
    _rate("fp16", shown=False),
    _rate("fp8"),
    _rate("int8", shown=False),
    _rate("fp4", shown=False),
    numbers("power", "Power", _power, unit="W", tooltip=_source("board_power_watts", _power)),
    numbers(
        "price",
        "Launch price",
        _price,
        show=fmt.money,
        width=12,
        measure=fmt.USD,
        tooltip=_source("launch_price_usd", _price),
    ),
    *PRICE_COLUMNS,
    *DERIVED_COLUMNS,
    words("part", "Part", lambda row: part_words(row.gpu), shown=False, width=26),
    words("compute_capability", "Compute capability", lambda row: row.gpu.compute_capability, shown=False, width=18),
    words("interconnect", "Interconnect", lambda row: row.gpu.interconnect, shown=False, width=22),
    words("mig", "MIG", lambda row: fmt.yes_no(row.gpu.mig), shown=False, width=9),
    words("ecc", "ECC", lambda row: fmt.yes_no(row.gpu.ecc), shown=False, width=9),
    words("form_factor", "Form factor", lambda row: row.gpu.form_factor, shown=False, width=16),
    numbers("devices", "Devices", lambda row: row.gpu.device_count, shown=False, width=8),
    words("certainty", "Certainty", lambda row: CERTAINTY_WORDS[row.gpu.provenance.certainty], shown=False, width=22),
)
GPU_COLUMNS: Final[tuple[Column[GpuRow], ...]] = tuple(
    replace(column, help=column.help or _HELP.get(column.key, "")) for column in _COLUMNS
)
