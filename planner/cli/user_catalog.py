"""The catalog as a person has it: with their own hardware and the prices that they fetched."""

import sys

from planner.paths import own_hardware_file, prices_dir
from planner.plan.catalog import Catalog, load_catalog_or_bundled


def persons_catalog() -> Catalog:
    """Return the catalog with what the person added to it.

    A file of their own that cannot be read is warned of on stderr, and everything else is answered without it.

    Raises:
        CatalogError: If a bundled record does not validate.
    """
    catalog, unread = load_catalog_or_bundled(prices_dir(), own_hardware_file())
    if unread is not None:
        print(f"warning: your own hardware is left out: {unread.message}\nhint: {unread.hint}", file=sys.stderr)
    return catalog
