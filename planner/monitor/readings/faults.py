"""Everything that can be wrong with the driver, a card or the sampler: its name, its title and what to do."""

import re
import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, NamedTuple


class FaultKind(StrEnum):
    """What is wrong; the values are names in JSON and in recordings."""

    NO_DRIVER = "no-driver"
    NO_LIBRARY = "library-missing"
    NO_BINDING = "binding-missing"
    WRONG_BINDING = "wrong-binding"
    MISMATCH = "version-mismatch"
    NO_PERMISSION = "no-permission"
    NO_CARDS = "no-cards"
    DRIVER_ERROR = "driver-error"
    NOT_ANSWERING = "not-answering"
    STUCK = "stuck"
    SAMPLER_CRASHED = "sampler-crashed"
    SAMPLER_FAILED = "sampler-failed"
    DRIVER_RESET = "driver-reset"
    LOST = "lost"
    RESET_REQUIRED = "reset-required"
    ASLEEP = "asleep"
    RELEASED = "released"
    BAD_NAME = "bad-name"
    IMPLAUSIBLE = "implausible"
    UNRELIABLE_PROCESSES = "unreliable-processes"
    FOREIGN_PIDS = "foreign-pids"
    WSL = "wsl"


Severity = Literal["error", "warning", "note"]


class About(NamedTuple):
    """A kind of fault in words: what it is, what to do, and how much it takes away."""

    title: str
    advice: str
    severity: Severity = "error"


FAULTS: Final = {
    FaultKind.NO_DRIVER: About(
        "the NVIDIA driver is not loaded",
        "Load it (on Linux: sudo modprobe nvidia), or install it if this machine has an NVIDIA card.",
    ),
    FaultKind.NO_LIBRARY: About(
        "NVIDIA's management library is not on this machine",
        "It comes with the NVIDIA driver; in a container, start it with --gpus all or the NVIDIA runtime.",
    ),
    FaultKind.NO_BINDING: About("the package nvidia-ml-py is not installed", "Run: pip install nvidia-ml-py"),
    FaultKind.WRONG_BINDING: About(
        "another package named pynvml stands in the way of nvidia-ml-py",
        "Run: pip uninstall pynvml, then: pip install --force-reinstall nvidia-ml-py",
    ),
    FaultKind.MISMATCH: About(
        "the driver was updated while its older part is still loaded",
        "Reboot; nothing needs to be installed again.",
    ),
    FaultKind.NO_PERMISSION: About(
        "this user may not talk to the driver",
        "See the rights of /dev/nvidiactl and /dev/nvidia0; often the user must join the group video or render.",
    ),
    FaultKind.NO_CARDS: About(
        "the driver is there, but shows no card",
        "See what lspci and nvidia-smi say; in a container, pass the cards in; after a fault, a reboot may help.",
    ),
    FaultKind.DRIVER_ERROR: About(
        "the driver cannot be talked to",
        "In a container that ran for hours, start it anew (its device rights were withdrawn); else see dmesg.",
    ),
    FaultKind.NOT_ANSWERING: About(
        "the driver does not answer",
        "It is asked again soon. If this lasts, see dmesg for Xid or NVRM lines; a reboot may be needed.",
        "warning",
    ),
    FaultKind.STUCK: About(
        "a call into the driver cannot even be ended",
        "The process hangs inside the kernel; only a reboot clears that. The machine itself is still watched.",
    ),
    FaultKind.SAMPLER_CRASHED: About(
        "the process that reads the cards crashed inside the driver's library",
        "It is started again after a pause. If it happens again and again, see dmesg and update the driver.",
        "warning",
    ),
    FaultKind.SAMPLER_FAILED: About(
        "the process that reads the cards ended",
        "It is started again after a pause.",
        "warning",
    ),
    FaultKind.DRIVER_RESET: About("the driver was reset or replaced", "The cards were found again.", "note"),
    FaultKind.LOST: About(
        "the card does not answer any more",
        "It may have fallen off the bus: see dmesg for Xid 79. The others are still read. Often only a reboot helps.",
    ),
    FaultKind.RESET_REQUIRED: About(
        "the card asks for a reset",
        "End what runs on it, then: sudo nvidia-smi --gpu-reset, or reboot.",
    ),
    FaultKind.ASLEEP: About("the card sleeps and is not woken", "It is read as soon as something uses it.", "note"),
    FaultKind.RELEASED: About("the driver was let go", "Reading goes on when it is asked for.", "note"),
    FaultKind.BAD_NAME: About(
        "the driver's name for the card is no text", "Some WSL drivers do so; it is named by its place.", "note"
    ),
    FaultKind.IMPLAUSIBLE: About(
        "the driver tells a value that cannot be true", "It is shown as it was told, and marked.", "note"
    ),
    FaultKind.UNRELIABLE_PROCESSES: About(
        "what the driver tells of processes cannot be true",
        "Drivers 535 are known for it, also a binding that is older than the driver; update either.",
        "warning",
    ),
    FaultKind.FOREIGN_PIDS: About(
        "the driver numbers processes as the host of this container does",
        "They are shown by number only; watch them from the host, or start the container with --pid=host.",
        "note",
    ),
    FaultKind.WSL: About(
        "Windows keeps some readings to itself under WSL",
        "Fan, processes and their memory are often missing here; a monitor on Windows sees more.",
        "note",
    ),
}
"""Every kind of fault in words."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong now, since when, and of which card (none: of all). `detail` says what was seen."""

    kind: FaultKind
    since_seconds: float
    uuid: str | None = None
    detail: str = ""

    @property
    def about(self) -> About:
        """Return it in words."""
        return FAULTS[self.kind]

    @property
    def key(self) -> tuple[FaultKind, str | None]:
        """Return what it is the same fault by, however its detail changes."""
        return self.kind, self.uuid


