"""Catalog for plan evaluation: accelerators, systems, models, offers, purchases and electricity."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import CatalogError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.software_support import SoftwareFact
from planner.models.catalog import ModelCatalog, load_models
from planner.paths import catalog_dir
from planner.records import read_records
from planner.storage import may_exist

if TYPE_CHECKING:
    from planner.cost.catalog import CostCatalog
    from planner.cost.renting.offer import Offer
    from planner.hardware.published_speeds import PublishedSpeed


@dataclass(frozen=True, eq=False)
class Catalog:
    """Hardware and model data for evaluating plans, with price data that is loaded on first use."""

    hardware: HardwareCatalog
    models: ModelCatalog
    folder: Path = field(default_factory=catalog_dir)
    prices: Path | None = None
    """Folder of fetched prices and the user's own offers; None: only bundled prices are used."""

    def __repr__(self) -> str:
        return f"<Catalog in {self.folder}: {self.hardware!r}, {self.models!r}>"

    @cached_property
    def cost(self) -> "CostCatalog":
        """Return the price data."""
        from planner.cost.catalog import CostCatalog  # what fits is answered without it

        return CostCatalog(self.folder, prices=self.prices)

    @property
    def offers(self) -> "tuple[Offer, ...]":
        """Return all rental offers."""
        return self.cost.offers

    @cached_property
    def software(self) -> tuple[SoftwareFact, ...]:
        """Return the facts about which software versions support which GPUs."""
        return read_records(self.folder / "software", SoftwareFact)

    @cached_property
    def speeds(self) -> "tuple[PublishedSpeed, ...]":
        """Return the published speeds that were measured on GPUs."""
        from planner.hardware.published_speeds import PublishedSpeed  # only details need it

        return read_records(self.folder / "speeds", PublishedSpeed)


def load_catalog(
    folder: Path | None = None, prices: Path | None = None, own: Path | None = None, *, on_demand: bool = False
) -> Catalog:
    """Return the catalog in `folder`, by default the bundled catalog, with the fetched prices in the folder `prices`.

    The user's own GPUs and changes in the file `own` replace bundled records; without it, results do not depend on the
    user. The window and the command line pass `planner.paths.own_hardware_file()`. With `on_demand`, which is for one
    answer, a file of `folder` is parsed when one of its records may be asked for.

    Raises:
        CatalogError: If a record does not validate; it names the file, the record and the field. With `on_demand`,
            whatever asks for a record of that file raises it.
    """
    root = folder or catalog_dir()
    hardware = load_hardware(root, on_demand=on_demand)
    if own is not None and may_exist(own):
        from planner.hardware.own import (
            read_own,
            with_own_hardware,  # most people have none
        )

        hardware = with_own_hardware(hardware, read_own(own))
    models = load_models(root / "models", on_demand=on_demand)
    return Catalog(hardware=hardware, models=models, folder=root, prices=prices)


def load_catalog_or_bundled(prices: Path, own: Path, *, on_demand: bool = False) -> tuple[Catalog, CatalogError | None]:
    """Return the catalog with the user's hardware file `own`; if that file is invalid, without it, but with its error.

    Raises:
        CatalogError: If a bundled record does not validate.
    """
    try:
        return load_catalog(prices=prices, own=own, on_demand=on_demand), None
    except CatalogError as error:
        if error.path != own:
            raise
        return load_catalog(prices=prices, on_demand=on_demand), error
