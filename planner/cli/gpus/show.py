"""`gpu-planner gpus --show`, `--compare` and `--here`: one card or system, several side by side, detected cards."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import groupby
from typing import Final

from pydantic_core import to_json

from planner.cli.gpus.search import family_text, plan_of_fits
from planner.cli.table import TableColumn, details, table, terminal_width
from planner.cli.user_catalog import named_cards, named_machines
from planner.cost.card_prices import CardPrices
from planner.cost.figure import Figure
from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.mig import place_slices
from planner.hardware.names import hardware_family, resolve_gpu, resolve_hardware
from planner.hardware.published_speeds import speeds_of
from planner.hardware.software_support import software_of
from planner.hardware.system import System
from planner.monitor.readings.inventory import Device
from planner.plan.catalog import Catalog
from planner.plan.measured import matching_gpus
from planner.plan.placement import Placement, place_on_all
from planner.plan.prices import buying_prices, prices_of, rents_of
from planner.present import format as fmt
from planner.present.catalog.comparison import (
    MAX_COMPARED,
    ComparedFigureRow,
    ComparisonEntry,
    card_entry,
    compared_notes,
    comparison_rows,
    infeasible_reason,
    is_feasible,
    side_by_side,
    system_entry,
)
from planner.present.catalog.detected_cards import fact_lines
from planner.present.catalog.gpu_details import fact_groups, gpu_details, slice_group
from planner.present.catalog.gpu_row import GpuRow, gpu_row_without_plan
from planner.present.catalog.records import card_facts, comparison_totals, system_facts
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import SystemRow, system_rows_without_plan
from planner.present.columns import rows_to_csv
from planner.present.cost.time import unknown_time_sentence


def print_hardware(name: str, catalog: Catalog, today: date, *, as_json: bool) -> int:
    """Print all details of the card or system called `name`; of a name that several share, a list of them.

    Raises:
        PlannerError: If there is no such card or system.
    """
    hardware_record, *others = members = _records_named(name, catalog.hardware)
    if others:
        print(
            to_json([each.model_dump(mode="json") for each in members], indent=2).decode()
            if as_json
            else family_text(name, members, catalog)
        )
        return 0
    if isinstance(hardware_record, System):
        print(
            _system_json(hardware_record, catalog, today) if as_json else _system_text(hardware_record, catalog, today)
        )
    else:
        print(_card_json(hardware_record, catalog, today) if as_json else _card_text(hardware_record, catalog, today))
    return 0


def print_division(card: str, profiles: Sequence[str], hardware: HardwareCatalog, *, as_json: bool) -> int:
    """Print where the slices `profiles` (MIG) lie on the card called `card`.

    Raises:
        SpecError: If the card cannot be divided, or not so; it names the rule.
    """
    gpu = resolve_gpu(hardware, card)
    mig = hardware.mig_table(gpu)
    if mig is None:
        raise SpecError("--slices", f"{gpu.name} cannot be divided into slices (MIG), or its profiles are not known")
    try:
        placed = place_slices(mig, profiles)
    except SpecError as error:
        raise SpecError("--slices", f"{' + '.join(profiles)}: {error.reason}", error.hint) from error
    if as_json:
        print(to_json([each.model_dump(mode="json") for each in placed], indent=2).decode())
        return 0
    kinds = {each.name: each for each in mig.profiles}
    lines = [
        (
            each.profile,
            str(each.start) if each.size == 1 else f"{each.start} to {each.start + each.size - 1}",
            fmt.size(kinds[each.profile].memory_bytes),
            str(kinds[each.profile].multiprocessors),
        )
        for each in placed
    ]
    heads = [TableColumn("Slice"), TableColumn("Memory slices"), *(TableColumn(name, "right") for name in _DIVIDED)]
    print(f"{gpu.name}\n\n{table(heads, lines, terminal_width())}")
    return 0


_DIVIDED: Final = ("Memory", "Multiprocessors")


def _records_named(name: str, hardware: HardwareCatalog) -> tuple[Gpu | System, ...]:
    """Return the record called `name`, or all that share the name.

    Raises:
        SpecError: If there is none.
    """
    try:
        return (resolve_hardware(hardware, name),)
    except SpecError:
        family = hardware_family(hardware, name)
        if not family:
            raise
        return family


def _system_text(system: System, catalog: Catalog, today: date) -> str:
    """Return a system as text: figures with sources, power and cooling, and rents."""
    return details(system.name, system_details(_system_row(system, catalog, today)), system.notes)


def _system_json(system: System, catalog: Catalog, today: date) -> str:
    further_facts = system_facts(_system_row(system, catalog, today))
    return to_json(system.model_dump(mode="json") | further_facts, indent=2).decode()


def _system_row(system: System, catalog: Catalog, today: date) -> SystemRow:
    (row,) = system_rows_without_plan((system,), catalog.hardware, catalog.software)
    return replace(row, rented=rents_of(system, catalog, today))


def _card_text(gpu: Gpu, catalog: Catalog, today: date) -> str:
    """Return a card as text: figures with sources, prices, software support and measured speeds."""
    prices = prices_of(gpu, catalog, today)
    facts = fact_groups(gpu, prices, software_of(gpu, catalog.software), speeds_of(gpu.id, catalog.speeds))
    row = gpu_row_without_plan(gpu, catalog.hardware, {gpu.id: prices}, catalog.software)
    divided = slice_group(catalog.hardware.mig_table(gpu))
    groups = (*gpu_details(gpu, row.usable, row.lacks), *((divided,) if divided.details else ()), *facts)
    return details(gpu.name, groups, gpu.notes)


def _card_json(gpu: Gpu, catalog: Catalog, today: date) -> str:
    prices, software = prices_of(gpu, catalog, today), software_of(gpu, catalog.software)
    further_facts = card_facts(gpu, prices, software, speeds_of(gpu.id, catalog.speeds))
    return to_json(gpu.model_dump(mode="json") | further_facts, indent=2).decode()


_BEST_MARK: Final = " *"
_TIME_FIELDS: Final = {"kind", "seconds", "low_seconds", "high_seconds", "tokens_per_second", "samples_per_second"}
_RENT_FIELDS: Final = {
    *("offer_id", "provider", "region", "mode", "gpu_count", "usd", "low_usd", "high_usd"),
    *("usd_per_gpu_hour", "usd_per_million_tokens", "oldest_price_date"),
}
_OWN_FIELDS: Final = {
    "usd_per_period",
    "usd_per_gpu_hour",
    "usd_per_million_tokens",
    "upfront_usd",
    "oldest_price_date",
}


def print_comparison(
    arguments: argparse.Namespace, catalog: Catalog, prices: Mapping[str, CardPrices], today: date
) -> int:
    """Print cards and systems side by side, with the plan of `--fits` on each; the best figures have a star.

    Raises:
        PlannerError: If a name is unknown or ambiguous, or there are too many names.
    """
    if len(arguments.compare) > MAX_COMPARED:
        raise SpecError(
            "--compare", f"{len(arguments.compare)} are too many", f"At most {MAX_COMPARED} can be compared."
        )
    buying = buying_prices(catalog, today)
    entries = [_comparison_entry(name, catalog, prices, buying) for name in arguments.compare]
    placements = _placements(arguments, entries, catalog, today) if arguments.fits else {}
    rows = side_by_side(entries, placements)
    if arguments.json:
        print(to_json([_comparison_record(entry, placements.get(entry.id)) for entry in entries], indent=2).decode())
    elif arguments.csv:
        print(rows_to_csv(comparison_rows(entries, rows)), end="")
    else:
        heads = [
            TableColumn("", flexible=True),
            *(TableColumn(entry.title, "right", flexible=True) for entry in entries),
        ]
        shown = table(heads, list(_comparison_lines(entries, rows)), terminal_width())
        notes = "".join(f"\n{note}" for note in compared_notes(entries, placements))
        print(f"{shown}\n\n* best in its row{notes}")
    return 0


def _comparison_record(entry: ComparisonEntry, placement: Placement | None) -> dict[str, object] | None:
    """Return the JSON record of a compared entry, with the plan's results on the entry if there is a plan."""
    source = entry.system.system if entry.system is not None else entry.row.gpu if entry.row is not None else None
    if source is None:
        return None
    return {
        **source.model_dump(mode="json"),
        "count": entry.count,
        "machines": None if entry.system is None else entry.machines,
        "totals": comparison_totals(entry),
        **({} if placement is None else {"plan": _plan_outcome_record(placement)}),
    }


