"""Columns of accelerators, declared once for tables, filters, comparisons and plots.

`column_sets` holds what a menu shows of them before this module is loaded.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from planner.cost.figure import Figure
from planner.hardware.derived import DERIVED_FIGURES, DerivedFigure
from planner.hardware.gpu import Gpu
from planner.hardware.query_fields import PRICE_FIELDS
from planner.hardware.system import modules_on_a_board
from planner.memory.result import Verdict
from planner.present import format as fmt
from planner.present.catalog.gpu_row import GpuRow, JobSummary, product_kind
from planner.present.columns import Column, Row, number_column, provenance_text, text_column
from planner.present.cost.prices import months_text, price_range_text, remarks_text
from planner.present.memory.verdict import margin_text, no_fit_sentence, verdict_cell, verdict_rank
from planner.present.names import CERTAINTY_TITLES
from planner.units import GIB

if TYPE_CHECKING:
    from planner.cost.card_prices import BoughtKind, PricePoint, PriceSpread

SEGMENT_TITLES: Final[dict[str, str]] = {
    "consumer": "consumer",
    "workstation": "workstation",
    "datacenter": "data center",
    "edge": "edge",
    "soc": "system on chip",
    "tpu": "TPU",
}
DTYPE_TITLES: Final = {dtype: dtype.upper() for dtype in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")}
DatedPrice = tuple[float, tuple["PricePoint", ...]]
"""A price in US dollars, and the price points that it is derived from."""
_NOT_RUN: Final = "–"
_PRICE_WIDTH: Final = 22
_DENSE: Final = "Dense rate, without sparsity; the details name the accumulation format"


def lower_is_better(key: str) -> bool | None:
    """Return whether lower is better in the column `key`, or None if neither direction is better."""
    return _BY_KEY[key].lower_is_better


def fits_column(
    verdict: Callable[[Row], Verdict | None],
    unsupported: Callable[[Row], str],
    tooltip: Callable[[Row], str],
    about: str = "",
) -> Column[Row]:
    """Return the column of the plan's memory verdict; sorting puts the best verdict first."""
    return Column(
        "fits",
        "Fits my model",
        lambda row: verdict_rank(verdict(row)),
        lambda row: verdict_cell(verdict(row), unsupported(row)),
        width=12,
        tooltip=tooltip,
        help=about,
    )


def _fits_tooltip(row: GpuRow) -> str:
    """Return why there is no memory verdict, or the free memory, as the tooltip of the verdict."""
    return row.reason if row.reason or row.free_bytes is None else margin_text(row.free_bytes)


def _derived_column(figure: DerivedFigure) -> Column[GpuRow]:
    """Return the column of a derived figure, with its formula as tooltip."""
    return number_column(
        figure.key,
        figure.title,
        lambda row: figure.value(row.gpu),
        unit=figure.unit,
        show=fmt.significant,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=lambda row: f"{figure.title} = {figure.formula}\n{figure.explained(row.gpu)}",
        about=fmt.capitalized(f"{figure.help}{', at launch' if figure.has_price else ''}"),
        lower_is_better=figure.lower_is_better,
    )


def _dated_price_column(
    key: str, title: str, read: Callable[[Row], DatedPrice | None], tooltip: Callable[[Row], str], unit: str = ""
) -> Column[Row]:
    """Return a column of prices with their months, sorted by the price alone."""

    def price_usd(row: Row) -> float | None:
        found = read(row)
        return None if found is None else found[0]

    def price_text(row: Row) -> str:
        found = read(row)
        if found is None:
            return fmt.UNKNOWN
        outdated = ", outdated" * all(point.outdated for point in found[1])
        return f"{fmt.money(found[0])} ({months_text(found[1])}{outdated})"

    return number_column(
        key,
        title,
        price_usd,
        unit=unit,
        text=price_text,
        width=_PRICE_WIDTH,
        shown=False,
        measure="" if unit else fmt.USD,
        tooltip=tooltip,
        about=fmt.capitalized(PRICE_FIELDS[key][1]),
        lower_is_better=True,
    )


def buying_text(price: Figure | None, gpu: "Gpu", count: int = 1) -> str:
    """Return what GPUs cost, with the year of the price: `$329 (2024)`; of a launch price, that of the release.

    What one has paid oneself needs no year.
    """
    if price is None:
        return fmt.UNKNOWN
    year = price.date[:4] if price.date else str(gpu.year or "") if price.certainty == "assumed" else ""
    total = fmt.money(count * price.value)
    return total if price.certainty == "yours" else f"{total} ({year or fmt.NO_DATE})"


