"""Every figure of an accelerator, grouped, with its source."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from planner.hardware.gpu import Gpu, Rate
from planner.hardware.software import SoftwareFact
from planner.hardware.usable import UsableMemory
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import DTYPE_TITLES, SEGMENT_WORDS
from planner.present.columns import Detail, DetailGroup
from planner.present.names import CERTAINTY_WORDS
from planner.present.provenance import ASSUMED_MARK, figure, lacking_detail

_TARGET_TITLES: Final = {"NVIDIA": "Compute capability", "AMD": "ROCm target"}
"""What software is built for on the cards of those makers who number it."""


def gpu_details(
    gpu: Gpu, usable: UsableMemory | None = None, lacks: Mapping[str, SoftwareFact] | None = None
) -> tuple[DetailGroup, ...]:
    """Return every figure of `gpu` with its source, how sure it is and when it was read.

    `lacks` holds the number formats that its chip does not compute in.
    """
    groups = (
        DetailGroup("Memory", _memory(gpu, usable)),
        DetailGroup("Dense rates on matrix units", _rates(gpu, "tensor")),
        DetailGroup("Rates on shader cores", _rates(gpu, "vector")),
        DetailGroup("No rate published", _missing_rates(gpu, lacks or {})),
        DetailGroup("Chip", _chip(gpu)),
        DetailGroup("Board", _board(gpu)),
    )
    return tuple(group for group in groups if group.details)


def _memory(gpu: Gpu, usable: UsableMemory | None) -> tuple[Detail, ...]:
    each = ", on each device" if gpu.device_count > 1 else ""
    bus = fmt.quantity(gpu.memory_bus_bits, "bit", fmt.NOT_PUBLISHED)
    return (
        _field(gpu, "memory_label", "As sold", gpu.memory_label),
        _bytes(gpu, "memory_bytes", "Physical", gpu.memory_bytes),
        replace(_usable(gpu, usable), title=f"Usable by a program{each}"),
        _bytes(gpu, "smi_memory_bytes", f"Total in nvidia-smi{each}", gpu.smi_memory_bytes),
        _field(gpu, "device_count", "Devices on the card", str(gpu.device_count)),
        _field(gpu, "memory_type", "Type", gpu.memory_type or fmt.UNKNOWN),
        _field(gpu, "memory_bus_bits", "Bus", bus),
        _field(gpu, "bandwidth_bytes_per_s", "Bandwidth", fmt.bandwidth(gpu.bandwidth_bytes_per_s)),
        _field(gpu, "unified_memory", "Unified memory", fmt.yes_no(gpu.unified_memory)),
    )


def _usable(gpu: Gpu, usable: UsableMemory | None) -> Detail:
    title = "Usable by a program"
    if usable is None or gpu.usable_memory_bytes is not None:
        return _bytes(gpu, "usable_memory_bytes", title, gpu.usable_memory_bytes)
    exact = f"{fmt.exact_bytes(usable.bytes)}; {fmt.size_range(usable.low_bytes, usable.high_bytes)}"
    certainty = CERTAINTY_WORDS[usable.certainty]
    return Detail(
        title, fmt.size(usable.bytes), usable.source, usable.explanation, certainty, exact=exact, mark=ASSUMED_MARK
    )


def _rates(gpu: Gpu, unit: str) -> tuple[Detail, ...]:
    return tuple(
        figure(_rate_title(rate), fmt.rate(rate.ops_per_s, rate.dtype), rate.provenance or gpu.provenance)
        for rate in gpu.rates
        if rate.unit == unit
    )


def _rate_title(rate: Rate) -> str:
    title = DTYPE_TITLES[rate.dtype]
    return f"{title}, sums in {rate.accumulate}" if rate.accumulate else title


def _missing_rates(gpu: Gpu, lacks: Mapping[str, SoftwareFact]) -> tuple[Detail, ...]:
    missing = [dtype for dtype in DTYPE_TITLES if gpu.rate(dtype) is None]
    unpublished = ", ".join(DTYPE_TITLES[dtype] for dtype in missing if dtype not in lacks)
    lacking = tuple(lacking_detail(DTYPE_TITLES[dtype], lacks[dtype]) for dtype in missing if dtype in lacks)
    return (*((Detail(unpublished, fmt.NOT_PUBLISHED),) if unpublished else ()), *lacking)


def _chip(gpu: Gpu) -> tuple[Detail, ...]:
    clock = fmt.quantity(None if gpu.boost_clock_hz is None else gpu.boost_clock_hz / 1e6, "MHz", fmt.NOT_PUBLISHED)
    return (
        _field(gpu, "architecture", "Architecture", gpu.architecture),
        *_target(gpu),
        _field(gpu, "shader_cores", "Shader cores", _count(gpu.shader_cores)),
        _field(gpu, "tensor_cores", "Matrix units", _count(gpu.tensor_cores)),
        _field(gpu, "boost_clock_hz", "Boost clock", clock),
    )


def _target(gpu: Gpu) -> tuple[Detail, ...]:
    title = _TARGET_TITLES.get(gpu.vendor)
    return (_field(gpu, "compute_capability", title, gpu.compute_capability or fmt.UNKNOWN),) if title else ()


def _board(gpu: Gpu) -> tuple[Detail, ...]:
    return (
        _field(gpu, "vendor", "Vendor", gpu.vendor),
        _field(gpu, "segment", "Segment", SEGMENT_WORDS[gpu.segment]),
        _field(gpu, "released", "Released", fmt.date(gpu.released)),
        _field(gpu, "board_power_watts", "Board power", fmt.power(gpu.board_power_watts)),
        *_power_limit(gpu),
        _field(gpu, "form_factor", "Form factor", gpu.form_factor or fmt.UNKNOWN),
        _field(gpu, "interconnect", "Interconnect", gpu.interconnect or fmt.UNKNOWN),
        _field(gpu, "mig", "MIG", fmt.yes_no(gpu.mig)),
        _field(gpu, "ecc", "ECC", fmt.yes_no(gpu.ecc)),
        _field(gpu, "launch_price_usd", "Launch price", fmt.money(gpu.launch_price_usd)),
        Detail("Id in the catalog", gpu.id),
    )


def _power_limit(gpu: Gpu) -> tuple[Detail, ...]:
    """Return the person's limit, to which power, heat and the cost of running hold; cards without one have no line."""
    if gpu.power_limit_watts is None:
        return ()
    return (_field(gpu, "power_limit_watts", "Power limit of your own", fmt.power(gpu.power_limit_watts)),)


def _count(value: int | None) -> str:
    return fmt.NOT_PUBLISHED if value is None else fmt.integer(value)


def _bytes(gpu: Gpu, field: str, title: str, value: int | None) -> Detail:
    return figure(title, fmt.size(value), gpu.provenance_of(field), "" if value is None else fmt.exact_bytes(value))


def _field(gpu: Gpu, field: str, title: str, text: str) -> Detail:
    return figure(title, text, gpu.provenance_of(field))