def _plan_outcome_record(placement: Placement) -> dict[str, object]:
    evaluation = placement.evaluation
    if evaluation is None:
        return {"verdict": None, "reason": placement.reason}
    memory, time = evaluation.memory, evaluation.time if is_feasible(evaluation) else None
    estimate = placement.cost.estimate if placement.cost is not None and is_feasible(evaluation) else None
    rent, own = (None, None) if estimate is None else (estimate.result.rent, estimate.result.own)
    return {
        "verdict": memory.verdict,
        "reason": None if is_feasible(evaluation) else infeasible_reason(evaluation),
        "total_bytes": memory.total_bytes,
        "free_bytes": memory.free_bytes,
        "time": None if time is None else time.model_dump(mode="json", include=_TIME_FIELDS),
        "period": None if estimate is None else estimate.demand.period,
        "rent": None if rent is None else rent.model_dump(mode="json", include=_RENT_FIELDS),
        "own": None if own is None else own.model_dump(mode="json", include=_OWN_FIELDS),
        "time_reason": None if time is None or time.seconds is not None else unknown_time_sentence(time),
        "cost_reason": placement.cost.reason or None if placement.cost is not None else None,
    }


def _comparison_lines(
    entries: Sequence[ComparisonEntry], rows: Sequence[ComparedFigureRow]
) -> Iterator[tuple[str, ...]]:
    for group, figures in groupby(rows, key=lambda row: row.group):
        yield (group, *("" for _ in entries))
        for row in figures:
            yield (f"  {row.title}", *(f"{cell.text}{_BEST_MARK}" if cell.is_best else cell.text for cell in row.cells))


