"""Details of an accelerator: its figures with their sources, derived figures, prices, software and measured speeds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from planner.cost.card_prices import BoughtKind, CardPrices, PricePoint, PriceSpread
from planner.cost.terms import RentMode
from planner.hardware.derived import DERIVED_FIGURES, LAUNCH_PRICE, DerivedFigure
from planner.hardware.gpu import Gpu, Rate
from planner.hardware.mig import MigProfile, MigTable
from planner.hardware.published_speeds import TASK_TITLES, PublishedSpeed
from planner.hardware.software_support import FeatureSupport, SoftwareFact
from planner.hardware.usable import UsableMemory
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import DTYPE_TITLES, SEGMENT_TITLES, sold_memory_text
from planner.present.columns import (
    ASSUMED_MARK,
    Detail,
    DetailGroup,
    bytes_detail,
    field_detail,
    figure_detail,
    lacking_detail,
    provenance_mark,
)
from planner.present.cost.prices import RENT_MODE_TITLES, age_phrase, months_text, price_count_text, remarks_text
from planner.present.names import CERTAINTY_TITLES
from planner.units import MIB

_TARGET_TITLES: Final = {"NVIDIA": "Compute capability", "AMD": "ROCm target"}
"""Title of the compilation target's number, by vendor."""


def gpu_details(
    gpu: Gpu, usable: UsableMemory | None = None, lacks: Mapping[str, SoftwareFact] | None = None
) -> tuple[DetailGroup, ...]:
    """Return all figures of `gpu` with source, certainty and the date when the source was read.

    `lacks` holds the number formats that the chip does not support.
    """
    groups = (
        DetailGroup("Memory", _memory_details(gpu, usable)),
        DetailGroup("Dense rates on matrix units", _rate_details(gpu, "tensor")),
        DetailGroup("Rates on shader cores", _rate_details(gpu, "vector")),
        DetailGroup("Formats without a rate", _missing_rate_details(gpu, lacks or {})),
        DetailGroup("Chip", _chip_details(gpu)),
        DetailGroup("Board", _board_details(gpu)),
    )
    return tuple(group for group in groups if group.details)


def _memory_details(gpu: Gpu, usable: UsableMemory | None) -> tuple[Detail, ...]:
    """Return the detail lines on a card's memory."""
    each = ", on each device" if gpu.device_count > 1 else ""
    bus = fmt.quantity(gpu.memory_bus_bits, "bit", fmt.NOT_PUBLISHED)
    return (
        field_detail(gpu, "memory_label", "As sold", sold_memory_text(gpu)),
        bytes_detail(gpu, "memory_bytes", "Physical", gpu.memory_bytes),
        replace(_usable_memory_detail(gpu, usable), title=f"Usable by a program{each}"),
        bytes_detail(gpu, "smi_memory_bytes", f"Total in nvidia-smi{each}", gpu.smi_memory_bytes),
        field_detail(gpu, "device_count", "Devices that programs see", str(gpu.device_count)),
        field_detail(gpu, "memory_type", "Type", gpu.memory_type or fmt.UNKNOWN),
        field_detail(gpu, "memory_bus_bits", "Bus", bus),
        field_detail(gpu, "bandwidth_bytes_per_s", "Bandwidth", fmt.bandwidth(gpu.bandwidth_bytes_per_s)),
        field_detail(gpu, "unified_memory", "Unified memory", fmt.yes_no(gpu.unified_memory)),
    )


def _usable_memory_detail(gpu: Gpu, usable: UsableMemory | None) -> Detail:
    title = "Usable by a program"
    if usable is None or gpu.usable_memory_bytes is not None:
        return bytes_detail(gpu, "usable_memory_bytes", title, gpu.usable_memory_bytes)
    exact = f"{fmt.exact_bytes(usable.bytes)}; {fmt.size_range(usable.low_bytes, usable.high_bytes)}"
    certainty = CERTAINTY_TITLES[usable.certainty]
    return Detail(
        title, fmt.size(usable.bytes), usable.source, usable.explanation, certainty, exact=exact, mark=ASSUMED_MARK
    )


def _rate_details(gpu: Gpu, unit: str) -> tuple[Detail, ...]:
    """Return the detail lines on arithmetic rates of the given unit: matrix units or shader cores."""
    return tuple(
        figure_detail(_rate_title(rate), fmt.rate(rate.ops_per_s, rate.dtype), rate.provenance or gpu.provenance)
        for rate in gpu.rates
        if rate.unit == unit
    )


def _rate_title(rate: Rate) -> str:
    title = DTYPE_TITLES[rate.dtype]
    return f"{title}, {rate.accumulate} accumulation" if rate.accumulate else title


