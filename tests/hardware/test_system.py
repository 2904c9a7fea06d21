"""Every system of the catalog: sourced, and consistent with the accelerator it is built from."""

import pytest
from each_record import for_each

from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.system import System, cards_sold_together
from planner.paths import catalog_dir
from planner.units import GIB

SYSTEMS = load_hardware(catalog_dir()).systems


def test_the_catalog_holds_every_system() -> None:
    assert len(SYSTEMS) == 54
    assert len({system.name for system in SYSTEMS}) == 54


@pytest.mark.parametrize(
    ("gpu_id", "together"),
    [("rtx-4090", None), ("h100-pcie-80gb", None), ("instinct-mi300x", 8), ("instinct-mi300a", 4), ("gh200-96gb", 1)],
)
def test_modules_are_sold_with_their_board_and_cards_alone(
    hardware: HardwareCatalog, gpu_id: str, together: int | None
) -> None:
    assert cards_sold_together(hardware.gpu(gpu_id), SYSTEMS) == together
    assert cards_sold_together(hardware.gpu(gpu_id), ()) == together


@for_each("system", SYSTEMS)
def test_system_is_sourced_and_fits_its_accelerator(system: System, hardware: HardwareCatalog) -> None:
    assert system.provenance.source.strip()
    assert "2026-01-01" <= system.provenance.as_of <= "2026-12-31"
    assert (system.price_usd is None) == (system.price_kind is None)
    assert system.max_power_watts is None or 100 <= system.max_power_watts <= 200_000
    for note in system.figure_notes:
        assert getattr(system, note.field) is not None
        assert system.provenance_of(note.field) is note.provenance
        assert "2026-01-01" <= note.provenance.as_of <= "2026-12-31"
    if system.gpu_id is None:
        assert system.memory_bytes is None
        return
    gpu = hardware.gpu(system.gpu_id)
    assert gpu.memory_bytes is not None
    assert system.gpu_count is not None
    assert system.memory_bytes == gpu.memory_bytes * system.gpu_count
    label_gb = float((system.memory_label or "").split()[0].replace(",", ""))
    assert system.memory_bytes / GIB == pytest.approx(label_gb, rel=0.005)


def test_a_figure_without_a_note_has_the_source_of_its_record(hardware: HardwareCatalog) -> None:
    system = hardware.system("dgx-h100")
    assert "HPCwire" in system.provenance_of("announced").source
    assert system.provenance_of("max_power_watts") is system.provenance


def test_systems_are_found_by_id(hardware: HardwareCatalog) -> None:
    assert hardware.system("dgx-h100").gpu_count == 8
    with pytest.raises(SpecError, match="no system has the id 'dgx-9'"):
        hardware.system("dgx-9")