def _comparison_entry(
    name: str, catalog: Catalog, prices: Mapping[str, CardPrices], buying: Mapping[str, Figure]
) -> ComparisonEntry:
    machines = named_machines(name, catalog.hardware, "--compare")

    def gpu_row(gpu: Gpu) -> GpuRow:
        return gpu_row_without_plan(gpu, catalog.hardware, prices, catalog.software, buying.get(gpu.id))

    if machines is not None:
        number, system = machines
        return system_entry(name, system, catalog.hardware, gpu_row, number)
    (cards,) = named_cards([name], catalog, "--compare")
    return card_entry(name, gpu_row(catalog.hardware.gpu(cards.id)), cards.count)


def _placements(
    arguments: argparse.Namespace, entries: Sequence[ComparisonEntry], catalog: Catalog, today: date
) -> Mapping[str, Placement]:
    """Return the plan of `--fits` placed on each entry, by entry id."""
    return place_on_all(plan_of_fits(arguments, catalog), {entry.id: entry.cards for entry in entries}, catalog, today)


def print_detected_cards(hardware: HardwareCatalog, *, as_json: bool) -> int:
    """Print the cards of this machine with the matching cards of the catalog, by name and memory.

    Raises:
        MonitorUnavailableError: If no card can be read; the error gives the reason.
    """
    devices = [device for device in _detected_devices() if device.mig_parent is None]
    matches = [(device, matching_gpus(hardware, device)) for device in devices]
    if as_json:
        print(to_json([_device_record(device, gpus) for device, gpus in matches], indent=2).decode())
    else:
        print("\n\n".join("\n".join(_device_lines(device, gpus)) for device, gpus in matches))
    return 0


def _detected_devices() -> tuple[Device, ...]:
    from planner.monitor.doctor import readings_blocking_fault, unavailable_error  # only this option needs the monitor
    from planner.monitor.supervisor.snapshot import take_snapshot

    latest = take_snapshot()
    fault = readings_blocking_fault(latest)
    if fault is not None:
        raise unavailable_error(fault)
    return latest.inventory.devices


def _device_record(device: Device, gpus: tuple[Gpu, ...]) -> dict[str, object]:
    return {
        "index": device.index,
        "uuid": device.uuid,
        "name": device.name,
        "facts": {name: reading.value for name, reading in device.facts.items()},
        "gpus": [gpu.id for gpu in gpus],
    }


def _device_lines(device: Device, gpus: tuple[Gpu, ...]) -> Iterator[str]:
    total = device.fact("memory_total_bytes")
    size = fmt.size(None if total is None else int(total))
    yield f"{device.index}: {device.name}, {size} reported by the driver"
    if len(gpus) == 1:
        gpu = gpus[0]
        figures = (fmt.bandwidth(gpu.bandwidth_bytes_per_s), fmt.power(gpu.board_power_watts))
        yield f"   in the catalog: {gpu.id} ({gpu.name}), {gpu.memory_label}, {', '.join(figures)}"
    elif gpus:
        yield f"   in the catalog one of: {', '.join(gpu.id for gpu in gpus)} (same name and memory)"
    else:
        yield "   not in the catalog under this name and memory; reported by the driver:"
        yield from (f"     {line}" for line in fact_lines(device))
