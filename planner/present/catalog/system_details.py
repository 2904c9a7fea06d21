"""What the detail pane shows of a whole machine."""

from planner.hardware.system import System
from planner.present import format as fmt
from planner.present.catalog.build import machine_power_group
from planner.present.catalog.gpu_facts import rent_group
from planner.present.catalog.system_row import SystemRow
from planner.present.catalog.system_totals import BF16, FP16, TOTALS, Total
from planner.present.columns import Detail, DetailGroup
from planner.present.provenance import figure, lacking_detail
from planner.units import GB


def system_details(row: SystemRow) -> tuple[DetailGroup, ...]:
    """Return every figure of a system with its source, how sure it is and when it was read; and what feeds it."""
    around = (
        machine_power_group(row.system),
        rent_group(f"To rent, {row.accelerators} together", row.rented or {}),
    )
    return (
        DetailGroup("Accelerators", _accelerators(row)),
        DetailGroup("Machine", _machine(row.system)),
        DetailGroup("Price", _price(row.system)),
        *(group for group in around if group.details),
    )


def _accelerators(row: SystemRow) -> tuple[Detail, ...]:
    system = row.system
    return (
        _field(system, "gpu_id", "Accelerators", row.accelerators or fmt.UNKNOWN),
        _field(system, "memory_label", "Memory as sold", system.memory_label or fmt.NOT_PUBLISHED),
        _bytes(system, "memory_bytes", "Memory together", system.memory_bytes),
        *(_together(row, total) for total in TOTALS if total is not FP16 or _older(row)),
        _field(system, "interconnect", "Interconnect", system.interconnect or fmt.UNKNOWN),
        _field(system, "topology", "Topology", system.topology or fmt.UNKNOWN),
        *_links(row),
        _field(system, "performance_label", "Performance as sold", system.performance_label or fmt.NOT_PUBLISHED),
        _field(system, "performance_basis", "What that counts", system.performance_basis or fmt.UNKNOWN),
    )


def _links(row: SystemRow) -> tuple[Detail, ...]:
    """Return what the links of each accelerator carry, by its own record."""
    each = row.links_bytes_per_s
    if row.gpu is None or each is None:
        return ()
    text = f"{fmt.quantity(each / GB, 'GB/s')}, both directions together"
    return (figure("Links each", text, row.gpu.provenance_of("interconnect")),)


def _older(row: SystemRow) -> bool:
    """Return whether FP16 is what the accelerators are measured by, for want of BF16."""
    return BF16.value(row.gpu, row.system.gpu_count) is None and FP16.value(row.gpu, row.system.gpu_count) is not None


def _together(row: SystemRow, total: Total) -> Detail:
    """Return a total with its formula, and the source of one accelerator's figure."""
    value, title, source = total.value(row.gpu, row.system.gpu_count), f"{total.title} together", total.source(row.gpu)
    if total.key in row.lacks:
        return lacking_detail(title, row.lacks[total.key])
    if value is None or source is None:
        return Detail(title, fmt.UNKNOWN, basis=total.formula(row.gpu, row.system.gpu_count))
    derived = source.model_copy(update={"basis": "derived", "formula": total.formula(row.gpu, row.system.gpu_count)})
    return figure(title, total.text(value), derived)


def _machine(system: System) -> tuple[Detail, ...]:
    return (
        _field(system, "vendor", "Vendor", system.vendor),
        _field(system, "kind", "Kind", system.kind),
        _field(system, "released", "Released", fmt.date(system.released)),
        _field(system, "host_cpu", "Processor", system.host_cpu or fmt.UNKNOWN),
        _bytes(system, "host_memory_bytes", "Processor memory", system.host_memory_bytes),
        _field(system, "max_power_watts", "Highest power", fmt.power(system.max_power_watts)),
        Detail("Id in the catalog", system.id),
    )


def _price(system: System) -> tuple[Detail, ...]:
    kind = f"Price ({system.price_kind})" if system.price_kind else "Price"
    return (
        _field(system, "price_usd", kind, fmt.money(system.price_usd)),
        _field(system, "price_date", "Price of", fmt.date(system.price_date)),
    )


def _field(system: System, field: str, title: str, text: str) -> Detail:
    return figure(title, text, system.provenance_of(field))


def _bytes(system: System, field: str, title: str, value: int | None) -> Detail:
    exact = "" if value is None else fmt.exact_bytes(value)
    return figure(title, fmt.size(value), system.provenance_of(field), exact)