def _missing_rate_details(gpu: Gpu, lacks: Mapping[str, SoftwareFact]) -> tuple[Detail, ...]:
    """Return the detail lines on number formats without a rate: not published, or not supported."""
    missing = [dtype for dtype in DTYPE_TITLES if gpu.rate(dtype) is None]
    unpublished = ", ".join(DTYPE_TITLES[dtype] for dtype in missing if dtype not in lacks)
    lacking = tuple(lacking_detail(DTYPE_TITLES[dtype], lacks[dtype]) for dtype in missing if dtype in lacks)
    return (*((Detail(unpublished, fmt.NOT_PUBLISHED),) if unpublished else ()), *lacking)


def _chip_details(gpu: Gpu) -> tuple[Detail, ...]:
    clock = fmt.quantity(None if gpu.boost_clock_hz is None else gpu.boost_clock_hz / 1e6, "MHz", fmt.NOT_PUBLISHED)
    return (
        field_detail(gpu, "architecture", "Architecture", gpu.architecture),
        *_target_details(gpu),
        field_detail(gpu, "shader_cores", "Shader cores", _count_text(gpu.shader_cores)),
        field_detail(gpu, "tensor_cores", "Matrix units", _count_text(gpu.tensor_cores)),
        field_detail(gpu, "boost_clock_hz", "Boost clock", clock),
        *_cache_details(gpu),
    )


def _target_details(gpu: Gpu) -> tuple[Detail, ...]:
    title = _TARGET_TITLES.get(gpu.vendor)
    return (field_detail(gpu, "compute_capability", title, gpu.compute_capability or fmt.UNKNOWN),) if title else ()


def _board_details(gpu: Gpu) -> tuple[Detail, ...]:
    return (
        field_detail(gpu, "vendor", "Vendor", gpu.vendor),
        field_detail(gpu, "segment", "Segment", SEGMENT_TITLES[gpu.segment]),
        *_announced_details(gpu),
        field_detail(gpu, "released", "First sold or rented", fmt.date(gpu.released)),
        field_detail(gpu, "board_power_watts", "Board power", fmt.power(gpu.board_power_watts)),
        *_power_limit_details(gpu),
        *((field_detail(gpu, "machines", "Sold in", ", ".join(gpu.machines)),) if gpu.machines else ()),
        field_detail(gpu, "form_factor", "Form factor", gpu.form_factor or fmt.UNKNOWN),
        field_detail(gpu, "interconnect", "Interconnect", gpu.interconnect or fmt.UNKNOWN),
        field_detail(gpu, "mig", "MIG", fmt.yes_no(gpu.mig)),
        field_detail(gpu, "ecc", "ECC", fmt.yes_no(gpu.ecc)),
        field_detail(gpu, "launch_price_usd", "Launch price", fmt.money(gpu.launch_price_usd)),
        Detail("Id in the catalog", gpu.id),
    )


def _announced_details(gpu: Gpu) -> tuple[Detail, ...]:
    """Return the date of the announcement as a detail line, where it is known apart from that of the first sale."""
    return () if gpu.announced is None else (field_detail(gpu, "announced", "Announced", fmt.date(gpu.announced)),)


def _cache_details(gpu: Gpu) -> Iterator[Detail]:
    """Yield the detail lines on the caches whose sizes are known."""
    for field, title in (("l1_cache_bytes", "L1 cache"), ("l2_cache_bytes", "L2 cache")):
        size: int | None = getattr(gpu, field)
        if size is not None:
            yield field_detail(gpu, field, title, f"{size / MIB:,.4g} MiB")


def _power_limit_details(gpu: Gpu) -> tuple[Detail, ...]:
    """Return the user's power limit for the card as a detail line, if there is one."""
    if gpu.power_limit_watts is None:
        return ()
    return (field_detail(gpu, "power_limit_watts", "Your power limit", fmt.power(gpu.power_limit_watts)),)


def _count_text(value: int | None) -> str:
    return fmt.NOT_PUBLISHED if value is None else fmt.integer(value)


def slice_group(table: MigTable | None, verdicts: Mapping[str, str] | None = None) -> DetailGroup:
    """Return the slices (MIG) that a card can be divided into; `verdicts` holds the plan's on each, by profile."""
    if table is None:
        return DetailGroup("Slices (MIG)", ())
    return DetailGroup("Slices (MIG)", tuple(_slice_detail(table, each, verdicts or {}) for each in table.profiles))


