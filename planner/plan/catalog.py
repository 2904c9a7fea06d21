"""Everything the plan draws on, in one value: accelerators, systems, models, offers, purchases and electricity."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import CatalogError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.models.catalog import ModelCatalog, load_models
from planner.paths import catalog_dir
from planner.records import read_records

if TYPE_CHECKING:
    from planner.cost.catalog import CostCatalog
    from planner.cost.energy import EnergyRecord
    from planner.cost.owning.purchase import Purchase
    from planner.cost.renting.offer import Offer
    from planner.hardware.software import SoftwareFact
    from planner.hardware.speeds import MeasuredSpeed


@dataclass(frozen=True, eq=False)
class Catalog:
    """The bundled knowledge of hardware and models, and of prices, which are read only when they are asked for."""

    hardware: HardwareCatalog
    models: ModelCatalog
    folder: Path = field(default_factory=catalog_dir)
    prices: Path | None = None
    """The folder of fetched prices and the person's own offers; none: only the bundled ones are used."""

    @cached_property
    def cost(self) -> "CostCatalog":
        """Return what is known about money."""
        from planner.cost.catalog import CostCatalog  # what fits is answered without it

        return CostCatalog(self.folder, prices=self.prices)

    @property
    def offers(self) -> "tuple[Offer, ...]":
        """Return every offer to rent."""
        return self.cost.offers

    @property
    def energy(self) -> "tuple[EnergyRecord, ...]":
        """Return what every source says about electricity."""
        return self.cost.energy

    @property
    def purchases(self) -> "tuple[Purchase, ...]":
        """Return what hardware was sold for."""
        return self.cost.purchases

    @cached_property
    def software(self) -> "tuple[SoftwareFact, ...]":
        """Return what software runs on which cards."""
        from planner.hardware.software import SoftwareFact  # only details need it

        return read_records(self.folder / "software", SoftwareFact)

    @cached_property
    def speeds(self) -> "tuple[MeasuredSpeed, ...]":
        """Return what was measured on cards."""
        from planner.hardware.speeds import MeasuredSpeed  # only details need it

        return read_records(self.folder / "speeds", MeasuredSpeed)


def load_catalog(folder: Path | None = None, prices: Path | None = None, own: Path | None = None) -> Catalog:
    """Return the catalog in `folder`, by default the bundled one, with the fetched prices in the folder `prices`.

    The person's own cards and changes in the file `own` stand in place of bundled ones; without it, what is answered
    does not depend on who asks. The window and the command line give `planner.paths.own_hardware_file()`.

    Raises:
        CatalogError: If a record does not validate; it names the file, the record and the field.
    """
    root = folder or catalog_dir()
    hardware = load_hardware(root)
    if own is not None and own.exists():
        from planner.hardware.own import with_own  # most people have none
        from planner.hardware.own_file import read_own

        hardware = with_own(hardware, read_own(own))
    return Catalog(hardware=hardware, models=load_models(root / "models"), folder=root, prices=prices)


def load_catalog_or_bundled(prices: Path, own: Path) -> tuple[Catalog, CatalogError | None]:
    """Return the catalog with the person's own hardware; where that cannot be read, without it, and why.

    Raises:
        CatalogError: If a bundled record does not validate.
    """
    try:
        return load_catalog(prices=prices, own=own), None
    except CatalogError as error:
        if error.path != own:
            raise
        return load_catalog(prices=prices), error
