"""The catalog with the user's own hardware and fetched prices, and the cards and systems named on the command line."""

import sys
from collections.abc import Sequence
from typing import Final

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import parse_count, resolve_hardware
from planner.hardware.system import System
from planner.paths import own_hardware_file, prices_dir
from planner.plan.catalog import Catalog, load_catalog_or_bundled
from planner.workload.parallel import CardCount


def user_catalog() -> Catalog:
    """Return the catalog with the user's own hardware and the prices in use; bundled files are parsed on demand.

    If the user's hardware file cannot be read, a warning is printed on stderr and the file is ignored.

    Raises:
        CatalogError: If a bundled record does not validate.
    """
    catalog, own_hardware_error = load_catalog_or_bundled(prices_dir(), own_hardware_file(), on_demand=True)
    if own_hardware_error is not None:
        print(
            f"warning: your own hardware is ignored: {own_hardware_error.message}\nhint: {own_hardware_error.hint}",
            file=sys.stderr,
        )
    return catalog


MOST_MACHINES: Final = 1_000
"""Highest accepted number of machines of one system."""


def named_cards(texts: Sequence[str], catalog: Catalog, option: str = "--gpu") -> tuple[CardCount, ...]:
    """Return the cards that texts such as `RTX 4090`, `2 x RTX 3090` or the system `dgx-a100-640gb` name.

    `2×RTX 3090`, `2 RTX 3090` and a provider's name of a machine, `p5.48xlarge`, are accepted, too. Errors name
    `option`.

    Raises:
        SpecError: If a number of cards is out of range, or there is no such card.
        AmbiguousNameError: If a name matches several cards.
    """
    return tuple(_named_card_count(text, catalog, option) for text in texts)


def named_system(text: str, hardware: HardwareCatalog) -> System | None:
    """Return the system that `text` names, or None if `text` names a card or several machines.

    Raises:
        SpecError: If there is no card or system of that name.
        AmbiguousNameError: If the name matches several cards or systems.
    """
    number, name = parse_count(text)
    if number is not None:
        return None
    hardware_record = resolve_hardware(hardware, name)
    return hardware_record if isinstance(hardware_record, System) else None


def named_machines(text: str, hardware: HardwareCatalog, option: str) -> tuple[int, System] | None:
    """Return the number of machines and the system that `text` names, such as `3 x dgx-h100`; None for a card.

    Raises:
        SpecError: If there is no card or system of that name, or the number is out of range; the error names `option`.
        AmbiguousNameError: If the name matches several cards or systems.
    """
    parsed_count, name = parse_count(text)
    number, hardware_record = 1 if parsed_count is None else parsed_count, resolve_hardware(hardware, name)
    if not isinstance(hardware_record, System):
        return None
    if not 1 <= number <= MOST_MACHINES:
        raise SpecError(option, f"{number:,} machines are out of range", f"Give a number from 1 to {MOST_MACHINES:,}.")
    return number, hardware_record


def rented_cards(name: str, catalog: Catalog) -> CardCount | None:
    """Return the cards of the rented machine that its provider calls `name`, such as `p5.48xlarge`.

    None if no offer has that name, or offers of that name have different cards. Of offers that state different numbers,
    the largest is the whole machine's: others are prices of one card of it.
    """
    asked = name.strip().lower()
    named = [(offer.gpu, offer.gpu_count) for offer in catalog.offers if offer.instance.lower() == asked]
    gpus, most = {gpu for gpu, _ in named}, max((count for _, count in named), default=0.0)
    gpu = gpus.pop() if len(gpus) == 1 else None
    return CardCount(id=gpu, count=int(most)) if gpu is not None and most.is_integer() else None


def _named_card_count(text: str, catalog: Catalog, option: str) -> CardCount:
    parsed_count, name = parse_count(text)
    number = 1 if parsed_count is None else parsed_count
    if not 1 <= number <= 100_000:
        raise SpecError(option, f"{number:,} GPUs are out of range", "Give a number from 1 to 100,000.")
    try:
        hardware_record = resolve_hardware(catalog.hardware, name)
    except SpecError as error:
        rented = None if isinstance(error, AmbiguousNameError) else rented_cards(name, catalog)
        if rented is None:
            raise
        return CardCount(id=rented.id, count=number * rented.count)
    if isinstance(hardware_record, Gpu):
        return CardCount(id=hardware_record.id, count=number)
    if hardware_record.gpu_id is None or hardware_record.gpu_count is None:
        raise SpecError(
            option,
            f"the catalog does not list the GPUs of {hardware_record.name}",
            "Name the GPUs instead: 4 x V100.",
        )
    return CardCount(id=hardware_record.gpu_id, count=number * hardware_record.gpu_count)
