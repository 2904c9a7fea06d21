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
from planner.present.gpu_row import plain_rows


def show(gpu: Gpu, catalog: Catalog, today: date, *, as_json: bool) -> int:
    """Print the figures of `gpu` with their sources, its prices, what runs on it and what was measured on it."""
    if as_json:
        print(gpu.model_dump_json(indent=2))
        return 0
    prices = prices_of(gpu, catalog, today)
    facts = fact_groups(gpu, prices, software_of(gpu, catalog.software), speeds_of(gpu.id, catalog.speeds))
    (row,) = plain_rows((gpu,), catalog.hardware, {gpu.id: prices}, catalog.software)
    print(details(gpu.name, (*gpu_details(gpu, row.usable, row.lacks), *facts), gpu.notes))
    return 0
