"""Cards of AMD and Intel as the system's folders show them."""

import os
import shutil

import pytest
from cards_kit import (
    APU,
    ARC,
    BATTLEMAGE,
    GIB,
    RADEON,
    apu,
    arc,
    battlemage,
    compute_on,
    open_card,
    radeon,
    uevent,
    write_cards,
    write_files,
)
from state_kit import PLAIN

from planner.monitor.host.processes import HostProcesses
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources.drm import DrmSource
from planner.monitor.sources.registry import card_sources
from planner.monitor.sources.source import CardGoneError


@pytest.fixture
def source(tmp_path):
    return DrmSource(tmp_path, HostProcesses(), sees_same_pids=True)


def _read(source, now=1.0, *, slow=True):
    return {device.uuid: source.read(device, now, slow=slow) for device in source.find(now)}


def _values(readings):
    return {name: reading.value for name, reading in readings.items()}


def test_a_radeon_is_read_in_the_units_of_the_metrics(source, tmp_path):
    write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)
    assert (device.uuid, device.name, device.driver) == (RADEON, "AMD GPU 744c", "amdgpu")
    assert _values(device.facts) == {
        "memory_total_bytes": 24 * GIB,
        "shared_memory_total_bytes": 32 * GIB,
        "power_default_watts": 339,
        "power_least_watts": 305,
        "power_most_watts": 390,
        "sm_clock_most_mhz": 2526,
        "memory_clock_most_mhz": 1249,
        "slowdown_celsius": 100,
        "shutdown_celsius": 105,
        "pcie_generation_most": 4,
        "pcie_width_most": 16,
    }
    fast = {
        "utilization_fraction": 0.97,
        "memory_controller_fraction": 0.41,
        "memory_used_bytes": 6 * GIB,
        "shared_memory_used_bytes": GIB,
        "power_watts": 312,
        "power_reported_watts": 312,
        "temperature_celsius": 61,
        "hotspot_temperature_celsius": 78,
        "memory_temperature_celsius": 84,
        "sm_clock_mhz": 2482,
        "memory_clock_mhz": 1249,
    }
    slow = {
        "fan_fraction": 0.4,
        "power_limit_watts": 339,
        "pcie_generation": 4,
        "pcie_width": 16,
        "pcie_replays": 2,
        "ecc_corrected": 7,
        "ecc_uncorrected": 1,
        "retired_uncorrected": 2,
        "retirement_pending": 1,
    }
    assert _values(source.read(device, 1.0, slow=False)) == fast
    assert _values(source.read(device, 1.0, slow=True)) == fast | slow
    assert source.calls.calls > 20


def test_an_apu_uses_the_ram_that_is_set_aside_and_the_rest_of_it(source, tmp_path):
    write_cards(tmp_path, apu())
    (device,) = source.find(0.0)
    assert device.fact("unified_memory") == 1
    assert device.fact("memory_total_bytes") == 96.5 * GIB
    readings = source.read(device, 1.0, slow=True)
    assert readings["memory_used_bytes"].value == 40.25 * GIB
    assert (readings["power_watts"].value, readings["temperature_celsius"].value) == (55, 58)
    assert not readings.keys() & {"fan_fraction", "hotspot_temperature_celsius", "ecc_corrected"}


def test_an_apu_that_says_little_is_there(source, tmp_path):
    write_cards(
        tmp_path,
        uevent("amdgpu", "1002:1586", "0000:c4:00.0")
        | {"device/hwmon/hwmon1/in1_label": "vddnb", "device/hwmon/hwmon1/in1_input": "1"},
    )
    (device,) = source.find(0.0)
    assert (device.uuid, device.facts["memory_total_bytes"]) == (APU, missing(Cause.NOT_SUPPORTED))
    assert source.read(device, 1.0, slow=False) == {"memory_used_bytes": missing(Cause.NOT_SUPPORTED)}


