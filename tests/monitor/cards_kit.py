"""Folder trees as Linux shows cards of AMD and Intel: recorded shapes, with values that tests choose.

The shapes follow listings of a Radeon RX 7900 XTX and a Ryzen AI Max (amdgpu), an Arc A770 (i915) and an Arc B580 (xe);
the numbers are invented.
"""

from collections.abc import Mapping
from pathlib import Path

GIB = 2**30
RADEON, APU, ARC, BATTLEMAGE = "AMD-0000:03:00.0", "AMD-0000:c4:00.0", "Intel-0000:0a:00.0", "Intel-0000:0b:00.0"
_POWER = {"device/power/control": "on", "device/power/runtime_status": "active"}
_LINK = {
    "device/current_link_speed": "16.0 GT/s PCIe",
    "device/current_link_width": "16",
    "device/max_link_speed": "16.0 GT/s PCIe",
    "device/max_link_width": "16",
}


def metrics_table(status: int, revision: tuple[int, int] = (1, 3), size: int = 120) -> bytes:
    """Return amdgpu's table of metrics whose last eight bytes say why the clock is lowered."""
    return bytes((size, 0, *revision)).ljust(size - 8, b"\xff") + status.to_bytes(8, "little")


def uevent(driver: str, pci_id: str, address: str) -> dict[str, str]:
    """Return the file in which the system says which card it is."""
    return {"device/uevent": f"DRIVER={driver}\nPCI_ID={pci_id}\nPCI_SLOT_NAME={address}"}


def radeon(address: str = "0000:03:00.0") -> dict[str, str]:
    """Return the files of a Radeon RX 7900 XTX."""
    monitor = "device/hwmon/hwmon3"
    return {
        **uevent("amdgpu", "1002:744C", address),
        **_POWER,
        **_LINK,
        "device/gpu_busy_percent": "97",
        "device/mem_busy_percent": "41",
        "device/mem_info_vram_total": str(24 * GIB),
        "device/mem_info_vram_used": str(6 * GIB),
        "device/mem_info_gtt_total": str(32 * GIB),
        "device/mem_info_gtt_used": str(GIB),
        "device/pp_dpm_sclk": "0: 500Mhz\n1: 2482Mhz *\n2: 2526Mhz",
        "device/pp_dpm_mclk": "0: 96Mhz\n1: 1249Mhz *",
        "device/pcie_replay_count": "2",
        "device/ras/umc_err_count": "ue: 1\nce: 7",
        "device/ras/gpu_vram_bad_pages": "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : R\n0x3 : 0x1000 : P",
        f"{monitor}/power1_average": "312000000",
        f"{monitor}/power1_cap": "339000000",
        f"{monitor}/power1_cap_default": "339000000",
        f"{monitor}/power1_cap_min": "305000000",
        f"{monitor}/power1_cap_max": "390000000",
        f"{monitor}/temp1_label": "edge",
        f"{monitor}/temp1_input": "61000",
        f"{monitor}/temp1_crit": "100000",
        f"{monitor}/temp1_emergency": "105000",
        f"{monitor}/temp2_label": "junction",
        f"{monitor}/temp2_input": "78000",
        f"{monitor}/temp3_label": "mem",
        f"{monitor}/temp3_input": "84000",
        f"{monitor}/freq1_label": "sclk",
        f"{monitor}/freq1_input": "2482000000",
        f"{monitor}/freq2_label": "mclk",
        f"{monitor}/freq2_input": "1249000000",
        f"{monitor}/pwm1": "102",
    }


