"""Another machine over SSH: its address, the command that starts its sampler, its clock, and why a connection ended."""

import re
from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import unquote

from planner.errors import SpecError
from planner.monitor.readings.faults import FaultKind, SamplerExit, explain_sampler_exit
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import CardProcess, Sample
from planner.monitor.readings.wire import ClockAnswer
from planner.monitor.settings import Timeouts

SCHEME: Final = "ssh://"
REMOTE_TIMEOUTS: Final = Timeouts(start=40.0, quiet=2.0, quiet_start=15.0, kill=15.0)
"""Timeouts for a machine at the other end of a network, to which a connection may take ten seconds."""

CLOCK_TOLERANCE_SECONDS: Final = 1.0
"""Differences of clocks up to which nothing is said: less does not show on a time line of minutes."""

_ADDRESS: Final = re.compile(
    r"ssh://(?:(?P<user>[\w.][\w.\\@+-]*)@)?(?P<host>[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.]+(?:%\w+)?\])"
    r"(?::(?P<port>\d{1,5}))?(?P<program>/[\w./~+-]*)?",
    re.ASCII,
)
_PROGRAM: Final = "gpu-planner"
# Nothing is ever asked, since nobody may be there to answer. A dead connection is noticed after fifteen seconds.
_OPTIONS: Final = (
    *("-T", "-x", "-a"),
    *("-o", "BatchMode=yes"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "LogLevel=ERROR"),
)


class RemoteAddress(NamedTuple):
    """Address of a machine over SSH; the user and the port are those of SSH's own settings unless they are given."""

    host: str
    user: str = ""
    port: int | None = None
    program: str = _PROGRAM

    @classmethod
    def parse(cls, text: str) -> "RemoteAddress":
        """Return the address in `ssh://[USER@]HOST[:PORT][/PATH/OF/gpu-planner]`; `/~/` stands for the home folder.

        Raises:
            SpecError: If it is no such address.
        """
        match = _ADDRESS.fullmatch(unquote(text.strip()))
        port = None if match is None or match["port"] is None else int(match["port"])
        if match is None or (port is not None and not 0 < port < 65_536):
            reason = f"{text!r} is not ssh://[USER@]HOST[:PORT][/PATH/OF/gpu-planner]"
            raise SpecError("machine", reason, f"Write it as {SCHEME}gpu-box, or {SCHEME}me@gpu-box:22.")
        path = (match["program"] or "").rstrip("/")
        program = path.removeprefix("/") if path.startswith("/~/") else path
        return cls(match["host"].strip("[]"), match["user"] or "", port, program or _PROGRAM)

    def __str__(self) -> str:
        program = "" if self.program == _PROGRAM else f"/{self.program.removeprefix('/')}"
        return f"{SCHEME}{self.login}{program}"

    @property
    def login(self) -> str:
        """Return the address without its program: `[USER@]HOST[:PORT]`."""
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{user}{host}{port}"

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command that runs the machine's sampler by OpenSSH's client."""
        port = () if self.port is None else ("-p", str(self.port))
        user = ("-l", self.user) if self.user else ()
        # The characters of an address need no quoting in any shell.
        return ("ssh", *_OPTIONS, *port, *user, "--", self.host, self.program, "monitor", "--wire")


class RemoteClock:
    """Another machine's clocks relative to this one's, in seconds, from one question and its answer.

    **Formula** The other clock's reading minus the middle of the time between the question and the answer; it is off by
    at most half of that time.

    **Source** RFC 5905 (NTP), section 8.
    """

    def __init__(self, answer: ClockAnswer, monotonic_seconds: float, wall_seconds: float) -> None:
        half = (monotonic_seconds - answer.asked_seconds) / 2
        self.offset_seconds = answer.wall_seconds - (wall_seconds - half)
        self.error_seconds = half
        self._monotonic_offset = answer.monotonic_seconds - (monotonic_seconds - half)
        self._there = answer.wall_seconds - answer.monotonic_seconds
        self._here = wall_seconds - monotonic_seconds

    def was_set(self, sample: Sample, monotonic_seconds: float, wall_seconds: float) -> bool:
        """Return whether a clock, there or here, was set since the answer, so that it must be asked for again."""
        there = sample.wall_seconds - sample.monotonic_seconds - self._there
        here = wall_seconds - monotonic_seconds - self._here
        return max(abs(there), abs(here)) > CLOCK_TOLERANCE_SECONDS

    def corrected(self, message: Inventory | Sample) -> Inventory | Sample:
        """Return what the other machine reports with its times by the clocks of this one."""
        if isinstance(message, Sample):
            processes = None if message.processes is None else tuple(map(self._corrected_process, message.processes))
            return replace(
                message,
                monotonic_seconds=message.monotonic_seconds - self._monotonic_offset,
                wall_seconds=message.wall_seconds - self.offset_seconds,
                processes=processes,
            )
        faults = (replace(fault, since_seconds=fault.since_seconds - self.offset_seconds) for fault in message.faults)
        return replace(message, faults=tuple(faults))

    def _corrected_process(self, process: CardProcess) -> CardProcess:
        host = process.host
        if host is None:
            return process
        # Nobody here may end it, whoever runs it there.
        return replace(
            process, host=host._replace(started_seconds=host.started_seconds - self.offset_seconds, is_own=False)
        )


def plain_text(text: str) -> str:
    """Return what another machine says of itself as one short line, without what would control a terminal."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:_LONGEST_TEXT]


