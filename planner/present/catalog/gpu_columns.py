"""What tables show of an accelerator."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from planner.hardware.derived import DERIVED_FIGURES, DerivedFigure
from planner.hardware.fields import PRICE_WORDS
from planner.present import format as fmt
from planner.present.catalog.gpu_row import GpuRow, JobWords, gpu_rows, part_words
from planner.present.columns import Column, Row, numbers, words
from planner.present.memory.verdict import fits_rank, fits_tooltip, fits_words
from planner.present.names import CERTAINTY_WORDS
from planner.present.provenance import provenance_text
from planner.units import GIB

if TYPE_CHECKING:
    from planner.cost.market import BoughtKind, PricePoint, PriceSpread


Priced = tuple[float, tuple["PricePoint", ...]]
"""A price in US dollars, and the prices that it is made of."""
_RANGE_END: Final = re.compile(r"^(?:low|high) end(?: of [\d,]+-[\d,]+)?(?:, |$)")
_PRICE_WIDTH: Final = 15
_YEAR_LENGTH: Final = len("2025")


def _derived(figure: DerivedFigure) -> Column[GpuRow]:
    def explained(row: GpuRow) -> str:
        return f"{figure.title} = {figure.formula}\n{figure.explained(row.gpu)}"

    column = numbers(
        figure.key,
        figure.title,
        lambda row: figure.value(row.gpu),
        unit=figure.unit,
        show=fmt.significant,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=explained,
    )
    return replace(column, help=sentence(f"{figure.help}{', at launch' if figure.priced else ''}"))


def sentence(words: str) -> str:
    """Return `words` with a capital at their beginning, whatever follows."""
    return f"{words[:1].upper()}{words[1:]}"


def spread_words(spread: "PriceSpread", unit: str = "") -> str:
    """Return the range of a kind of price, how many it is of and how many are left out, and the days it is of."""
    days = sorted({point.day for point in spread.current})
    dates = fmt.date(days[0] or None, "") if len(days) == 1 else f"{fmt.date(days[0])} – {fmt.date(days[-1])}"
    low, high = spread.low.price_usd, spread.high.price_usd
    span = fmt.money(low) if low == high else f"{fmt.money(low)} – {fmt.money(high)}"
    return ", ".join(part for part in (f"{span}{unit}", dates, count_words(spread)) if part)


def count_words(spread: "PriceSpread") -> str:
    """Return of how many prices a range is, and which are left out: `1 price; 15 older than twelve months left out`."""
    undated = "" if spread.current[0].day else " without a date"
    left_out = [f"{len(spread.older):,} older than twelve months"] * bool(spread.older)
    left_out += [f"{len(spread.undated):,} without a date"] * bool(spread.undated)
    beside = f"; {fmt.listing(tuple(left_out))} left out" if left_out else ""
    return f"{fmt.plural(len(spread.current), 'price')}{undated}{beside}"


def remark_words(points: Iterable["PricePoint"]) -> str:
    """Return what sources and checks say of prices, each remark once; which end of a range a price is, one sees."""
    parts = (part for point in points for remark in point.remarks for part in remark.split("; "))
    return "; ".join(filter(None, dict.fromkeys(_RANGE_END.sub("", part) for part in parts)))


def month_words(points: Iterable["PricePoint"]) -> str:
    """Return the month that prices are of, of several the years: `Mar 2025`, `2024 – 2025`, `no date`."""
    days = sorted({point.day for point in points})
    months = list(dict.fromkeys(fmt.short_date(day or None, fmt.NO_DATE) for day in days))
    if len(months) == 1:
        return months[0]
    return " – ".join(dict.fromkeys(month[-_YEAR_LENGTH:] for month in (months[0], months[-1])))


def _dated_money(
    key: str, title: str, read: Callable[[Row], Priced | None], tooltip: Callable[[Row], str], unit: str = ""
) -> Column[Row]:
    """Return a column of prices that says of which month each is; it sorts by the price alone."""

    def usd(row: Row) -> float | None:
        found = read(row)
        return None if found is None else found[0]

    def text(row: Row) -> str:
        found = read(row)
        return fmt.UNKNOWN if found is None else f"{fmt.money(found[0])} ({month_words(found[1])})"

    measure = "" if unit else fmt.USD
    plain = numbers(key, title, usd, unit=unit, width=_PRICE_WIDTH, shown=False, measure=measure, tooltip=tooltip)
    return replace(plain, text=text, help=sentence(PRICE_WORDS[key][1]))


def _bought(kind: "BoughtKind", title: str) -> Column[GpuRow]:
    def spread(row: GpuRow) -> "PriceSpread | None":
        return None if row.prices is None else row.prices.bought.get(kind)

    def priced(row: GpuRow) -> Priced | None:
        found = spread(row)
        return None if found is None else (found.median_usd, found.current)

    def tooltip(row: GpuRow) -> str:
        found = spread(row)
        if found is None:
            return "The catalog has no such price."
        told = (f"Median of {spread_words(found)}", remark_words(found.current), found.latest.source)
        return "\n".join(part for part in told if part)

    return _dated_money(kind, title, priced, tooltip)


def rent_column(on_demand: Callable[[Row], "PriceSpread | None"], nothing: str, per: str) -> Column[Row]:
    """Return a column of the cheapest price by the hour; `nothing` says that there is none, `per` what it is for."""

    def priced(row: Row) -> Priced | None:
        spread = on_demand(row)
        return None if spread is None else (spread.low.price_usd, (spread.low,))

    def tooltip(row: Row) -> str:
        spread = on_demand(row)
        if spread is None:
            return nothing
        low = spread.low
        where = ", ".join(part for part in (low.seller, low.region, fmt.date(low.price_date, "")) if part)
        return f"Cheapest: {where}\n{spread_words(spread, per)}\n{low.source}"

    return _dated_money("rent", "Rent", priced, tooltip, unit="USD/h")


def _on_demand(row: GpuRow) -> "PriceSpread | None":
    return None if row.prices is None else row.prices.rented.get("on-demand")


def _paid_tooltip(row: GpuRow) -> str:
    if row.gpu.purchase_price_usd is None:
        return "You have not said what you paid for one."
    return provenance_text(row.gpu.provenance_of("purchase_price_usd"))


DERIVED_COLUMNS: Final[tuple[Column[GpuRow], ...]] = tuple(_derived(figure) for figure in DERIVED_FIGURES.values())
PRICE_COLUMNS: Final[tuple[Column[GpuRow], ...]] = (
    _bought("street", "Street price"),
    _bought("used", "Used price"),
    rent_column(_on_demand, "The catalog has no offer of this card by the hour.", " per card and hour"),
    numbers(
        "paid",
        "Paid",
        lambda row: row.gpu.purchase_price_usd,
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        shown=False,
        measure=fmt.USD,
        tooltip=_paid_tooltip,
    ),
)


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
