"""Sampling intervals, timeouts and alert thresholds of the monitor."""

import shlex
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from planner.base import Spec
from planner.validation import HintedError

FASTEST_SECONDS: Final = 0.1
SLOWEST_SECONDS: Final = 10.0


class SamplerSettings(NamedTuple):
    """Sampling intervals in seconds: for fast quantities, slow quantities and processes.

    The driver is not opened before `driver_after_seconds`. A failed attempt to open the driver is repeated after
    `retry_seconds`, and lost GPUs are searched for after `look_again_seconds`; these pauses grow with each attempt.
    A driver call that takes longer than `hang_seconds` is no longer waited for.
    """

    fast_seconds: float = 1.0
    slow_seconds: float = 4.0
    process_seconds: float = 3.0
    driver_after_seconds: float = 0.0
    retry_seconds: float = 1.0
    look_again_seconds: float = 10.0
    hang_seconds: float = 0.7


def clamp_interval(seconds: float) -> float:
    """Limit a sampling interval to the supported range, in seconds."""
    return min(max(seconds, FASTEST_SECONDS), SLOWEST_SECONDS)


class Timeouts(NamedTuple):
    """Timeouts of the supervisor, in seconds.

    A sampler that is silent for `quiet` longer than its interval (`quiet_start` before its first sample) is asked for
    the driver call in progress, and killed after `kill`; before its first sample only after `start`, since opening the
    driver of many GPUs without persistence is slow. A sampler that finds that no GPU responds is killed after
    `kill`, too; since it waits for a call for `SamplerSettings.hang_seconds`, `quiet` must be longer. The driver is
    retried after `first_retry`, then at doubling pauses up to `last_retry`; after `healthy` without faults the pause is
    reset. A sampler has `end` to exit.
    """

    start: float = 60.0
    quiet: float = 0.8
    quiet_start: float = 3.0
    kill: float = 10.0
    end: float = 2.0
    first_retry: float = 1.0
    last_retry: float = 60.0
    healthy: float = 30.0

    @property
    def stop(self) -> float:
        """Return the longest time to stop the sampler, in seconds; only a process stuck in the kernel needs longer."""
        return 5.0 + 4 * self.end


class BackOff:
    """Pauses that double from `first_seconds` to `longest_seconds`, until `reset`."""

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        self._first, self._longest = first_seconds, longest_seconds
        self._next = first_seconds

    def next_seconds(self) -> float:
        """Return the next pause in seconds, and double the following pause."""
        seconds = self._next
        self._next = min(self._next * 2, self._longest)
        return seconds

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self._next = self._first


class AlertRules(Spec):
    """Thresholds at which the monitor raises alerts; a threshold of None raises no alert.

    The temperature is in °C, memory use a fraction of the GPU's memory; an alert is raised once the value has stayed
    at or above the threshold for `hold_seconds`.
    """

    is_on: bool = False
    temperature_celsius: float | None = Field(default=90.0, ge=0, le=150)
    memory_fraction: float | None = Field(default=0.95, gt=0, le=1)
    idle_minutes: float | None = Field(default=None, gt=0, le=10_000)
    lost: bool = True
    silent: bool = True
    xid: bool = True
    process_ended: bool = False
    hold_seconds: float = Field(default=10.0, ge=0, le=3600)


class AlertTargets(Spec):
    """Targets of alerts besides the desktop: a command with its arguments, and a webhook; an empty text is none."""

    command: str = Field(default="", max_length=4_000)
    webhook: str = Field(default="", max_length=4_000)

    @field_validator("command")
    @classmethod
    def _split(cls, command: str) -> str:
        try:
            shlex.split(command)
        except ValueError as error:
            raise ValueError(f"{command!r} is not a command with its arguments: {error}") from error
        return command.strip()

    @field_validator("webhook")
    @classmethod
    def _check_scheme(cls, url: str) -> str:
        parts = urlsplit(url.strip())
        is_local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
        if url.strip() and not (parts.hostname and (parts.scheme == "https" or is_local)):
            raise HintedError(
                "a webhook is an address that starts with https://",
                "Without TLS it must be on this machine, such as http://localhost:9000.",
            )
        return url.strip()