def clock_offset_text(seconds: float) -> str:
    """Return how far another machine's clock is off, in words: `1 h 0 min ahead`."""
    whole = round(abs(seconds))
    hours, minutes = divmod(whole // 60, 60)
    size = f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
    return f"{size} {'ahead' if seconds > 0 else 'behind'}"


# What OpenSSH's client prints, and the first of these that it contains.
_SSH_FAILURES: Final[tuple[tuple[str, FaultKind], ...]] = (
    ("HOST IDENTIFICATION HAS CHANGED", FaultKind.CHANGED_HOST_KEY),
    ("Host key verification failed", FaultKind.UNKNOWN_HOST_KEY),
    ("host key is known for", FaultKind.UNKNOWN_HOST_KEY),
    ("Permission denied (", FaultKind.REFUSED),
    ("Too many authentication failures", FaultKind.REFUSED),
    ("Fatal Python error", FaultKind.SAMPLER_CRASHED),
)
_SSH_FAILED: Final = 255
_LONGEST_TEXT: Final = 200
# Shells: found but not executable, and not found; the last is that of Windows' cmd.
_NOT_FOUND: Final = (126, 127, 9009)
_WRONG_OPTION: Final = 2
_SIGNAL_BASE: Final = 128


def explain_ssh_exit(code: int | None, output: str, *, has_greeted: bool) -> SamplerExit:
    """Return why a connection ended: `code` and `output` of the SSH client, and whether the sampler had greeted."""
    lines = output.strip().splitlines()
    # Of a changed key, the line that says where the old one is kept tells more than the last.
    last = plain_text(next((line for line in lines if line.startswith("Offending ")), lines[-1])) if lines else ""
    if code == _SSH_FAILED:
        kind = next((kind for words, kind in _SSH_FAILURES if words in output), FaultKind.UNREACHABLE)
        return SamplerExit(kind, last or "the connection was lost")
    if not has_greeted and code in _NOT_FOUND:
        return SamplerExit(FaultKind.NO_PROGRAM, last)
    if not has_greeted and code == _WRONG_OPTION:
        return SamplerExit(FaultKind.OTHER_VERSION, "it cannot send its readings")
    if not has_greeted and code == 0:
        return SamplerExit(FaultKind.NO_PROGRAM, last or "what answered is not gpu-planner")
    if code is not None and code > _SIGNAL_BASE:
        return explain_sampler_exit(_SIGNAL_BASE - code, output)
    return explain_sampler_exit(code, output)
