"""Offline runs of Weights & Biases, which `wandb sync` uploads when somebody asks for it."""

import os
import shlex
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from planner.errors import RecordingError
from planner.installation import extra_command
from planner.monitor.recording.files import unwritable_error
from planner.present.trackers.run import DATED, PROJECT, RunStart, TextNote, TrackedMoment, TrackedPlan, dated_line
from planner.present.trackers.tensorboard import tensorboard_tag

_OWN_NAMES: Final = {
    "utilization_fraction": ("gpu", 100.0),
    "memory_controller_fraction": ("memory", 100.0),
    "memory_used_bytes": ("memoryAllocatedBytes", 1.0),
    "temperature_celsius": ("temp", 1.0),
    "power_watts": ("powerWatts", 1.0),
    "power_limit_watts": ("enforcedPowerLimitWatts", 1.0),
    "sm_clock_mhz": ("smClock", 1.0),
    "memory_clock_mhz": ("memoryClock", 1.0),
    "ecc_corrected": ("correctedMemoryErrors", 1.0),
    "ecc_uncorrected": ("uncorrectedMemoryErrors", 1.0),
    "fan_fraction": ("fanSpeed", 100.0),
    "encoder_fraction": ("encoderUtilization", 100.0),
}
"""W&B's names and units of its own readings of a card.

**Source** gpu_stats/src/gpu_nvidia.rs of github.com/wandb/wandb, version 0.31.0.
"""
_SHARES: Final = {"memory_used_bytes": "memoryAllocated", "power_watts": "powerPercent"}
_SECONDS: Final = "time_s"


class WandbRun:
    """An offline run in `FOLDER/wandb`, whose axis `time_s` are seconds since the first sample.

    `time_unix_s` are seconds since 1970: W&B dates what it keeps by the time of writing.

    Raises:
        RecordingError: If wandb is not installed, or cannot write the folder.
    """

    interval_seconds = 1.0

    def __init__(self, folder: Path, start: RunStart) -> None:
        self._folder = folder
        self._wandb = _import_wandb(folder)
        self._texts: dict[str, list[str]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable_error(folder, error) from error
        # W&B would add its own readings of this machine now.
        settings = self._wandb.Settings(
            x_disable_stats=True, x_disable_meta=True, disable_git=True, console="off", silent=True
        )
        self._run: Any = self._called(
            self._wandb.init,
            project=PROJECT,
            dir=str(folder.absolute()),
            mode="offline",
            name=start.name,
            settings=settings,
            config={"program": start.program, "started_unix_s": start.wall_seconds},
        )
        self.place = Path(self._run.dir).parent
        self._run.define_metric(_SECONDS)
        for pattern in ("gpu/*", "host/*", "plan/*"):
            self._run.define_metric(pattern, step_metric=_SECONDS)

    @property
    def view_command(self) -> str:
        """Return the shell command that uploads the run to W&B, where it can be seen."""
        return shlex.join(("wandb", "sync", str(self.place)))

    def add_values(self, moment: TrackedMoment) -> None:
        """Write the values of a moment.

        Raises:
            RecordingError: If wandb refuses them.
        """
        times = {_SECONDS: round(moment.seconds, 3), "time_unix_s": moment.wall_seconds}
        self._called(self._run.log, {**times, **dict(wandb_values(moment))})

    def add_text(self, tag: str, note: TextNote) -> None:
        """Keep a text for the file `TAG.md` of the run."""
        self._texts.setdefault(tag, []).append(dated_line(note) if tag in DATED else note.text)

    def add_plan(self, plan: TrackedPlan, note: TextNote) -> None:
        """Write the plan to the run's configuration."""
        self._run.config.update({"plan": dict(plan.fields)}, allow_val_change=True)
        self.add_text("plan", note)

    def flush(self) -> None:
        """Do nothing: each value is handed to W&B's own process at once."""

    def close(self, wall_seconds: float) -> None:  # W&B dates the end itself
        """Write the texts as files, and end the run.

        Raises:
            OSError: If a file cannot be written.
            RecordingError: If wandb cannot end the run.
        """
        for tag, texts in self._texts.items():
            Path(self._run.dir, f"{tag}.md").write_text("\n".join(texts) + "\n", encoding="utf-8")
        self._called(self._run.finish)

    def _called(self, function: Callable[..., Any], *values: object, **named: object) -> Any:  # noqa: ANN401
        """Return what a function of wandb returns."""
        try:
            return function(*values, **named)
        except (self._wandb.Error, OSError) as error:
            raise RecordingError(self._folder, f"wandb failed: {error}", "Export to another folder.") from error


def wandb_values(moment: TrackedMoment) -> Iterator[tuple[str, float]]:
    """Yield the values of a moment under W&B's names of its own readings, and others as in TensorBoard.

    W&B's percentages are from 0 to 100.
    """
    for is_peak, group in ((False, moment.values), (True, moment.peaks)):
        for owner, quantities in group.items():
            for name, value in quantities.items():
                key, factor = _name_and_factor(owner, name)
                yield f"{key}/max" if is_peak else key, value * factor
                share = None if is_peak else moment.share(owner, name, value)
                if share is not None and owner.startswith("gpu/"):
                    yield f"{owner}/{_SHARES[name]}", 100.0 * share


def _name_and_factor(owner: str, quantity: str) -> tuple[str, float]:
    if owner.startswith("gpu/") and quantity in _OWN_NAMES:
        name, factor = _OWN_NAMES[quantity]
        return f"{owner}/{name}", factor
    return tensorboard_tag(owner, quantity)


def _import_wandb(folder: Path) -> Any:  # noqa: ANN401  # it has no annotations that are of use here
    """Return wandb, which then writes offline and reports no errors to its makers."""
    os.environ |= {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
    try:
        return import_module("wandb")
    except ImportError as error:
        hint = f"Export as tensorboard, or run: {extra_command('wandb')}"
        raise RecordingError(folder, "W&B needs the package wandb", hint) from error
