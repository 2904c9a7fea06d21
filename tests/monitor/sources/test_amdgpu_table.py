"""Why AMD's cards lower their clocks, by the bits that Linux' headers number."""

import pytest
from cards_kit import RADEON, metrics_table, radeon, write_cards

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.processes import HostProcesses
from planner.monitor.sources.amdgpu_table import amd_clock_reasons
from planner.monitor.sources.drm import DrmSource
from planner.monitor.sources.files import CardFiles

POWER_CAP, SLOWDOWN, THERMAL, HOT = 0x4, 0x8, 0x20, 0x40


@pytest.mark.parametrize(
    ("bits", "reasons"),
    [
        ((), 0),
        ((0,), POWER_CAP),  # PPT0
        ((7,), POWER_CAP),  # SPPT_APU
        ((16,), SLOWDOWN),  # TDC_GFX
        ((23,), SLOWDOWN),  # APCC
        ((32,), THERMAL),  # TEMP_GPU
        ((36, 0), THERMAL | POWER_CAP),  # TEMP_HOTSPOT, PPT0
        ((44, 47), HOT),  # VRHOT0, PROCHOT_GFX
        ((56, 57), 0),  # PPM, FIT: no counterpart
    ],
)
def test_each_bit_is_the_reason_that_its_name_says(bits, reasons):
    assert amd_clock_reasons(metrics_table(sum(1 << bit for bit in bits))) == reasons


@pytest.mark.parametrize(("revision", "size"), [((2, 2), 128), ((2, 3), 128), ((2, 4), 128)])
def test_tables_of_processors_with_graphics_have_it_elsewhere(revision, size):
    assert amd_clock_reasons(metrics_table(1 << 32, revision, size)) == THERMAL


@pytest.mark.parametrize(
    "table",
    [
        b"",
        metrics_table(1)[:-1],
        metrics_table(1, (1, 4)),
        metrics_table(1, (3, 0)),
        metrics_table(2**64 - 1),  # the chip does not fill it
    ],
)
def test_a_table_that_does_not_tell_is_no_statement(table):
    assert amd_clock_reasons(table) is None


def test_a_radeon_tells_why_it_is_slowed(tmp_path):
    (folder,) = write_cards(tmp_path, radeon())
    source = DrmSource(tmp_path, HostProcesses(), sees_same_pids=True)
    (device,) = source.find(0.0)
    assert "clock_reasons" not in source.read(device, 1.0, slow=False)
    (folder / "device/gpu_metrics").write_bytes(metrics_table(1 << 36))
    assert source.read(device, 2.0, slow=False)["clock_reasons"].value == THERMAL
    assert CardFiles(DriverCalls(), RADEON, folder).content("device/none") == b""
