"""Faults of the driver, a GPU or the sampler, with titles, advice and severity."""

import re
import signal
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from planner.installation import package_command


class FaultKind(StrEnum):
    """Kind of fault; the values are names in JSON and in recordings."""

    NO_DRIVER = "no-driver"
    NO_LIBRARY = "library-missing"
    NO_BINDING = "binding-missing"
    WRONG_BINDING = "wrong-binding"
    MISMATCH = "version-mismatch"
    NO_PERMISSION = "no-permission"
    NO_CARDS = "no-cards"
    DRIVER_ERROR = "driver-error"
    NOT_ANSWERING = "not-answering"
    CARD_NOT_ANSWERING = "card-not-answering"
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
    SOURCE_FAILED = "source-failed"
    HELPER_MISSING = "helper-missing"
    NO_SSH = "ssh-missing"
    UNREACHABLE = "remote-unreachable"
    REFUSED = "remote-refused"
    UNKNOWN_HOST_KEY = "remote-host-key-unknown"
    CHANGED_HOST_KEY = "remote-host-key-changed"
    NO_PROGRAM = "remote-program-missing"
    OTHER_VERSION = "remote-version"
    REMOTE_SILENT = "remote-not-answering"
    CLOCK_OFF = "remote-clock"


LINK_FAULTS: Final = frozenset(
    {
        FaultKind.NO_SSH,
        FaultKind.UNREACHABLE,
        FaultKind.REFUSED,
        FaultKind.UNKNOWN_HOST_KEY,
        FaultKind.CHANGED_HOST_KEY,
        FaultKind.NO_PROGRAM,
        FaultKind.OTHER_VERSION,
    }
)
"""Faults because of which another machine is not connected; unless it was just unreachable, someone must act."""
SILENCING_FAULTS: Final = LINK_FAULTS | {FaultKind.REMOTE_SILENT}
"""Faults because of which nothing arrives from another machine, so that its last readings are no longer current."""


Severity = Literal["error", "warning", "note"]


class FaultDescription(NamedTuple):
    """Title, remedy and severity of a kind of fault; `meanwhile` is what a monitor does about it by itself."""

    title: str
    remedy: str
    severity: Severity = "error"
    meanwhile: str = ""

    @property
    def advice(self) -> str:
        """Return what a running monitor does about it, and what a person can do."""
        return " ".join(filter(None, (self.meanwhile, self.remedy)))