def _slice_detail(table: MigTable, profile: MigProfile, verdicts: Mapping[str, str]) -> Detail:
    """Return the detail line of a profile: memory, multiprocessors, share of the bandwidth, number and engines."""
    engines = [
        *([profile.extra] if profile.extra else []),
        *([fmt.plural(profile.decoders, "decoder")] if profile.decoders else []),
        *([fmt.plural(profile.copy_engines, "copy engine")] if profile.copy_engines else []),
    ]
    parts = (
        fmt.size(profile.memory_bytes),
        f"{profile.multiprocessors} of {table.multiprocessors} multiprocessors",
        f"{profile.memory_slices} of {table.memory_slices} of the bandwidth",
        f"at most {profile.most}",
        *engines,
        *filter(None, (verdicts.get(profile.name),)),
    )
    provenance = table.provenance
    mark = ASSUMED_MARK if profile.assumed else provenance_mark(provenance)
    places = f"memory slices {', '.join(map(str, profile.starts))} to start at"
    return Detail(
        profile.name,
        " · ".join(parts),
        provenance.source,
        basis=places,
        as_of=f"read {fmt.date(provenance.as_of)}",
        mark=mark,
    )


PURCHASE_PRICE_TITLES: Final = {
    "list": "List price",
    "partner": "Board partner price",
    "street": "Street price",
    "used": "Used price",
}
_DERIVED_FROM: Final[tuple[BoughtKind, ...]] = ("street", "used")
_CHEAPEST_SHOWN: Final = 3
_CENTS_MATTER: Final = 0.1
_DOLLARS_MATTER: Final = 100.0


def fact_groups(
    gpu: Gpu, prices: CardPrices, software: Iterable[FeatureSupport], speeds: Iterable[PublishedSpeed]
) -> tuple[DetailGroup, ...]:
    """Return the derived figures, prices, software support and measured speeds of a card, without empty groups."""
    known = (derived_group(gpu, prices), price_group(gpu, prices))
    groups = (*known, software_group(software), speed_group(speeds, prices))
    return tuple(group for group in groups if group.details)


def derived_group(gpu: Gpu, prices: CardPrices) -> DetailGroup:
    """Return the card's derived figures with formulas in numbers, where all inputs are known.

    Figures that involve a price are listed once for each kind of price.
    """
    return DetailGroup("Derived", tuple(_derived_details(gpu, prices)))


def _derived_details(gpu: Gpu, prices: CardPrices) -> Iterator[Detail]:
    """Yield the detail lines on derived figures, by each kind of price that they involve."""
    for derived in DERIVED_FIGURES.values():
        yield from _derived_figure(derived, derived.title, gpu, None, LAUNCH_PRICE)
        yours = gpu.purchase_price_usd
        if derived.has_price and yours is not None:
            yield from _derived_figure(derived, f"{derived.title}, as you paid", gpu, yours, "your price")
        for kind in _DERIVED_FROM:
            if derived.has_price and kind in prices.bought:
                spread = prices.bought[kind]
                name = f"median {kind} price ({months_text(spread.current)})"
                yield from _derived_figure(derived, f"{derived.title}, {kind}", gpu, spread.median_usd, name)


def _derived_figure(
    derived_figure: DerivedFigure, title: str, gpu: Gpu, price_usd: float | None, price_name: str
) -> Iterator[Detail]:
    value = derived_figure.value(gpu, price_usd)
    if value is not None:
        explained = derived_figure.explained(gpu, price_usd, price_name)
        yield Detail(title, f"{fmt.significant(value)} {derived_figure.unit}", basis=explained)


def price_group(gpu: Gpu, prices: CardPrices) -> DetailGroup:
    """Return the price that the user paid, and each kind of price with range, age, history and cheapest rentals."""
    return DetailGroup("Prices", (*_paid_price_details(gpu), *_price_details(prices)))


def _paid_price_details(gpu: Gpu) -> Iterator[Detail]:
    if gpu.purchase_price_usd is not None:
        yield figure_detail("Paid by you", _usd_text(gpu.purchase_price_usd), gpu.provenance_of("purchase_price_usd"))


def _price_details(prices: CardPrices) -> Iterator[Detail]:
    for kind, spread in prices.bought.items():
        yield _price_range_detail(PURCHASE_PRICE_TITLES[kind], spread, "")
        if kind != "list" and (remarks := remarks_text(spread.current)):
            yield Detail("  remarks", remarks)
        yield from map(_price_history_detail, spread.histories)
    if prices.servers:
        yield _price_range_detail("As part of a server, per GPU", PriceSpread(prices.servers), "")
    yield from _rent_details(prices.rented)
    if prices.doubtful:
        count = fmt.plural(len(prices.doubtful), "price")
        yield Detail("  left out", f"{count} in doubt", basis=_doubts_text(prices.doubtful))


