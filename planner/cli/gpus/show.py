"""`gpu-planner gpus --show`: one card or system with everything that is known of it and around it."""

from dataclasses import replace
from datetime import date

from pydantic_core import to_json

from planner.cli.details import details
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_hardware
from planner.hardware.software import software_of
from planner.hardware.speeds import speeds_of
from planner.hardware.system import System
from planner.plan.catalog import Catalog
from planner.plan.prices import prices_of, rents_of
from planner.present.catalog.gpu_details import fact_groups, gpu_details
from planner.present.catalog.gpu_row import plain_row
from planner.present.catalog.records import around_card, around_system
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import SystemRow, plain_systems


def show(name: str, catalog: Catalog, today: date, *, as_json: bool) -> int:
    """Print everything that is known of the card or the system that `name` means.

    Raises:
        PlannerError: If it means neither, or several cards.
    """
    found = resolve_hardware(catalog.hardware, name)
    if isinstance(found, System):
        print(_system_json(found, catalog, today) if as_json else _system(found, catalog, today))
    else:
        print(_card_json(found, catalog, today) if as_json else _card(found, catalog, today))
    return 0


def _system(system: System, catalog: Catalog, today: date) -> str:
    """Return the figures of a system with their sources, what feeds it, and what it is rented for."""
    return details(system.name, system_details(_row(system, catalog, today)), system.notes)


def _system_json(system: System, catalog: Catalog, today: date) -> str:
    around = around_system(_row(system, catalog, today))
    return to_json(system.model_dump(mode="json") | around, indent=2).decode()


def _row(system: System, catalog: Catalog, today: date) -> SystemRow:
    (row,) = plain_systems((system,), catalog.hardware, catalog.software)
    return replace(row, rented=rents_of(system, catalog, today))


def _card(gpu: Gpu, catalog: Catalog, today: date) -> str:
    """Return the figures of a card with their sources, its prices, what runs on it and what was measured on it."""
    prices = prices_of(gpu, catalog, today)
    facts = fact_groups(gpu, prices, software_of(gpu, catalog.software), speeds_of(gpu.id, catalog.speeds))
    row = plain_row(gpu, catalog.hardware, {gpu.id: prices}, catalog.software)
    return details(gpu.name, (*gpu_details(gpu, row.usable, row.lacks), *facts), gpu.notes)


def _card_json(gpu: Gpu, catalog: Catalog, today: date) -> str:
    prices, software = prices_of(gpu, catalog, today), software_of(gpu, catalog.software)
    around = around_card(gpu, prices, software, speeds_of(gpu.id, catalog.speeds))
    return to_json(gpu.model_dump(mode="json") | around, indent=2).decode()