FAULTS: Final = {
    FaultKind.NO_DRIVER: FaultDescription(
        "the NVIDIA driver is not loaded",
        "Load the driver (on Linux: sudo modprobe nvidia), or install it if this machine has an NVIDIA GPU.",
    ),
    FaultKind.NO_LIBRARY: FaultDescription(
        "NVIDIA's management library (NVML) is missing",
        "NVML comes with the NVIDIA driver; start a container with --gpus all or the NVIDIA runtime.",
    ),
    FaultKind.NO_BINDING: FaultDescription(
        "the package nvidia-ml-py is not installed", f"Run: {package_command('nvidia-ml-py')}"
    ),
    FaultKind.WRONG_BINDING: FaultDescription(
        "another package named pynvml hides nvidia-ml-py",
        f"Uninstall pynvml, then run: {package_command('--force-reinstall', 'nvidia-ml-py')}",
    ),
    FaultKind.MISMATCH: FaultDescription(
        "the driver was updated, but the old kernel module is still loaded",
        "Reboot; nothing needs to be installed again.",
    ),
    FaultKind.NO_PERMISSION: FaultDescription(
        "this user may not access the driver",
        "Check the permissions of /dev/nvidiactl and /dev/nvidia0; the user may need the group video or render.",
    ),
    FaultKind.NO_CARDS: FaultDescription(
        "the driver is loaded, but lists no GPU",
        "Check lspci and nvidia-smi; in a container, pass the GPUs in; after a fault, a reboot may help.",
    ),
    FaultKind.DRIVER_ERROR: FaultDescription(
        "the driver cannot be accessed",
        "Restart a container that ran for hours (it may have lost its device permissions); otherwise check dmesg.",
    ),
    FaultKind.NOT_ANSWERING: FaultDescription(
        "the driver does not respond",
        "If this persists, check dmesg for Xid or NVRM lines; a reboot may be needed.",
        "warning",
        "The monitor retries soon.",
    ),
    FaultKind.CARD_NOT_ANSWERING: FaultDescription(
        "the driver does not respond for this GPU",
        "Other GPUs are still read, and this one too as soon as the driver responds. If this persists, check dmesg "
        "for errors of its driver (NVIDIA's are Xid and NVRM lines); a reboot may be needed.",
        "warning",
    ),
    FaultKind.STUCK: FaultDescription(
        "a driver call hangs and cannot be interrupted",
        "The process hangs inside the kernel; only a reboot ends it. The host is still monitored.",
    ),
    FaultKind.SAMPLER_CRASHED: FaultDescription(
        "the process that reads the GPUs crashed inside the driver's library",
        "If it keeps crashing, check dmesg and update the driver.",
        "warning",
        "The process restarts after a pause.",
    ),
    FaultKind.SAMPLER_FAILED: FaultDescription(
        "the process that reads the GPUs ended",
        "",
        "warning",
        "The process restarts after a pause.",
    ),
    FaultKind.DRIVER_RESET: FaultDescription(
        "the driver was reset or replaced", "The GPUs were detected again.", "note"
    ),
    FaultKind.LOST: FaultDescription(
        "the GPU no longer responds",
        "The GPU may have fallen off the bus: look for Xid 79 in dmesg (NVIDIA). A reboot often helps. The other GPUs "
        "are still read.",
    ),
    FaultKind.RESET_REQUIRED: FaultDescription(
        "the GPU requires a reset",
        "End the processes on the GPU, then: sudo nvidia-smi --gpu-reset, or reboot.",
    ),
    FaultKind.ASLEEP: FaultDescription(
        "the GPU is asleep", "Readings resume as soon as a program uses the GPU.", "note"
    ),
    FaultKind.RELEASED: FaultDescription(
        "disconnected from the driver", "Reconnect to the driver to resume readings.", "note"
    ),
    FaultKind.BAD_NAME: FaultDescription(
        "the driver's name for the GPU is not valid text",
        "Some WSL drivers do this; its PCI address is shown.",
        "note",
    ),
    FaultKind.IMPLAUSIBLE: FaultDescription(
        "the driver reports an implausible value", "The value is shown as reported, and marked.", "note"
    ),
    FaultKind.UNRELIABLE_PROCESSES: FaultDescription(
        "the driver reports implausible values for processes",
        "Known with drivers 535, and with a binding older than the driver; update either.",
        "warning",
    ),
    FaultKind.FOREIGN_PIDS: FaultDescription(
        "the driver reports the PIDs of the container's host",
        "Processes are shown by PID only; monitor them from the host, or start the container with --pid=host.",
        "note",
    ),
    FaultKind.WSL: FaultDescription(
        "some readings are unavailable under WSL",
        "Fan, processes and their memory are often missing; a monitor on Windows shows more.",
        "note",
    ),
    FaultKind.SOURCE_FAILED: FaultDescription(
        "a library or program that reports more about the GPUs cannot be used",
        "What the system itself reports is still read.",
        "note",
    ),
    FaultKind.HELPER_MISSING: FaultDescription(
        "the program that reads this GPU is not installed",
        "On a Mac, run: brew install macmon. On a Jetson, tegrastats comes with JetPack.",
        "warning",
        "Readings begin once it is there.",
    ),
    FaultKind.NO_SSH: FaultDescription(
        "the program ssh is missing on this machine",
        "Install the OpenSSH client (on Debian: sudo apt install openssh-client); Windows and macOS bring it along.",
    ),
    FaultKind.UNREACHABLE: FaultDescription(
        "the other machine cannot be reached",
        "Check its name and the network; in a terminal, this must work: ssh HOST",
        meanwhile="The monitor keeps trying.",
    ),
    FaultKind.REFUSED: FaultDescription(
        "the other machine accepts none of this user's SSH keys",
        "Passwords are not asked for: add your key there (ssh-copy-id HOST), or load it with ssh-add.",
    ),
    FaultKind.UNKNOWN_HOST_KEY: FaultDescription(
        "the other machine's SSH host key is not known here",
        "Connect once by hand (ssh HOST), compare the fingerprint that it shows, and accept it.",
    ),
    FaultKind.CHANGED_HOST_KEY: FaultDescription(
        "the other machine's SSH host key has changed",
        "It was installed anew, or another machine answers in its place. Find out which before you accept the new key: "
        "ssh HOST tells where the old one is kept.",
    ),
    FaultKind.NO_PROGRAM: FaultDescription(
        "GPU Planner was not found on the other machine",
        "Install it there as on this one; if it is in a virtual environment, name it: "
        "ssh://HOST/home/me/venv/bin/gpu-planner",
    ),
    FaultKind.OTHER_VERSION: FaultDescription(
        "the other machine has another version of GPU Planner, which this one cannot read",
        "Install the same version on both machines.",
    ),
    FaultKind.REMOTE_SILENT: FaultDescription(
        "the other machine does not respond",
        "",
        "warning",
        "Its last readings are not shown as current. The monitor connects again if the silence lasts.",
    ),
    FaultKind.CLOCK_OFF: FaultDescription(
        "the other machine's clock differs from this one's",
        "All times are shown by this machine's clock. Let both follow a time server (on Linux: timedatectl).",
        "note",
    ),
}
"""Descriptions of every kind of fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An active fault: its start, and its GPU (None: all GPUs). `detail` holds what was observed.

    `login` is `[USER@]HOST[:PORT]` of a machine that is not connected, for the advice; it is neither sent nor recorded.
    """

    kind: FaultKind
    since_seconds: float
    uuid: str | None = None
    detail: str = ""
    login: str = ""

    @property
    def description(self) -> FaultDescription:
        """Return the description of the fault's kind: title, advice and severity; the advice names the machine."""
        described = FAULTS[self.kind]
        if not self.login:
            return described
        host, _, port = self.login.rpartition(":")
        words = (f"-p {port} {host}" if port.isdecimal() else self.login).replace("[", "").replace("]", "")
        remedy = described.remedy.replace("ssh://HOST", f"ssh://{self.login}").replace("HOST", words)
        return described._replace(remedy=remedy)

    @property
    def key(self) -> tuple[FaultKind, str | None]:
        """Return the identity of the fault, which does not depend on its detail."""
        return self.kind, self.uuid