class FaultBook:
    """The faults of now; one that goes on keeps its first time."""

    def __init__(self) -> None:
        self._faults: dict[tuple[FaultKind, str | None], Fault] = {}

    @property
    def current(self) -> tuple[Fault, ...]:
        """Return what is wrong now, the oldest first."""
        return tuple(sorted(self._faults.values(), key=lambda fault: fault.since_seconds))

    def note(self, fault: Fault) -> None:
        """Take down a fault; if it is known, its time stays."""
        known = self._faults.get(fault.key)
        since = fault.since_seconds if known is None else known.since_seconds
        self._faults[fault.key] = Fault(fault.kind, since, fault.uuid, fault.detail)

    def clear(self, *kinds: FaultKind, uuid: str | None = None) -> None:
        """Strike out what is over, of one card or of all."""
        for kind in kinds:
            self._faults.pop((kind, uuid), None)

    def keep_devices(self, uuids: frozenset[str]) -> None:
        """Strike out what belongs to other cards than these."""
        self._faults = {key: fault for key, fault in self._faults.items() if key[1] is None or key[1] in uuids}


RESTART: Final = 75
"""The exit code with which the sampler asks for a new process: a temporary failure (EX_TEMPFAIL)."""

_CRASHES: Final = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")

# Windows ends a process that crashed with its exception's code, an error from 0xC0000000 on.
_FIRST_EXCEPTION: Final = 0xC0000000

_CALL: Final = re.compile(r"\bin (nvml\w+)")


class Ending(NamedTuple):
    """Why the sampler ended; no kind where it asked for a new process."""

    kind: FaultKind | None
    detail: str = ""


def explain_ending(code: int | None, report: str) -> Ending:
    """Return why the sampler ended with `code` (negative: a signal) after it wrote `report`."""
    if code == RESTART:
        return Ending(None)
    call = _CALL.search(report)
    where = f" in {call[1]}" if call else ""
    if code is not None and code >= _FIRST_EXCEPTION:
        return Ending(FaultKind.SAMPLER_CRASHED, f"{code:#x}{where}")
    if code is not None and code < 0:
        name = _signal_name(-code)
        kind = FaultKind.SAMPLER_CRASHED if name in _CRASHES else FaultKind.SAMPLER_FAILED
        return Ending(kind, f"{name}{where}")
    lines = report.strip().splitlines()
    return Ending(FaultKind.SAMPLER_FAILED, lines[-1] if lines else f"exit code {code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
