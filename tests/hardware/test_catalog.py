"""Reading a catalog folder, and what is said when it is not as it should be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.errors import CatalogError, SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware

SOURCE = {"basis": "published", "certainty": "confirmed", "source": "a datasheet", "as_of": "2026-11-21"}
CARD = {
    "id": "card-1",
    "name": "Card 1",
    "vendor": "NVIDIA",
    "segment": "consumer",
    "architecture": "Ada Lovelace",
    "memory_label": "8 GB",
    "memory_bytes": 8 * 2**30,
    "provenance": SOURCE,
}
MACHINE = {"id": "machine-1", "name": "Machine 1", "vendor": "NVIDIA", "kind": "server", "provenance": SOURCE}


def write(folder: Path, gpus: object = (CARD,), systems: object = (MACHINE,)) -> Path:
    for name, content in (("gpus", gpus), ("systems", systems)):
        (folder / name / "nvidia").mkdir(parents=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name / "nvidia" / "all.json").write_text(text, encoding="utf-8")
    return folder


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    catalog = load_hardware(write(tmp_path))
    assert [gpu.id for gpu in catalog.gpus] == ["card-1"]
    assert catalog.gpu("card-1").memory_label == "8 GB"
    assert catalog.system("machine-1").name == "Machine 1"


def test_an_unknown_id_is_said(hardware: HardwareCatalog) -> None:
    with pytest.raises(SpecError, match="no GPU has the id 'card-9'"):
        hardware.gpu("card-9")


@pytest.mark.parametrize(
    ("written", "close"),
    [("RTX 4090", "rtx-4090, rtx-4090-d"), ("rtx-409", "rtx-4090, rtx-4090-d"), ("l40z", "l4"), ("?", "")],
)
def test_ids_like_an_unknown_one_are_named(hardware: HardwareCatalog, written: str, close: str) -> None:
    with pytest.raises(SpecError) as caught:
        hardware.gpu(written)
    assert caught.value.hint.startswith(f"Close ids: {close}" if close else "The window's Catalog tab")


def test_a_catalog_is_shown_in_a_line(hardware: HardwareCatalog) -> None:
    assert repr(hardware) == f"<HardwareCatalog: {len(hardware.gpus)} GPUs, {len(hardware.systems)} systems>"


@pytest.mark.parametrize(
    ("gpus", "record", "field", "reason"),
    [
        ([CARD, {**CARD, "id": "card-2", "memory_bytes": -1}], "card-2", "memory_bytes", "must be more than 0"),
        ([{**CARD, "colour": "green"}], "card-1", "colour", "there is no such field"),
        ([{key: value for key, value in CARD.items() if key != "id"}], "record 1", "id", "is missing"),
        ([7], "record 1", "", "7 is not an object of named fields"),
        ([CARD, CARD], "card-1", "id", "another record has this id"),
        (
            [{**CARD, "rates": [{"dtype": "fp32", "ops_per_s": 0, "unit": "vector"}]}],
            "card-1",
            "rates.0.ops_per_s",
            "0",
        ),
        ({"id": "card-1"}, "", "", "is not a list"),
        ("{[", "", "", "invalid JSON"),
    ],
)
def test_a_bad_record_is_named_with_file_and_field(
    tmp_path: Path, gpus: object, record: str, field: str, reason: str
) -> None:
    with pytest.raises(CatalogError) as caught:
        load_hardware(write(tmp_path, gpus=gpus))
    assert caught.value.path == tmp_path / "gpus" / "nvidia" / "all.json"
    assert (caught.value.record, caught.value.field) == (record, field)
    assert reason in caught.value.message


def test_a_bad_system_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        load_hardware(write(tmp_path, systems=[{**MACHINE, "gpu_count": 0}]))
    assert (caught.value.record, caught.value.field) == ("machine-1", "gpu_count")


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no JSON files"):
        load_hardware(tmp_path)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "gpus" / "broken.json").mkdir()
    with pytest.raises(CatalogError, match="is a folder, not a catalog file"):
        load_hardware(tmp_path)


def test_catalogs_are_compared_by_identity(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert load_hardware(folder) != load_hardware(folder)


def test_loading_needs_neither_numpy_nor_qt() -> None:
    code = (
        "import sys; from planner.hardware.catalog import load_hardware; from planner.hardware import names, query;"
        "from planner.paths import catalog_dir; load_hardware(catalog_dir());"
        "print([name for name in ('numpy', 'PySide6', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