class ActiveFaults:
    """Active faults; a fault that persists keeps its start time."""

    def __init__(self) -> None:
        self._faults: dict[tuple[FaultKind, str | None], Fault] = {}

    @property
    def current(self) -> tuple[Fault, ...]:
        """Return the active faults, oldest first."""
        return tuple(sorted(self._faults.values(), key=lambda fault: fault.since_seconds))

    def note(self, fault: Fault) -> None:
        """Add a fault; a fault that is already active keeps its start time."""
        known = self._faults.get(fault.key)
        since = fault.since_seconds if known is None else known.since_seconds
        self._faults[fault.key] = replace(fault, since_seconds=since)

    def clear(self, *kinds: FaultKind, uuid: str | None = None) -> None:
        """Remove the faults of these kinds from one GPU; without `uuid`, remove faults that concern all GPUs."""
        for kind in kinds:
            self._faults.pop((kind, uuid), None)

    def report(self, fault: Fault, *, is_active: bool) -> None:
        """Add a fault if it `is_active`, else remove it."""
        if is_active:
            self.note(fault)
        else:
            self.clear(fault.kind, uuid=fault.uuid)

    def keep_devices(self, uuids: frozenset[str]) -> None:
        """Remove the faults of GPUs that are not in `uuids`."""
        self._faults = {key: fault for key, fault in self._faults.items() if key[1] is None or key[1] in uuids}


RESTART_EXIT_CODE: Final = 75
"""Exit code with which the sampler requests a new process: a temporary failure (EX_TEMPFAIL)."""

_CRASH_SIGNALS: Final = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")

# On Windows, the exit code of a crashed process is its exception code: 0xC0000000 or more.
_MIN_EXCEPTION_CODE: Final = 0xC0000000

_CALL: Final = re.compile(r"\bin (nvml\w+)")


class SamplerExit(NamedTuple):
    """Reason why the sampler exited; `kind` is None if the sampler requested a new process."""

    kind: FaultKind | None
    detail: str = ""


def explain_sampler_exit(code: int | None, report: str) -> SamplerExit:
    """Return why the sampler exited with `code` (negative: a signal) after printing `report`."""
    if code == RESTART_EXIT_CODE:
        return SamplerExit(None)
    call = _CALL.search(report)
    where = f" in {call[1]}" if call else ""
    if code is not None and code >= _MIN_EXCEPTION_CODE:
        return SamplerExit(FaultKind.SAMPLER_CRASHED, f"{code:#x}{where}")
    if code is not None and code < 0:
        name = _signal_name(-code)
        kind = FaultKind.SAMPLER_CRASHED if name in _CRASH_SIGNALS else FaultKind.SAMPLER_FAILED
        return SamplerExit(kind, f"{name}{where}")
    lines = report.strip().splitlines()
    return SamplerExit(FaultKind.SAMPLER_FAILED, lines[-1] if lines else f"exit code {code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
