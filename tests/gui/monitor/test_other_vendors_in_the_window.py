"""Cards of other vendors in the Monitor tab: their lines, what they do not report, and their faults."""

import os

from cards_kit import ARC, RADEON, arc, open_card, radeon, write_cards
from fake_nvml_kit import A, card
from tab_kit import wait

from planner.gui.monitor.dialogs import VerdictDialog
from planner.present.format import THIN


def _lines(tab):
    return dict(zip((device.uuid for device in tab.feed.latest.inventory.devices), tab.cards.texts, strict=False))


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
    for uuid, expected in (
        (A, "25 GB/s each way, 4 × CRC error"),
        (ARC, "Not reported by this driver, so not judged:"),
    ):
        tab.cards.opened.emit(uuid)
        dialog = tab.window().findChild(VerdictDialog)
        assert expected in dialog.text.toPlainText().replace(THIN, " ")
        dialog.close()
        dialog.setParent(None)
    first.rename(driver.root / "gone")
    wait(qtbot, lambda: "lost" in _lines(tab)[RADEON])
    assert "busy" in _lines(tab)[A]


def test_a_gpu_whose_program_is_missing_or_broken_is_listed_with_what_to_do(
    qtbot, make_tab, driver, tmp_path, monkeypatch
):
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    driver.say(card(0, A))
    (driver.root / "etc").mkdir(parents=True)
    (driver.root / "etc/nv_tegra_release").touch()
    tab = make_tab()
    wait(qtbot, lambda: any("not installed (tegrastats)" in text for text in tab.faults.texts))
    assert "tegrastats comes with JetPack" in "".join(tab.faults.texts)
    wait(qtbot, lambda: "NVIDIA Jetson" in {device.name for device in tab.feed.latest.inventory.devices})
    (programs / "tegrastats").write_text("#!/no/such/program\n")
    (programs / "tegrastats").chmod(0o755)
    wait(qtbot, lambda: any("cannot be used" in text for text in tab.faults.texts))
