"""Everything the plan draws on, in one value: accelerators, systems and models."""

from dataclasses import dataclass
from pathlib import Path

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.models.catalog import ModelCatalog, load_models
from planner.paths import catalog_dir


@dataclass(frozen=True, eq=False)
class Catalog:
    """The bundled knowledge of hardware and models."""

    hardware: HardwareCatalog
    models: ModelCatalog


def load_catalog(folder: Path | None = None) -> Catalog:
    """Return the catalog in `folder`, by default the bundled one.

    Raises:
        CatalogError: If a record does not validate; it names the file, the record and the field.
    """
    root = folder or catalog_dir()
    return Catalog(hardware=load_hardware(root), models=load_models(root / "models"))
