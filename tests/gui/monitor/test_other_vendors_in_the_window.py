"""Cards of other vendors in the Monitor tab: their lines, what they do not report, and their faults."""

import os
from collections.abc import Callable

import psutil
import pytest
from cards_kit import AMD, ARC, GIB, INTEL, RADEON, arc, metrics_table, open_card, radeon, write_cards
from fake_nvml_kit import FAST, A, build_vendors, card
from tab_kit import Probe, wait

from planner.gui.monitor.dialogs import VerdictDialog
from planner.present.format import THIN


@pytest.fixture
def install(tmp_path, monkeypatch) -> Callable[[str, str], None]:
    """Return a way to install a program that this machine's samplers find."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)

    def write(name: str, script: str) -> None:
        fresh = programs / f".{name}"
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(programs / name)

    return write


def _lines(tab):
    return dict(zip((device.uuid for device in tab.feed.latest.inventory.devices), tab.cards.texts, strict=False))


def _says(tab, words):
    return any(words in text for text in tab.faults.texts)


def _details(tab, uuid):
    """Return what a card's dialog tells, opened by a click on its line."""
    tab.cards.opened.emit(uuid)
    dialog = tab.window().findChild(VerdictDialog)
    text = dialog.text.toPlainText().replace(THIN, " ")
    dialog.close()
    dialog.setParent(None)
    return text


def test_cards_of_all_vendors_have_a_line_and_say_what_is_not_reported(qtbot, make_tab, driver):
    driver.say(card(0, A, **{"field.91": 2, "link.0.165": 1, "link.0.164": 25000, "link.0.163": 4}))
    first, _ = write_cards(driver.root, radeon() | {"device/product_name": "AMD Radeon RX 7900 XTX"}, arc())
    open_card(driver.root, 4242, {"drm-pdev": "0000:03:00.0", "drm-engine-gfx": "5 ns", "drm-memory-vram": "2 MiB"})
    tab = make_tab()
    wait(qtbot, lambda: "97" in _lines(tab).get(RADEON, "") and ARC in _lines(tab))
    assert _lines(tab)[RADEON].startswith("1  Radeon RX 7900 XTX, busy, 97")
    wait(qtbot, lambda: any(process.pid == 4242 for process in tab.feed.latest.processes))
    wait(qtbot, lambda: tab.feed.latest.reading(ARC, "clock_reasons").value is not None)
    # The card's details name its links with their errors, and what its driver does not report.
    assert "25 GB/s each way, 4 × CRC error" in _details(tab, A)
    assert "Not reported by this driver, so not judged:" in _details(tab, ARC)
    (first / "device/gpu_metrics").write_bytes(metrics_table(1 << 36))
    wait(qtbot, lambda: "slowed by heat" in _lines(tab)[RADEON])
    first.rename(driver.root / "gone")
    wait(qtbot, lambda: "lost" in _lines(tab)[RADEON])
    assert "busy" in _lines(tab)[A]


def test_amds_library_adds_what_it_reports_and_what_it_refuses_lacks_or_hangs_in_is_told(
    qtbot, make_tab, driver, nvml_library, tmp_path
):
    (folder := tmp_path / "older").mkdir()
    # A library before ROCm 6.0 lacks this function.
    driver.library = build_vendors(folder, nvml_library, without=("amdsmi_get_gpu_total_ecc_count",))
    driver.say(card(0, A))
    driver.say_of_vendors(error__amdsmi_init=2)
    files = {name: text for name, text in radeon().items() if "ras" not in name}
    write_cards(driver.root, files)
    tab = make_tab(pace=FAST._replace(hang_seconds=0.3))
    with Probe() as probe:
        wait(qtbot, lambda: _says(tab, "cannot be used (libamd_smi: amdsmi_init returned 0x2)"))
        assert "What the system itself reports is still read" in "".join(tab.faults.texts)
        wait(qtbot, lambda: "97" in _lines(tab).get(RADEON, ""))
        # It opens, but administrators only may read the energy.
        driver.say_of_vendors(**AMD, error__amdsmi_get_energy_count=10)
        wait(qtbot, lambda: not _says(tab, "libamd_smi"))
        wait(qtbot, lambda: tab.feed.latest.reading(RADEON, "energy_joules").cause == "no-permission")
        wait(qtbot, lambda: tab.feed.latest.reading(RADEON, "ecc_corrected").cause == "missing-symbol")
        assert "amdgpu, amd-smi" in _details(tab, RADEON)
        driver.say_of_vendors(**AMD)
        wait(qtbot, lambda: tab.feed.latest.reading(RADEON, "energy_joules").value == 31)
        driver.say_of_vendors(**AMD, hang__amdsmi_get_gpu_activity=1)
        wait(qtbot, lambda: _says(tab, "GPU 1: a library or program that reports more about the GPUs cannot be used"))
        assert _says(tab, "amd-smi: amdsmi_get_gpu_activity hangs")
        wait(qtbot, lambda: "busy, 97" in _lines(tab)[RADEON])
    assert not probe.stood_still


