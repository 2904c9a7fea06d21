"""The file of the user's hardware: what is written is read again, and errors name the file."""

from pathlib import Path

import pytest

from planner.errors import CatalogError
from planner.hardware.own import CardChange, OwnHardware
from planner.hardware.own_file import own_json, read_own, write_own

OWN = OwnHardware(changes=(CardChange(gpu="rtx-4090", purchase_price_usd=1_500.0, date="2026-11-22"),))


def test_written_hardware_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "hardware.json"
    write_own(file, OWN)
    assert read_own(file) == OWN
    assert file.read_text(encoding="utf-8") == own_json(OWN) + "\n"


def test_a_missing_file_is_empty_unless_it_is_imported(tmp_path: Path) -> None:
    from datetime import date

    assert read_own(tmp_path / "none.json") == OwnHardware()
    with pytest.raises(CatalogError, match="cannot be read"):
        read_own(tmp_path / "none.json", date(2026, 11, 22))


def test_json_states_the_version_and_omits_defaults() -> None:
    assert own_json(OwnHardware()) == '{\n  "schema_version": 1\n}'
    assert "power_limit_watts" not in own_json(OWN)


def test_an_unwritable_folder_is_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogError, match="cannot be written"):
        write_own(tmp_path / "file" / "hardware.json", OWN)
