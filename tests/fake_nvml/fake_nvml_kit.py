"""Builds the stand-in for NVIDIA's library, writes what it should say, and hears what is made of it."""

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, Queue
from time import monotonic

import psutil
import pytest

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import Sample
from planner.monitor.settings import SamplerSettings, Timeouts
from planner.monitor.sources import amd_smi, level_zero
from planner.monitor.supervisor.snapshot import apply_update
from planner.monitor.supervisor.supervisor import Supervisor, Update

SOURCE = Path(__file__).parent / "fake_nvml.c"
VENDORS = Path(__file__).parent / "fake_vendors.c"
LIBRARY = "libnvidia-ml.so.1"
A = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
B = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
C = "GPU-cccccccc-0000-0000-0000-000000000000"
FAST = SamplerSettings(
    fast_seconds=0.1,
    slow_seconds=0.1,
    process_seconds=0.1,
    retry_seconds=0.1,
    look_again_seconds=0.1,
    hang_seconds=10.0,
)
# A busy machine may make a sampler wait: only tests of one that hangs are in a hurry.
CALM = Timeouts(start=20.0, quiet=10.0, kill=20.0, end=5.0, first_retry=0.1, last_retry=0.2, healthy=0.3)
HURRIED = CALM._replace(start=5.0, quiet=0.15, quiet_start=0.15, kill=0.3)
# Generous: only a test that fails waits so long.
LONGEST_SECONDS = 30.0

_ORDINARY = {
    "memory.total": 24 * 2**30,
    "memory.reserved": 2**28,
    "memory.used": 2**30,
    "utilization": 50,
    "memory_utilization": 20,
    "power": 200_000,
    "power_limit": 450_000,
    "temperature.0": 60,
    "clock.1": 2520,
    "clock.2": 10501,
    "fan": 30,
    "pstate": 2,
    "reasons": 0,
    "encoder": 0,
    "decoder": 0,
    "pcie.0": 1000,
    "pcie.1": 7000,
    "pcie_generation": 4,
    "pcie_width": 16,
}


def card(number: int | str, uuid: str, **changes: object) -> dict[str, object]:
    """Return the keys of an ordinary card; a name with __ for a dot changes one, None takes it away."""
    values = {"uuid": uuid, "name": f"NVIDIA Test {number}", "pci": f"00000000:0{number}:00.0", **_ORDINARY}
    values |= {name.replace("__", "."): value for name, value in changes.items()}
    return {f"{number}.{name}": value for name, value in values.items() if value is not None}