def test_level_zero_adds_memory_and_temperatures_until_it_refuses_or_loses_the_card(
    qtbot, make_tab, driver, vendors_library
):
    driver.library = vendors_library
    driver.say(error__nvmlInitWithFlags=9)
    driver.say_of_vendors(**INTEL)
    (folder,) = write_cards(driver.root, arc())
    tab = make_tab(pace=FAST._replace(hang_seconds=0.3))
    with Probe() as probe:
        wait(qtbot, lambda: "6.00 / 16.0" in _lines(tab).get(ARC, "") and "51" in _lines(tab)[ARC])
        assert "i915, level-zero" in tab.machine.text()
        driver.say_of_vendors(**INTEL, error__zesMemoryGetState=0x70010000)
        wait(qtbot, lambda: "6.00" not in _lines(tab)[ARC])
        assert tab.feed.latest.reading(ARC, "memory_used_bytes").cause == "no-permission"
        driver.say_of_vendors(**INTEL)
        wait(qtbot, lambda: "6.00 / 16.0" in _lines(tab)[ARC])
        # The library calls it lost, while the system still reads its clock.
        driver.say_of_vendors(**INTEL, error__zesMemoryGetState=0x70000001)
        wait(qtbot, lambda: _says(tab, "level-zero: zesMemoryGetState returned 0x70000001"))
        assert "2,100" in _lines(tab)[ARC]
        driver.say_of_vendors(**INTEL)
        wait(qtbot, lambda: "6.00 / 16.0" in _lines(tab)[ARC])
        driver.say_of_vendors(**INTEL, hang__zesTemperatureGetState=1)
        wait(qtbot, lambda: _says(tab, "level-zero: zesTemperatureGetState hangs"))
        folder.rename(driver.root / "gone")
        wait(qtbot, lambda: "lost" in _lines(tab)[ARC])
    assert not probe.stood_still
    assert _says(tab, "GPU 0 no longer responds")


def test_an_apple_chip_is_shown_until_macmon_prints_something_else_or_is_gone(qtbot, make_tab, driver, install):
    total = psutil.virtual_memory().total
    line = (
        f'{{"gpu_active_ratio": 0.4, "gpu_power": 9.5, "memory": {{"ram_total": {total}, "ram_usage": {total // 2}}}}}'
    )
    script = "#!/bin/sh\nwhile echo '{}'; do sleep 0.1; done\n"
    driver.say(error__nvmlInitWithFlags=9)
    install("macmon", script.format(line))
    tab = make_tab()
    with Probe() as probe:
        wait(qtbot, lambda: "Apple chip GPU, busy, 40" in _lines(tab).get("Apple-0", ""))
        half = f"{total / 2 / GIB:.1f} / {total / GIB:.1f}"
        assert half in _lines(tab)["Apple-0"]
        assert not tab.faults.texts
        assert "The GPU uses the memory of the CPU" in _details(tab, "Apple-0")
        # Another version prints something else; the one that runs must end before it is started.
        install("macmon", script.format("usage: macmon"))
        (sampler,) = psutil.Process().children()
        for helper in sampler.children():
            helper.kill()
        wait(qtbot, lambda: tab.feed.latest.reading("Apple-0", "utilization_fraction").cause == "unreadable")
        assert "utilization unknown" in _lines(tab)["Apple-0"]
        (driver.folder / "programs/macmon").unlink()
        wait(qtbot, lambda: "lost" in _lines(tab)["Apple-0"])
    assert not probe.stood_still


def test_a_gpu_whose_program_is_missing_or_broken_is_listed_with_what_to_do(qtbot, make_tab, driver, install):
    driver.say(card(0, A))
    (driver.root / "etc").mkdir(parents=True)
    (driver.root / "etc/nv_tegra_release").touch()
    tab = make_tab()
    wait(qtbot, lambda: _says(tab, "not installed (tegrastats)"))
    assert _says(tab, "tegrastats comes with JetPack")
    wait(qtbot, lambda: "NVIDIA Jetson" in {device.name for device in tab.feed.latest.inventory.devices})
    install("tegrastats", "#!/no/such/program\n")
    wait(qtbot, lambda: _says(tab, "cannot be used"))