def test_intels_cards_say_how_long_they_idled_and_what_they_drew(source, tmp_path):
    cards = write_cards(tmp_path, arc(), battlemage())
    first = _read(source, 1.0)
    assert first[ARC]["utilization_fraction"] == first[ARC]["power_watts"] == missing(Cause.NOT_YET)
    # In two seconds, i915's card idles for half a second; of xe's two parts, one works all the time.
    write_files(cards[0], arc(energy=1300.0, idle_ms=1000))
    write_files(cards[1], battlemage(idle_ms=(1000, 6000)))
    second = _read(source, 3.0)
    assert second[ARC]["utilization_fraction"].value == 0.75
    assert second[ARC]["power_watts"].value == 150
    assert second[ARC]["clock_reasons"].value == 0x4
    assert second[ARC]["sm_clock_mhz"].value == 2100
    assert second[ARC]["power_limit_watts"].value == 190
    assert second[BATTLEMAGE]["utilization_fraction"].value == 1
    assert second[BATTLEMAGE]["clock_reasons"].value == 0x20
    assert second[BATTLEMAGE]["temperature_celsius"].value == 55
    assert second[BATTLEMAGE]["memory_temperature_celsius"].value == 62
    # Neither driver tells the memory of the card in files.
    assert "memory_used_bytes" not in second[ARC].keys() | second[BATTLEMAGE].keys()


def test_what_a_driver_does_not_tell_is_missing_and_the_card_is_there(source, tmp_path):
    write_cards(
        tmp_path,
        uevent("i915", "8086:4680", "0000:00:02.0"),
        uevent("nouveau", "10DE:2204", "0000:01:00.0") | {"device/hwmon/hwmon0/temp1_input": "40000"},
        uevent("amdgpu", "1002:744C", "0000:03:00.0"),
        # What only shows a picture, and what NVIDIA's own driver tells through NVML.
        uevent("ast", "1A03:2000", "0000:02:00.0"),
        uevent("nvidia", "10DE:2204", "0000:04:00.0"),
        {"device/uevent": "garbage"},
    )
    (tmp_path / "sys/class/drm/card9").mkdir()
    read = _read(source)
    assert read == {
        "Intel-0000:00:02.0": {"utilization_fraction": missing(Cause.NOT_SUPPORTED)},
        "NVIDIA-0000:01:00.0": {"temperature_celsius": Reading(40)},
        RADEON: {},
    }


@pytest.mark.parametrize(
    ("file", "text", "name", "expected"),
    [
        ("device/gpu_busy_percent", "busy", "utilization_fraction", missing(Cause.UNREADABLE)),
        ("device/gpu_busy_percent", "", "utilization_fraction", missing(Cause.UNREADABLE)),
        ("device/gpu_busy_percent", "255", "utilization_fraction", Reading(2.55, is_implausible=True)),
        ("device/current_link_speed", "Unknown", "pcie_generation", missing(Cause.UNREADABLE)),
        ("device/current_link_speed", "9.0 GT/s", "pcie_generation", missing(Cause.UNREADABLE)),
        ("device/ras/umc_err_count", "none", "ecc_corrected", missing(Cause.UNREADABLE)),
    ],
)
def test_texts_that_are_no_numbers_are_said_to_be_unreadable(source, tmp_path, file, text, name, expected):
    write_cards(tmp_path, radeon() | {file: text})
    assert _read(source)[RADEON][name] == expected


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (1, Cause.ASLEEP),
        (13, Cause.NO_PERMISSION),
        (95, Cause.NOT_SUPPORTED),
        (16, Cause.NOT_YET),
        (5, Cause.FAILED),
        (2, Cause.NOT_SUPPORTED),
    ],
)
def test_errors_of_the_system_are_told_apart(source, tmp_path, monkeypatch, number, cause):
    write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)

    def refuse(path):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("planner.monitor.sources.files._read_text", refuse)
    assert source.read(device, 1.0, slow=True)["utilization_fraction"] == missing(cause)


def test_sources_are_asked_in_their_order(tmp_path):
    kinds = [type(source).__name__ for source in card_sources(tmp_path, PLAIN)]
    assert kinds == ["DrmSource", "AmdSmiSource", "LevelZeroSource", "ProgramSource", "ProgramSource"]


