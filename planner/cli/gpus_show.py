"""`gpu-planner gpus --show`: one card with everything that is known of it and around it."""

from datetime import date

from planner.cli.details import details
from planner.hardware.gpu import Gpu
from planner.hardware.software import software_of
from planner.hardware.speeds import speeds_of
from planner.plan.catalog import Catalog
from planner.plan.prices import prices_of
from planner.present.card_facts import fact_groups
from planner.present.gpu_details import gpu_details


def show(gpu: Gpu, catalog: Catalog, today: date, *, as_json: bool) -> int:
    """Print the figures of `gpu` with their sources, its prices, what runs on it and what was measured on it."""
    if as_json:
        print(gpu.model_dump_json(indent=2))
        return 0
    facts = fact_groups(
        gpu, prices_of(gpu, catalog, today), software_of(gpu, catalog.software), speeds_of(gpu.id, catalog.speeds)
    )
    print(details(gpu.name, (*gpu_details(gpu, catalog.hardware.usable_memory(gpu)), *facts), gpu.notes))
    return 0