def buying_phrase(price: Figure, gpu: "Gpu") -> str:
    """Return what one card costs, for a sentence: `$329 (2024)`, `$899 (2022) at launch`, `$30,600 in a server`."""
    where = "" if modules_on_a_board(gpu) is None else " in a server"
    return f"{buying_text(price, gpu)}{where}{' at launch' if price.certainty == 'assumed' else ''}"


def buying_origin(row: GpuRow) -> str:
    """Return where the price of one card comes from."""
    price = row.buying
    if price is None:
        return "The catalog has no price of this GPU alone. It may be sold only as part of a server."
    dated = "" if price.date is None else fmt.date(price.date)
    sold = "" if modules_on_a_board(row.gpu) is None else "Sold only in systems: this is the price of one GPU in them."
    return "\n".join(part for part in (fmt.capitalized(price.source), dated, sold) if part)


BUYING_COLUMN: Final[Column[GpuRow]] = number_column(
    "buy",
    "Price",
    lambda row: None if row.buying is None else row.buying.value,
    text=lambda row: buying_text(row.buying, row.gpu),
    width=14,
    measure=fmt.USD,
    tooltip=buying_origin,
    about="What one GPU costs, as in the Cost tab, with the year: what sellers asked, or the list price at launch",
    lower_is_better=True,
)


def _purchase_price_column(kind: "BoughtKind", title: str) -> Column[GpuRow]:
    """Return the column of purchase prices of one kind, such as street or used."""

    def price_spread(row: GpuRow) -> "PriceSpread | None":
        return None if row.prices is None else row.prices.bought.get(kind)

    def median_price(row: GpuRow) -> DatedPrice | None:
        found = price_spread(row)
        return None if found is None else (found.median_usd, found.current)

    def price_tooltip(row: GpuRow) -> str:
        found = price_spread(row)
        if found is None:
            return "The catalog has no price of this kind."
        texts = (f"Median of {price_range_text(found)}", remarks_text(found.current), found.latest.source)
        return "\n".join(part for part in texts if part)

    return _dated_price_column(kind, title, median_price, price_tooltip)


def rent_column(on_demand: Callable[[Row], "PriceSpread | None"], no_offer: str, unit: str) -> Column[Row]:
    """Return the column of the lowest hourly rent; `no_offer` is the tooltip without an offer."""

    def lowest_rent(row: Row) -> DatedPrice | None:
        spread = on_demand(row)
        return None if spread is None else (spread.low.price_usd, (spread.low,))

    def rent_tooltip(row: Row) -> str:
        spread = on_demand(row)
        if spread is None:
            return no_offer
        low = spread.low
        where = ", ".join(part for part in (low.seller, low.region, fmt.date(low.price_date, "")) if part)
        return f"Cheapest: {where}\n{price_range_text(spread, unit)}\n{low.source}"

    return _dated_price_column("rent", "Rent", lowest_rent, rent_tooltip, unit="USD/h")


def _on_demand_rent(row: GpuRow) -> "PriceSpread | None":
    """Return the on-demand rental prices of the card, if there are any."""
    return None if row.prices is None else row.prices.rented.get("on-demand")


def _source_reader(field: str, get: Callable[[GpuRow], object], unknown: str = "") -> Callable[[GpuRow], str]:
    """Return a function that gives the source of a record's field, or `unknown` if `get` gives no value."""
    return lambda row: unknown if get(row) is None else provenance_text(row.gpu.provenance_of(field))


def _published_column(
    key: str,
    title: str,
    field: str,
    *,
    about: str,
    unit: str = "",
    per_unit: float = 1,
    show: Callable[[float], str] = fmt.plain,
    unknown: str = fmt.NOT_PUBLISHED,
    no_source: str = "",
    width: int = 10,
    meter: bool = False,
    shown: bool = True,
    lower_is_better: bool = True,
) -> Column[GpuRow]:
    """Return a column of a published field of the card's record, with its source as tooltip."""

    def published_value(row: GpuRow) -> float | None:
        value: float | None = getattr(row.gpu, field)
        return value

    return number_column(
        key,
        title,
        published_value,
        unit=unit,
        per_unit=per_unit,
        show=show,
        unknown=unknown,
        width=width,
        meter=meter,
        shown=shown,
        measure="" if unit else fmt.USD,
        tooltip=_source_reader(field, published_value, no_source),
        about=about,
        lower_is_better=lower_is_better,
    )