def test_a_card_that_is_pulled_out_is_gone(source, tmp_path):
    (folder,) = write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)
    folder.rename(tmp_path / "gone")
    with pytest.raises(CardGoneError):
        source.read(device, 1.0, slow=False)
    assert source.find(2.0) == ()
    (tmp_path / "gone").rename(folder)
    assert _read(source)[RADEON]["utilization_fraction"].value == 0.97


def test_a_card_that_disappears_while_it_is_read_is_gone(source, tmp_path, monkeypatch):
    (folder,) = write_cards(tmp_path, radeon())
    (device,) = source.find(0.0)

    def vanish(path):
        if folder.exists():
            folder.rename(tmp_path / "gone")
        raise OSError(19, "No such device", str(path))

    monkeypatch.setattr("planner.monitor.sources.files._read_text", vanish)
    with pytest.raises(CardGoneError):
        source.read(device, 1.0, slow=False)


def test_a_card_that_sleeps_is_not_woken_and_keeps_its_name(source, tmp_path):
    asleep = {"device/power/control": "auto", "device/power/runtime_status": "suspended"}
    (folder,) = write_cards(tmp_path, radeon() | asleep)
    (device,) = source.find(0.0)
    assert (device.state, device.facts, source.calls.calls) == ("asleep", {}, 0)
    write_files(folder, {"device/power/runtime_status": "active"})
    (device,) = source.find(1.0)
    assert device.state == "running"
    write_files(folder, asleep)
    (device,) = source.find(2.0)
    assert (device.state, device.fact("memory_total_bytes")) == ("asleep", 24 * GIB)


def test_an_idle_card_that_may_sleep_is_left_alone(source, tmp_path):
    write_cards(tmp_path, radeon() | {"device/gpu_busy_percent": "0", "device/power/control": "auto"})
    states = []
    for second in range(0, 30, 2):
        (device,) = source.find(float(second))
        states.append(device.state)
        if device.state == "running":
            source.read(device, float(second), slow=False)
            source.processes([device], float(second))
    # After ten idle seconds, it is not read for fifteen.
    assert states == ["running"] * 6 + ["asleep"] * 7 + ["running"] * 2


def test_names_come_from_the_lists_of_the_distribution(source, tmp_path):
    write_cards(tmp_path, radeon(), arc(), radeon("0000:05:00.0") | uevent("amdgpu", "1002:73BF", "0000:05:00.0"))
    write_files(
        tmp_path / "usr/share", {"libdrm/amdgpu.ids": "# List\n1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n744D, 1, X"}
    )
    listed = (
        "1002  Advanced Micro Devices\n\t73bf  Navi 21 [Radeon RX 6800]\n8086  Intel\n\t56a0  DG2 [Arc A770]\n\t56a1  B"
    )
    write_files(tmp_path / "usr/share/misc", {"pci.ids": listed})
    assert [device.name for device in source.find(0.0)] == [
        "AMD Radeon RX 7900 XTX",
        "Intel Arc A770",
        "AMD Radeon RX 6800",
    ]


def test_a_name_that_the_card_itself_tells_comes_first(source, tmp_path):
    write_cards(tmp_path, radeon() | {"device/product_name": "AMD Instinct MI300X"})
    assert [device.name for device in source.find(0.0)] == ["AMD Instinct MI300X"]


def _client(pdev, **values):
    return {"drm-pdev": pdev, **{name.replace("_", "-"): value for name, value in values.items()}}


def _processes(source, now):
    listed = source.processes(source.find(now), now)
    return {(each.uuid, each.pid): each for each in listed}


