"""GPUs of AMD and Intel, and NVIDIA's under nouveau, as Linux' DRM shows them in files."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.environment import can_runtime_suspend, power_state, text_of
from planner.monitor.host.processes import HostProcesses
from planner.monitor.host.sleep import SleepPolicy
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess
from planner.monitor.sources.drm_drivers import DRIVERS, DrmCard
from planner.monitor.sources.drm_processes import DrmProcesses
from planner.monitor.sources.files import CardFiles, uevent
from planner.monitor.sources.source import CardGoneError

_CARDS: Final = "sys/class/drm"
_NAMES_OF_AMD: Final = "usr/share/libdrm/amdgpu.ids"
_NAMES_OF_ALL: Final = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids")


class DrmSource:
    """GPUs below `/sys/class/drm`; a GPU that is asleep is not read, and one that is idle may fall asleep."""

    def __init__(self, root: Path, host: HostProcesses, *, sees_same_pids: bool) -> None:
        self.calls = DriverCalls()
        self._root = root
        self._cards: dict[str, DrmCard] = {}
        self._found: dict[str, Device] = {}
        self._sleep: dict[str, SleepPolicy] = {}
        self._busy: dict[str, bool] = {}
        self._processes = DrmProcesses(root, self.calls, host, sees_same_pids=sees_same_pids)

    def find(self, now: float) -> tuple[Device, ...]:
        """Return the GPUs with a driver that is known; only what the system itself keeps is read of those asleep."""
        found = {}
        for folder in sorted((self._root / _CARDS).glob("card*")):
            if folder.name.removeprefix("card").isdigit():
                facts = uevent(folder / "device")
                driver = DRIVERS.get(facts.get("DRIVER", ""))
                if driver is not None:
                    with suppress(CardGoneError):
                        device = self._device(folder, facts, now)
                        found[device.uuid] = device
        self._found = found
        self._cards = {uuid: card for uuid, card in self._cards.items() if uuid in found}
        return tuple(found.values())

    def read(self, device: Device, now: float, *, slow: bool) -> dict[str, Reading]:
        """Return the readings of a GPU.

        Raises:
            CardGoneError: If the GPU's folder is gone.
        """
        card = self._cards.get(device.uuid)
        if card is None or not card.files.folder.exists():
            raise CardGoneError("its folder is gone")
        readings = card.read(now, slow=slow)
        use = readings.get("utilization_fraction")
        self._busy[device.uuid] = use is not None and bool(use.value)
        return readings

    def processes(self, devices: Collection[Device], now: float) -> tuple[CardProcess, ...]:
        """Return the processes that have opened the GPUs, as far as this user may see what they opened."""
        listed = self._processes.read(devices, now)
        for device in devices:
            is_idle = not self._busy.get(device.uuid) and all(each.uuid != device.uuid for each in listed)
            if self._sleep[device.uuid].should_release(now, is_idle=is_idle):
                # Not read until it sleeps: each reading would keep it awake.
                self._busy.pop(device.uuid, None)
        return listed

    def close(self) -> None:
        """Forget the GPUs, whose files are open only while they are read."""
        self._cards = {}

    def _device(self, folder: Path, facts: dict[str, str], now: float) -> Device:
        driver = DRIVERS[facts["DRIVER"]]
        address = facts.get("PCI_SLOT_NAME", "")
        uuid = f"{driver.vendor}-{address or folder.name}"
        policy = self._sleep.setdefault(uuid, _sleep_policy(folder / "device"))
        known = self._found.get(uuid)
        if not policy.may_open(now):
            named = known or Device(uuid, self._name(driver.vendor, facts), 0, address, driver=driver.name)
            return replace(named, state="asleep")
        card = self._cards.get(uuid)
        if card is None:
            card = self._cards[uuid] = DrmCard(CardFiles(self.calls, uuid, folder), driver)
            known = None
        if known is not None and known.state == "running":
            return known
        name = card.files.text("device/product_name") or self._name(driver.vendor, facts)
        return Device(uuid, name, 0, address, driver=driver.name, facts=card.facts())

    def _name(self, vendor: str, facts: dict[str, str]) -> str:
        """Return a GPU's name from the lists that Linux' distributions keep, or its number at the vendor."""
        vendor_id, _, card_id = facts.get("PCI_ID", "").lower().partition(":")
        if vendor == "AMD" and (name := _amd_name(self._root / _NAMES_OF_AMD, card_id)):
            return name
        names = (_pci_name(self._root / path, vendor_id, card_id) for path in _NAMES_OF_ALL)
        name = next(filter(None, names), "")
        return f"{vendor} {name}" if name else f"{vendor} GPU {card_id}".strip()


def _sleep_policy(folder: Path) -> SleepPolicy:
    return SleepPolicy(lambda: {folder.name: power_state(folder)}, lambda _name: can_runtime_suspend(folder))


@cache
def _amd_name(path: Path, card_id: str) -> str:
    """Return the name of an AMD GPU in libdrm's list if all its revisions have one, else an empty text."""
    names = set()
    for line in text_of(path).splitlines():
        cells = [cell.strip() for cell in line.split(",", 2)]
        if len(cells) == 3 and cells[0].lower() == card_id:
            names.add(cells[2])
    return names.pop() if len(names) == 1 else ""


@cache
def _pci_name(path: Path, vendor_id: str, card_id: str) -> str:
    """Return a GPU's name in a list of PCI numbers, the one in brackets if there is one, else an empty text."""
    is_vendor = False
    for line in text_of(path).splitlines():
        if not line.startswith(("\t", "#")):
            is_vendor = line.startswith(f"{vendor_id} ")
        elif is_vendor and line.startswith(f"\t{card_id} "):
            name = line.split(maxsplit=1)[1].strip()
            return name[name.index("[") + 1 : -1] if name.endswith("]") and "[" in name else name
    return ""