def rent_group(title: str, rented: Mapping[RentMode, PriceSpread]) -> DetailGroup:
    """Return hourly rental prices by rental mode, with the cheapest offers of each mode."""
    return DetailGroup(title, tuple(_rent_details(rented)))


def _rent_details(rented: Mapping[RentMode, PriceSpread]) -> Iterator[Detail]:
    for mode, spread in rented.items():
        yield _price_range_detail(f"Rented, {RENT_MODE_TITLES[mode]}", spread, " per hour")
        yield from (_offer_detail(point) for point in spread.by_seller[:_CHEAPEST_SHOWN])
        yield from map(_price_history_detail, spread.histories)


def _price_range_detail(title: str, spread: PriceSpread, unit: str) -> Detail:
    """Return the detail line on a range of prices."""
    low, high = spread.low, spread.high
    same = low.price_usd == high.price_usd
    text = _usd_text(low.price_usd) if same else f"{_usd_text(low.price_usd)} to {_usd_text(high.price_usd)}"
    count = f", {price_count_text(spread)}" if len(spread.points) > 1 or not spread.latest.day else ""
    age = age_phrase(spread.latest.age_days)
    return Detail(title, f"{text}{unit}{count}", spread.latest.source, as_of=age)


def _usd_text(usd: float) -> str:
    """Return an amount in US dollars as text."""
    if usd < _CENTS_MATTER:
        return f"${fmt.significant(usd)}"
    return f"${usd:,.2f}" if usd < _DOLLARS_MATTER else fmt.money(usd)


def _price_history_detail(series: tuple[PricePoint, ...]) -> Detail:
    """Return the price history of one seller."""
    last = series[-1]
    text = ", then ".join(f"{_usd_text(point.price_usd)} on {fmt.date(point.price_date)}" for point in series)
    if len({point.price_usd for point in series}) == 1:
        text = f"{_usd_text(last.price_usd)} from {fmt.date(series[0].price_date)} to {fmt.date(last.price_date)}"
    together = f", {fmt.plural(round(last.cards), 'GPU')} together" if last.cards > 1 else ""
    return Detail(f"  over time, {_seller_text(last)}{together}", text, last.source, as_of=age_phrase(last.age_days))


def _offer_detail(point: PricePoint) -> Detail:
    return Detail(
        f"  {_seller_text(point)}", _usd_text(point.price_usd), point.source, as_of=age_phrase(point.age_days)
    )


def _seller_text(point: PricePoint) -> str:
    return f"{point.seller} {point.region}" if point.region else point.seller


def _doubts_text(points: Iterable[PricePoint]) -> str:
    """Return the first doubt about each price as text."""
    return "; ".join(dict.fromkeys(point.remarks[0] for point in points if point.remarks))


def software_group(software: Iterable[FeatureSupport]) -> DetailGroup:
    """Return the card's software support; unknown, with the reason, where no source states it."""
    return DetailGroup("Software", tuple(_feature_detail(support) for support in software))


def _feature_detail(support: FeatureSupport) -> Detail:
    if support.support is None:
        return Detail(support.title, f"{fmt.UNKNOWN}: {support.reason}")
    words = ", ".join(part for part in (support.support, support.versions) if part)
    text = f"{words}: {support.reason}" if support.reason else words
    return Detail(support.title, text, support.source, as_of=f"read {fmt.date(support.as_of)}")


def speed_group(speeds: Iterable[PublishedSpeed], prices: CardPrices) -> DetailGroup:
    """Return speeds measured on the card, with the cost per million tokens or samples at the lowest rent."""
    rented: RentMode = "on-demand"
    cheapest = prices.rented[rented].low.price_usd if rented in prices.rented else None
    texts = tuple(_speed_detail(speed, cheapest) for speed in speeds)
    if cheapest is None or not texts:
        return DetailGroup("Published benchmarks", texts)
    return DetailGroup("Published benchmarks", (Detail("At a rent of", f"{_usd_text(cheapest)} per hour"), *texts))


def _speed_detail(speed: PublishedSpeed, usd_per_gpu_hour: float | None) -> Detail:
    cards = f"{speed.gpu_count} GPUs, " if speed.gpu_count > 1 else ""
    each = " on each GPU" if speed.per_gpu and speed.gpu_count > 1 else ""
    text = f"{fmt.significant(speed.value_per_second)} {speed.unit}{each}"
    if usd_per_gpu_hour is not None:
        text += f", {_usd_text(speed.usd_per_million(usd_per_gpu_hour))} per million"
    precision = f" {speed.precision}" if speed.precision else ""
    title = f"{speed.model}{precision}, {cards}{TASK_TITLES[speed.task]}"
    return Detail(title, text, speed.source, speed.settings, as_of=f"read {fmt.date(speed.as_of)}")