def test_processes_by_what_they_have_opened(source, tmp_path):
    write_cards(tmp_path, radeon(), arc(), battlemage())
    own = os.getpid()
    gfx = {"drm-engine-gfx": "1000000000 ns", "drm-engine-enc": "0 ns", "drm-memory-vram": "2048 KiB"}
    render = {"drm-engine-render": "0 ns", "drm-engine-capacity-video": "2", "drm-resident-local0": "5 MiB"}
    cycles = {"drm-cycles-ccs": "100", "drm-total-cycles-ccs": "1000", "drm-total-vram0": "1 GiB"}
    open_card(tmp_path, own, _client("0000:03:00.0") | gfx, _client("0000:0a:00.0") | render)
    # A process that knows one use by two names, and one whose card is none of these.
    open_card(tmp_path, 4242, *[_client("0000:0b:00.0") | cycles | {"drm-client-id": "7"}] * 2)
    open_card(tmp_path, 4343, _client("0000:99:00.0") | gfx)
    open_card(tmp_path, 4444)
    first = _processes(source, 1.0)
    assert set(first) == {(RADEON, own), (ARC, own), (BATTLEMAGE, 4242)}
    assert first[RADEON, own].sm_fraction == missing(Cause.NOT_YET)
    assert first[RADEON, own].host.is_own
    assert first[BATTLEMAGE, 4242].host is None
    gfx |= {"drm-engine-gfx": "1500000000 ns", "drm-engine-enc": "250000000 ns"}
    open_card(tmp_path, own, _client("0000:03:00.0") | gfx, _client("0000:0a:00.0") | render)
    cycles |= {"drm-cycles-ccs": "400", "drm-total-cycles-ccs": "2000"}
    open_card(tmp_path, 4242, *[_client("0000:0b:00.0") | cycles | {"drm-client-id": "7"}] * 2)
    found = _processes(source, 2.0)
    radeon_process = found[RADEON, own]
    assert (radeon_process.kind, radeon_process.memory_bytes.value) == ("graphics", 2 * 2**20)
    assert (radeon_process.sm_fraction.value, radeon_process.encoder_fraction.value) == (0.5, 0.25)
    assert radeon_process.decoder_fraction == missing(Cause.NOT_SUPPORTED)
    assert found[ARC, own].memory_bytes.value == 5 * 2**20
    xe_process = found[BATTLEMAGE, 4242]
    assert (xe_process.kind, xe_process.memory_bytes.value, xe_process.sm_fraction.value) == ("compute", GIB, 0.3)


def test_the_memory_of_rocms_processes_comes_from_its_own_driver(source, tmp_path):
    write_cards(tmp_path, radeon())
    client = {"drm-engine-gfx": "0 ns", "drm-memory-vram": "1 KiB"}
    open_card(tmp_path, 4242, _client("0000:03:00.0") | client)
    compute_on(tmp_path, 4242, 5 * GIB)
    compute_on(tmp_path, 4343, GIB)
    # A process that uses another of the machine's cards, one whose number is none, and a node without a card.
    write_files(tmp_path / "sys/class/kfd/kfd/proc", {"4444/vram_778": "1", "self/vram_777": "1", "4545/vram_777": "?"})
    write_files(
        tmp_path / "sys/class/kfd/kfd/topology/nodes/0", {"properties": "cpu_cores_count 64\nbroken", "gpu_id": "0"}
    )
    found = _processes(source, 1.0)
    assert {pid: each.memory_bytes.value for (_, pid), each in found.items()} == {4242: 5 * GIB, 4343: GIB}
    assert {each.kind for each in found.values()} == {"compute"}
    # Its queues bypass the scheduler that counts the times.
    assert found[RADEON, 4242].sm_fraction == missing(Cause.NOT_SUPPORTED)


def test_processes_that_may_not_be_seen_are_not_listed(source, tmp_path):
    write_cards(tmp_path, radeon())
    (tmp_path / "proc/1").mkdir(parents=True)
    open_card(tmp_path, 4242, _client("0000:03:00.0"))
    (tmp_path / "proc/4242/fdinfo/10").unlink()
    (tmp_path / "proc/4242/fd/11").write_text("no link")
    assert _processes(source, 1.0) == {}
    # What had opened no card is asked again after a while.
    open_card(tmp_path, 1, _client("0000:03:00.0"))
    rounds = [bool(_processes(source, float(second))) for second in range(2, 14)]
    assert rounds == [False] * 9 + [True] * 3
    assert source.processes((), 20.0) == ()
    for process in (tmp_path / "proc").iterdir():
        shutil.rmtree(process)
    (tmp_path / "proc").rmdir()
    assert _processes(source, 21.0) == {}
    source.close()