def _job_column(
    key: str,
    title: str,
    get: Callable[[JobSummary], float | None],
    text: Callable[[JobSummary], str],
    origin: Callable[[JobSummary], str],
    *,
    about: str,
    width: int,
    measure: str = fmt.USD,
    shown: bool = True,
) -> Column[GpuRow]:
    """Return a column of the time or cost of the plan's job; without one, the tooltip says why."""
    return number_column(
        key,
        title,
        lambda row: get(row.job) if row.job else None,
        text=lambda row: text(row.job) if row.job else _no_job_text(row),
        width=width,
        shown=shown,
        measure=measure,
        tooltip=lambda row: origin(row.job) if row.job else _no_job_reason(row),
        about=about,
        lower_is_better=True,
    )


def _no_job_text(row: GpuRow) -> str:
    """Return a dash where the plan does not run, `unknown` where it does, and `…` while its time is computed."""
    if row.awaits_job:
        return "…"
    return fmt.UNKNOWN if row.verdict in ("fits", "tight") and not row.reason else _NOT_RUN


def _no_job_reason(row: GpuRow) -> str:
    """Return why the plan's job has neither a time nor a cost on this card."""
    if row.verdict == "does-not-fit":
        return no_fit_sentence()
    if row.awaits_job:
        return "It is being computed."
    return row.reason or "Unknown: a figure of the GPU that it needs is not published."


def _device_usable_bytes(row: GpuRow) -> int | None:
    """Return the usable memory of one device of the card in bytes."""
    return row.usable.bytes if row.usable else row.gpu.usable_memory_bytes


def _usable_bytes(row: GpuRow) -> int | None:
    """Return the usable memory of the whole card, over all of its devices."""
    each = _device_usable_bytes(row)
    return None if each is None else each * row.gpu.device_count


def sold_memory_text(gpu: Gpu) -> str:
    """Return a card's memory size as marketed: `94 GB (GiB)`, as makers write GB for 2³⁰ bytes of memory."""
    is_binary = gpu.memory_label.startswith(f"{(gpu.memory_bytes or 0) / GIB:g} GB")
    return f"{gpu.memory_label} (GiB)" if is_binary else gpu.memory_label


def _usable_text(row: GpuRow) -> str:
    """Return the usable memory in GiB, per device if the card has several."""
    each, count = _device_usable_bytes(row), row.gpu.device_count
    if each is None:
        return fmt.UNKNOWN
    shown = fmt.plain(each / GIB)
    return f"{count} × {shown}" if count > 1 else shown


def _rate_column(dtype: str, *, shown: bool = True, about: str = _DENSE) -> Column[GpuRow]:
    """Return the column of arithmetic rates in one number format."""

    def rate_ops_per_s(row: GpuRow) -> float | None:
        return row.gpu.ops_per_s(dtype)

    known_source = _source_reader(f"rate.{dtype}", rate_ops_per_s)

    def rate_source(row: GpuRow) -> str:
        fact = row.lacks.get(dtype)
        return known_source(row) if fact is None else f"{fact.source}\nread {fmt.date(fact.as_of)}"

    return number_column(
        dtype,
        f"{DTYPE_TITLES[dtype]}{'' if dtype in ('fp32', 'fp64') else ' dense'}",
        rate_ops_per_s,
        unit=fmt.rate_unit(dtype),
        per_unit=1e12,
        unknown=lambda row: fmt.NOT_SUPPORTED if dtype in row.lacks else fmt.NOT_PUBLISHED,
        meter=dtype in ("bf16", "fp32"),
        shown=shown,
        tooltip=rate_source,
        about=about,
    )


