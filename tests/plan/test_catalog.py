"""The catalog with a person's own hardware, and without it where that cannot be read."""

import pytest

from planner.errors import CatalogError
from planner.hardware.own import CardChange, OwnHardware, write_own
from planner.plan import catalog as module
from planner.plan.catalog import load_catalog, load_catalog_or_bundled


def test_the_users_own_hardware_is_added(tmp_path):
    own = tmp_path / "hardware.json"
    change = CardChange(gpu="rtx-4090", purchase_price_usd=1000, date="2026-11-01")
    write_own(own, OwnHardware(changes=(change,)))
    catalog, unread = load_catalog_or_bundled(tmp_path, own)
    assert unread is None
    assert catalog.prices == tmp_path
    assert catalog.hardware.gpu("rtx-4090").purchase_price_usd == 1000
    assert load_catalog().hardware.gpu("rtx-4090").purchase_price_usd is None


def test_own_hardware_that_is_invalid_is_left_out_with_the_error(tmp_path):
    own = tmp_path / "hardware.json"
    own.write_text("{")
    catalog, unread = load_catalog_or_bundled(tmp_path, own)
    assert not catalog.hardware.gpu("rtx-4090").own
    assert unread is not None
    assert unread.path == own


def test_an_invalid_bundled_record_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "catalog_dir", lambda: tmp_path / "nowhere")
    with pytest.raises(CatalogError, match="there are no JSON files here"):
        load_catalog_or_bundled(tmp_path, tmp_path / "hardware.json")


def test_a_catalog_is_shown_in_a_line():
    catalog = load_catalog()
    hardware, models = catalog.hardware, len(catalog.models.records)
    assert repr(catalog) == f"<Catalog in {catalog.folder}: {hardware!r}, <ModelCatalog: {models} models>>"
