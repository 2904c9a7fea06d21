"""Details of a system (a whole machine), and of the power and cooling of several cards in one machine."""

from collections.abc import Iterable

from planner.hardware.gpu import Gpu
from planner.hardware.power import (
    DEFAULT_CIRCUIT,
    Build,
    BuildCards,
    Circuit,
    PowerFigure,
    machine_figures,
    power_and_cooling,
    smallest_circuit,
)
from planner.hardware.system import System
from planner.present import format as fmt
from planner.present.catalog.gpu_details import rent_group
from planner.present.catalog.system_row import BF16, FP16, TOTALS, AcceleratorTotal, SystemRow
from planner.present.columns import (
    DERIVED_MARK,
    Detail,
    DetailGroup,
    bytes_detail,
    field_detail,
    figure_detail,
    lacking_detail,
)
from planner.units import GB


def power_group(gpu: Gpu, count: int, circuit: Circuit = DEFAULT_CIRCUIT) -> DetailGroup:
    """Return the power and cooling of `count` cards in one machine, with formulas and sources."""
    build = Build((BuildCards(gpu, count),), circuit=circuit)
    found = power_and_cooling(build)
    cables = [Detail("Cables", ", ".join(found.connectors))] if found.connectors else []
    warnings = [Detail("Warning", warning) for warning in found.warnings]
    figures = _power_figure_details(found.steps, build.circuit)
    return DetailGroup(f"Power and cooling of {fmt.plural(count, 'GPU')}", (*figures, *cables, *warnings))


def machine_power_group(system: System) -> DetailGroup:
    """Return the power supply and cooling of a whole machine; empty if its power is not known."""
    if system.max_power_watts is None:
        return DetailGroup("Power and cooling", ())
    circuit = smallest_circuit(system.max_power_watts)
    steps = machine_figures(system, circuit)
    return DetailGroup(
        "Power and cooling", (*_power_figure_details(steps, circuit), Detail("Assumed", "air cooling only"))
    )


def _power_figure_details(steps: Iterable[PowerFigure], circuit: Circuit) -> tuple[Detail, ...]:
    figures = (
        Detail(step.title, _amount_text(step), step.source, step.formula, mark=DERIVED_MARK)
        for step in steps
        if step.value is not None
    )
    return (Detail("Circuit", circuit.name, "assumed"), *figures)


def _amount_text(step: PowerFigure) -> str:
    """Return the value of a power figure with its unit."""
    return fmt.quantity(step.value, step.unit) if step.unit else fmt.plain(step.value or 0)


def system_details(row: SystemRow) -> tuple[DetailGroup, ...]:
    """Return every figure of a system with its source, certainty and date, its rents, and its power and cooling."""
    around = (
        machine_power_group(row.system),
        rent_group(f"Rental offers of {row.accelerators}", row.rented or {}),
    )
    return (
        DetailGroup("Accelerators", _accelerator_details(row)),
        DetailGroup("Machine", _machine_details(row.system)),
        DetailGroup("Price", _price_details(row.system)),
        *(group for group in around if group.details),
    )


def _accelerator_details(row: SystemRow) -> tuple[Detail, ...]:
    system = row.system
    return (
        field_detail(system, "gpu_id", "Accelerators", row.accelerators or fmt.UNKNOWN),
        field_detail(system, "memory_label", "Memory as sold", system.memory_label or fmt.NOT_PUBLISHED),
        bytes_detail(system, "memory_bytes", "Total memory", system.memory_bytes),
        *(_total_detail(row, total) for total in TOTALS if total is not FP16 or _is_older_than_bf16(row)),
        field_detail(system, "interconnect", "Interconnect", system.interconnect or fmt.UNKNOWN),
        field_detail(system, "topology", "Topology", system.topology or fmt.UNKNOWN),
        *_link_details(row),
        field_detail(system, "performance_label", "Performance as sold", system.performance_label or fmt.NOT_PUBLISHED),
        field_detail(
            system, "performance_basis", "Basis of the performance as sold", system.performance_basis or fmt.UNKNOWN
        ),
    )


def _link_details(row: SystemRow) -> tuple[Detail, ...]:
    """Return the link bandwidth of each accelerator, from the accelerator's own record."""
    each = row.links_bytes_per_s
    if row.gpu is None or each is None:
        return ()
    text = f"{fmt.quantity(each / GB, 'GB/s')}, sum of both directions"
    return (figure_detail("Links per accelerator", text, row.gpu.provenance_of("interconnect")),)


def _is_older_than_bf16(row: SystemRow) -> bool:
    """Return whether the system's accelerators have an FP16 but no BF16 rate."""
    return BF16.value(row.gpu, row.system.gpu_count) is None and FP16.value(row.gpu, row.system.gpu_count) is not None


def _total_detail(row: SystemRow, total: AcceleratorTotal) -> Detail:
    """Return a total over all accelerators with its formula, and the source of one accelerator's figure."""
    value, source = total.value(row.gpu, row.system.gpu_count), total.source(row.gpu)
    title = f"Total {total.title if total.title[:2].isupper() else total.title.lower()}"
    if total.key in row.lacks:
        return lacking_detail(title, row.lacks[total.key])
    if value is None or source is None:
        return Detail(title, fmt.UNKNOWN, basis=total.formula(row.gpu, row.system.gpu_count))
    derived = source.model_copy(update={"basis": "derived", "formula": total.formula(row.gpu, row.system.gpu_count)})
    return figure_detail(title, total.text(value), derived)


def _machine_details(system: System) -> tuple[Detail, ...]:
    return (
        field_detail(system, "vendor", "Vendor", system.vendor),
        field_detail(system, "kind", "Kind", system.kind),
        *(
            (field_detail(system, "announced", "Announced", fmt.date(system.announced)),)
            if system.announced is not None
            else ()
        ),
        field_detail(system, "released", "First sold or rented", fmt.date(system.released)),
        field_detail(system, "host_cpu", "Processor", system.host_cpu or fmt.UNKNOWN),
        bytes_detail(system, "host_memory_bytes", "Host memory", system.host_memory_bytes),
        field_detail(system, "max_power_watts", "Maximum power", fmt.power(system.max_power_watts)),
        Detail("Id in the catalog", system.id),
    )


def _price_details(system: System) -> tuple[Detail, ...]:
    kind = f"Price ({system.price_kind})" if system.price_kind else "Price"
    return (
        field_detail(system, "price_usd", kind, fmt.money(system.price_usd)),
        field_detail(system, "price_date", "Price date", fmt.date(system.price_date)),
    )