def apu() -> dict[str, str]:
    """Return the files of a Ryzen AI Max: 512 MiB set aside, the rest of the RAM through GTT, power with the CPU's."""
    monitor = "device/hwmon/hwmon5"
    return {
        **uevent("amdgpu", "1002:1586", "0000:c4:00.0"),
        **_POWER,
        "device/gpu_busy_percent": "30",
        "device/mem_info_vram_total": str(GIB // 2),
        "device/mem_info_vram_used": str(GIB // 4),
        "device/mem_info_gtt_total": str(96 * GIB),
        "device/mem_info_gtt_used": str(40 * GIB),
        f"{monitor}/in1_label": "vddnb",
        f"{monitor}/in1_input": "900",
        f"{monitor}/power1_input": "55000000",
        f"{monitor}/temp1_label": "edge",
        f"{monitor}/temp1_input": "58000",
        f"{monitor}/freq1_label": "sclk",
        f"{monitor}/freq1_input": "2900000000",
    }


def arc(*, energy: float = 1000.0, idle_ms: int = 500, throttled: str = "pl1") -> dict[str, str]:
    """Return the files of an Arc A770 under i915."""
    reasons = ("pl1", "pl2", "pl4", "thermal", "prochot", "ratl", "vr_thermalert", "vr_tdc")
    return {
        **uevent("i915", "8086:56A0", "0000:0a:00.0"),
        **_POWER,
        **_LINK,
        "gt/gt0/rps_act_freq_mhz": "2100",
        "gt/gt0/rps_RP0_freq_mhz": "2400",
        "gt/gt0/rc6_residency_ms": str(idle_ms),
        **{f"gt/gt0/throttle_reason_{name}": str(int(name == throttled)) for name in reasons},
        "device/hwmon/hwmon4/energy1_input": f"{energy * 1e6:.0f}",
        "device/hwmon/hwmon4/power1_max": "190000000",
        "device/hwmon/hwmon4/power1_rated_max": "190000000",
        "device/hwmon/hwmon4/fan1_input": "1400",
    }


def battlemage(*, idle_ms: tuple[int, int] = (1000, 4000)) -> dict[str, str]:
    """Return the files of an Arc B580 under xe: a GT that computes, and one for video."""
    tile, monitor = "device/tile0", "device/hwmon/hwmon6"
    return {
        **uevent("xe", "8086:E20B", "0000:0b:00.0"),
        **_POWER,
        f"{tile}/gt0/gtidle/idle_residency_ms": str(idle_ms[0]),
        f"{tile}/gt1/gtidle/idle_residency_ms": str(idle_ms[1]),
        f"{tile}/gt0/freq0/act_freq": "2850",
        f"{tile}/gt0/freq0/rp0_freq": "2850",
        f"{tile}/gt0/freq0/throttle/reason_thermal": "1",
        f"{monitor}/energy1_input": "9000000",
        f"{monitor}/power1_max": "190000000",
        f"{monitor}/temp2_label": "pkg",
        f"{monitor}/temp2_input": "55000",
        f"{monitor}/temp3_label": "vram",
        f"{monitor}/temp3_input": "62000",
    }


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a card anew, each at once, as a driver does."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}")
        fresh.write_text(f"{text}\n", encoding="ascii")
        fresh.replace(path)


def pci_card(folder: Path, status: str, control: str = "auto") -> None:
    """Let the system list an NVIDIA card, awake or not, that it may suspend or not."""
    files = {"vendor": "0x10de", "class": "0x030000", "power/runtime_status": status, "power/control": control}
    write_files(folder / "0000:01:00.0", files)


def write_cards(root: Path, *cards: Mapping[str, str], first: int = 0) -> tuple[Path, ...]:
    """Write the folders of cards, numbered from `first`, and return them."""
    folders = tuple(root / "sys/class/drm" / f"card{number}" for number in range(first, first + len(cards)))
    for folder, files in zip(folders, cards, strict=True):
        write_files(folder, files)
        # A card's outputs are folders beside it.
        (folder.parent / f"{folder.name}-DP-1").mkdir(exist_ok=True)
    return folders


def open_card(root: Path, pid: int, *clients: Mapping[str, str]) -> None:
    """Let a process have opened cards: a file for each of `clients`, with what the driver says of it."""
    folder = root / "proc" / str(pid)
    for number, client in enumerate(clients, 10):
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        link = folder / "fd" / str(number)
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/dri/renderD128")
        lines = {"pos": "0", "drm-client-id": str(number), **client}
        write_files(folder / "fdinfo", {str(number): "\n".join(f"{name}:\t{value}" for name, value in lines.items())})
    (folder / "fd").mkdir(parents=True, exist_ok=True)
    other = folder / "fd/0"
    other.unlink(missing_ok=True)
    other.symlink_to("/dev/null")


def compute_on(root: Path, pid: int, used: int, place: int = 0x300) -> None:
    """Let ROCm's driver say how much memory a process holds on the card at `place` (bus, device and function)."""
    kfd = root / "sys/class/kfd/kfd"
    write_files(
        kfd / "topology/nodes/1", {"properties": f"simd_count 96\nlocation_id {place}\ndomain 0", "gpu_id": "777"}
    )
    write_files(kfd / f"proc/{pid}", {"vram_777": str(used), "sdma_777": "0"})


AMD = {"amd": 1, "amd__bus": 3, "amd__gfx": 88, "amd__energy": 2_000_000, "amd__ce": 5, "amd__ue": 1}
"""What the fake of AMD's library says of one card."""
INTEL = {
    "intel": 1,
    "intel__size": 16 * GIB,
    "intel__free": 10 * GIB,
    "intel__celsius": 51,
    "intel__memory_celsius": 62,
}
"""What the fake of Intel's library says of one card."""