GPU_COLUMNS: Final[tuple[Column[GpuRow], ...]] = (
    Column(
        "name",
        "Name",
        lambda row: row.gpu.name,
        lambda row: row.marked_name,
        width=24,
        tooltip=lambda row: f"{row.marked_name}\n{row.gpu.id}",
        help="Name of the GPU, without its vendor",
    ),
    fits_column(
        lambda row: row.verdict,
        lambda row: row.reason,
        _fits_tooltip,
        "Whether the plan fits on this GPU, with the plan's number of GPUs",
    ),
    _job_column(
        "job_time",
        "Speed / time",
        lambda job: job.slowness,
        lambda job: job.time,
        lambda job: job.time_origin,
        about="Tokens or samples per second on this GPU; for a run, its duration",
        width=10,
        measure="hours per run or seconds per token",
    ),
    _job_column(
        "job_cost",
        "Plan's cost",
        lambda job: job.usd,
        lambda job: job.cost,
        lambda job: job.cost_origin,
        about="Cost of the plan on this GPU per month or run, at the cheapest comparable offer",
        width=9,
    ),
    _job_column(
        "job_cost_tokens",
        "Cost per million tokens",
        lambda job: job.usd_per_million_tokens,
        lambda job: fmt.money(job.usd_per_million_tokens, _NOT_RUN),
        lambda job: job.cost_origin,
        about="Cost of a million tokens with this plan on this GPU, at the cheapest comparable offer",
        width=12,
        shown=False,
    ),
    BUYING_COLUMN,
    text_column("vendor", "Vendor", lambda row: row.gpu.vendor, width=9, about="Company that designs the chip"),
    text_column("segment", "Segment", lambda row: SEGMENT_TITLES[row.gpu.segment], about="Market segment"),
    text_column(
        "architecture",
        "Architecture",
        lambda row: row.gpu.architecture,
        width=16,
        about="Generation of the chip; GPUs of one generation support the same software",
    ),
    number_column(
        "year",
        "Year",
        lambda row: row.gpu.year,
        show=lambda value: f"{value:.0f}",
        unknown=fmt.UNKNOWN,
        width=7,
        lower_is_better=None,
        about="Year of release",
    ),
    number_column(
        "memory",
        "Memory",
        lambda row: row.gpu.memory_bytes,
        unit="GiB",
        per_unit=GIB,
        width=6,
        meter=True,
        tooltip=lambda row: f"As sold: {sold_memory_text(row.gpu)}\n{fmt.exact_bytes(row.gpu.memory_bytes)}",
        about="Physical memory of the whole GPU",
    ),
    number_column(
        "usable_memory",
        "Usable",
        _usable_bytes,
        unit="GiB",
        per_unit=GIB,
        text=_usable_text,
        shown=False,
        tooltip=lambda row: row.usable.explanation if row.usable else "",
        about="Memory that programs can use",
    ),
    _published_column(
        "bandwidth",
        "Bandwidth",
        "bandwidth_bytes_per_s",
        unit="GB/s",
        per_unit=1e9,
        meter=True,
        about="Memory bandwidth, which limits the speed of token generation",
        lower_is_better=False,
    ),
    _rate_column(
        "fp32", about="Peak rate of the shader (CUDA) cores, which limits work that does not use matrix units"
    ),
    _rate_column("bf16"),
    _rate_column("fp16", shown=False),
    _rate_column("fp8"),
    _rate_column("int8", shown=False),
    _rate_column("fp4", shown=False),
    _published_column("power", "Power", "board_power_watts", unit="W", about="Board power, as published"),
    _published_column(
        "price", "Launch price", "launch_price_usd", show=fmt.money, width=12, about="The vendor's price at launch"
    ),
    _purchase_price_column("street", "Street price"),
    _purchase_price_column("used", "Used price"),
    rent_column(_on_demand_rent, "The catalog has no rental offer for this GPU.", " per GPU and hour"),
    _published_column(
        "paid",
        "Paid",
        "purchase_price_usd",
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        no_source="You have not entered the price that you paid for this GPU.",
        shown=False,
        about="Price that you paid for one GPU, as you entered it",
    ),
    *map(_derived_column, DERIVED_FIGURES.values()),
    text_column(
        "part",
        "Part",
        lambda row: product_kind(row.gpu),
        shown=False,
        width=26,
        about="Part number or chip, to tell variants of one name apart",
    ),
    text_column(
        "compute_capability",
        "Compute capability",
        lambda row: row.gpu.compute_capability,
        shown=False,
        width=18,
        about="NVIDIA's compute capability or AMD's target, which determines what software runs",
    ),
    text_column(
        "interconnect",
        "Interconnect",
        lambda row: row.gpu.interconnect,
        shown=False,
        width=22,
        about="Links to the host and to other GPUs: PCIe, NVLink, Infinity Fabric",
    ),
    text_column(
        "mig",
        "MIG",
        lambda row: fmt.yes_no(row.gpu.mig),
        shown=False,
        width=9,
        about="Whether the GPU supports Multi-Instance GPU: instances with memory of their own",
    ),
    text_column(
        "ecc",
        "ECC",
        lambda row: fmt.yes_no(row.gpu.ecc),
        shown=False,
        width=9,
        about="Whether the GPU's memory has error correction (ECC)",
    ),
    text_column(
        "form_factor",
        "Form factor",
        lambda row: row.gpu.form_factor,
        shown=False,
        width=16,
        about="PCIe card, server module such as SXM, or chip of a laptop",
    ),
    number_column(
        "devices",
        "Devices",
        lambda row: row.gpu.device_count,
        shown=False,
        width=8,
        about="Number of devices that programs see on one GPU",
        lower_is_better=None,
    ),
    text_column(
        "certainty",
        "Sources",
        lambda row: CERTAINTY_TITLES[row.gpu.provenance.certainty],
        shown=False,
        width=22,
        about="How well sources confirm the GPU's figures",
    ),
)
_BY_KEY: Final = {column.key: column for column in GPU_COLUMNS}