class FakeNvml:
    """A driver under the test's control: what it says, what it was asked, and a supervisor that listens to it."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder, self.library = folder, library
        self.script, self.log = folder / "script.txt", folder / "log.txt"
        self.root = folder / "system"
        self.vendors_script = folder / "vendors.txt"
        self.latest = Latest()
        self.updates: list[Update] = []
        self._queue: Queue[Update] = Queue()

    def say(self, *cards: Mapping[str, object], events: tuple[str, ...] = (), **general: object) -> None:
        """Write the whole script anew: the cards' keys, then general ones."""
        keys: dict[str, object] = {"count": len(cards)}
        for one in cards:
            keys |= one
        keys |= {name.replace("__", "."): value for name, value in general.items()}
        lines = [f"{key} {value}" for key, value in keys.items()] + [f"event {event}" for event in events]
        fresh = self.script.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
        fresh.replace(self.script)

    def say_of_vendors(self, **said: float) -> None:
        """Write anew what the libraries of AMD and Intel say, with __ for a dot in a key."""
        fresh = self.vendors_script.with_suffix(".new")
        fresh.write_text("".join(f"{name.replace('__', '.')} {value}\n" for name, value in said.items()))
        fresh.replace(self.vendors_script)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment in which the binding finds this library."""
        places = {
            "LD_LIBRARY_PATH": str(self.library.parent),
            "FAKE_NVML_SCRIPT": str(self.script),
            "FAKE_NVML_LOG": str(self.log),
            "GPU_PLANNER_SYSTEM_ROOT": str(self.root),
            "FAKE_VENDORS_SCRIPT": str(self.vendors_script),
        }
        return {**os.environ, **places}

    def say_power_state(self, status: str, control: str = "auto") -> None:
        """Let the system say of a card of a laptop whether it is awake, without its driver."""
        place = self.root / "sys/bus/pci/devices/0000:01:00.0"
        (place / "power").mkdir(parents=True, exist_ok=True)
        files = {"vendor": "0x10de", "class": "0x030200", "power/control": control, "power/runtime_status": status}
        for name, content in files.items():
            (place / name).write_text(f"{content}\n", encoding="ascii")

    def say_surroundings(self, *, has_own_pids: bool = False, is_wsl: bool = False) -> None:
        """Let the system look like a container with process numbers of its own, or like Linux under Windows."""
        links = self.root / "proc/self/ns"
        links.mkdir(parents=True)
        (links / "pid").symlink_to("pid:[4026532001]" if has_own_pids else "pid:[4026531836]")
        if is_wsl:
            (self.root / "dev").mkdir()
            (self.root / "dev/dxg").touch()

    def calls(self) -> list[str]:
        """Return what was called so far, each with its card."""
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    def supervisor(self, settings: SamplerSettings = FAST, timeouts: Timeouts = CALM) -> Supervisor:
        """Return a supervisor whose updates `wait_for` hears."""
        return Supervisor(self._queue.put, settings, timeouts, self.environment)

    def wait_for(self, holds: Callable[[Latest], bool]) -> Latest:
        """Hear updates until `holds` of what stands."""
        deadline = monotonic() + LONGEST_SECONDS
        while not holds(self.latest):
            try:
                update = self._queue.get(timeout=max(0.01, deadline - monotonic()))
            except Empty:
                pytest.fail(f"never held; faults: {self.latest.inventory.faults}")
            self.updates.append(update)
            apply_update(self.latest, update)
        return self.latest

    def wait_for_sample(self, holds: Callable[[Sample], bool] = lambda sample: True) -> Sample:
        """Hear updates until a sample for which `holds`."""
        found: list[Sample] = []

        def arrived(_latest: Latest) -> bool:
            last = self.updates[-1] if len(self.updates) > heard else None
            found.extend([last] if isinstance(last, Sample) and holds(last) else [])
            return bool(found)

        heard = len(self.updates)
        self.wait_for(arrived)
        return found[-1]

    def wait_for_fault(self, kind: FaultKind, uuid: str | None = None, detail: str | None = None) -> Fault:
        """Hear updates until that is wrong, and says so."""
        found: list[Fault] = []

        def holds(latest: Latest) -> bool:
            faults = (fault for fault in latest.inventory.faults if fault.key == (kind, uuid))
            found.extend(fault for fault in faults if detail in (None, fault.detail))
            return bool(found)

        self.wait_for(holds)
        return found[-1]

    def wait_until_over(self, kind: FaultKind, uuid: str | None = None) -> Inventory:
        """Hear updates until that is not wrong any more."""
        return self.wait_for(lambda latest: (kind, uuid) not in keys_of(latest)).inventory


def states_of(latest: Latest) -> dict[str, str]:
    """Return how each card is."""
    return {device.uuid: device.state for device in latest.inventory.devices}


def keys_of(latest: Latest) -> set[tuple[FaultKind, str | None]]:
    """Return what is wrong with what."""
    return {fault.key for fault in latest.inventory.faults}


def build(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Compile the library, without some of its functions, and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    _compile(SOURCE, folder / LIBRARY, without, f"-Wl,-soname,{LIBRARY}")
    return folder / LIBRARY


def _compile(source: Path, library: Path, without: tuple[str, ...], *flags: str) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("the stand-ins for vendors' libraries need Linux and a C compiler")
    hidden = library.with_name("hidden.map")
    names = "".join(f"{name}; " for name in ("no_such_name", *without))
    hidden.write_text(f"{{ global: *; local: {names}}};")
    flags = ("-O1", "-shared", "-fPIC", f"-Wl,--version-script={hidden}", *flags)
    subprocess.run([compiler, *flags, "-o", library, source], check=True)


def build_vendors(folder: Path, nvml_library: Path, without: tuple[str, ...] = ()) -> Path:
    """Compile the libraries of AMD and Intel, without some of their functions, beside NVIDIA's, and return its file."""
    amd = folder / "libamd_smi.so"
    _compile(VENDORS, amd, without)
    shutil.copy(amd, folder / "libze_loader.so.1")
    return Path(shutil.copy(nvml_library, folder))


@pytest.fixture(scope="session")
def vendors_library(nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return NVIDIA's library in a folder with those of AMD and Intel."""
    return build_vendors(tmp_path_factory.mktemp("vendors"), nvml_library)


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the whole library."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def fake_nvml(tmp_path: Path, nvml_library: Path) -> Iterator[FakeNvml]:
    """Give a driver for samplers in processes of their own, and see that they leave nothing behind."""
    before = _belongings()
    yield FakeNvml(tmp_path, nvml_library)
    assert _belongings() == before


@pytest.fixture
def fake_vendors(tmp_path: Path, vendors_library: Path) -> Iterator[FakeNvml]:
    """Give the libraries of all vendors for samplers in processes of their own."""
    before = _belongings()
    yield FakeNvml(tmp_path, vendors_library)
    assert _belongings() == before


@pytest.fixture
def near_vendors(tmp_path: Path, vendors_library: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Return the libraries of AMD and Intel for this very process."""
    driver = FakeNvml(tmp_path, vendors_library)
    for module, interface in ((amd_smi, "AMD_SMI"), (level_zero, "LEVEL_ZERO")):
        real = getattr(module, interface)
        names = ("libno_such_library.so", str(vendors_library.parent / real.names[0]))
        monkeypatch.setattr(module, interface, real._replace(names=names))
    monkeypatch.setenv("FAKE_VENDORS_SCRIPT", str(driver.vendors_script))
    return driver


def _belongings() -> tuple[int, int, int]:
    """Return how many threads, open files and processes this process has."""
    process = psutil.Process()
    return threading.active_count(), process.num_fds(), len(process.children(recursive=True))


@pytest.fixture
def near_nvml(fake_nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Return a driver for this very process: the binding finds the library that is already loaded by its name."""
    ctypes.CDLL(str(fake_nvml.library))
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    return fake_nvml
