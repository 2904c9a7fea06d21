"""The interface of all experiment trackers: values at moments, texts, and the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from planner.monitor.recording.export import utc_time
from planner.present.trackers.moments import TextNote, TrackedMoment

TrackerName = Literal["tensorboard", "mlflow", "wandb"]

DATED: Final = ("events", "marks")
"""Tags of the texts that are dated, of which there are many."""
PROJECT: Final = "gpu-planner"
"""Name of the experiment (MLflow) or project (W&B) of all runs."""


class RunStart(NamedTuple):
    """A run's name, its start in seconds since 1970, and the program that read the values."""

    name: str
    wall_seconds: float
    program: str


@dataclass(frozen=True, slots=True)
class TrackedPlan:
    """A plan as trackers show it: a sentence, its values by field, and predictions by the cards' owners.

    `predictions` are in bytes and watts, by the names `memory_bytes` and `power_watts`; their owners are `plan/0` and
    so on, with the number of the card. They are empty for a plan for other cards than those that are read.
    """

    sentence: str
    fields: Mapping[str, Any]
    predictions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class TrackerRun(Protocol):
    """One run of a tracker, which is being written; values are written every `interval_seconds`, or less often."""

    interval_seconds: float

    @property
    def place(self) -> Path:
        """Return the folder or file of the run."""

    @property
    def view_command(self) -> str:
        """Return the shell command that shows the run."""

    def add_values(self, moment: TrackedMoment) -> None:
        """Write the values of a moment."""

    def add_text(self, tag: str, note: TextNote) -> None:
        """Write a text, as Markdown, under `tag`."""

    def add_plan(self, plan: TrackedPlan, note: TextNote) -> None:
        """Write the plan's values and its sentence; `note` holds both as text."""

    def flush(self) -> None:
        """Write what is pending, so that it is kept if this process is killed."""

    def close(self, wall_seconds: float) -> None:
        """End the run at a time in seconds since 1970."""


def dated_line(note: TextNote) -> str:
    """Return an event or a mark as a list item with its time, for a file that holds all of them."""
    return f"- {utc_time(note.wall_seconds).isoformat(timespec='seconds')} {note.text}"


def plain_fields(fields: Mapping[str, Any], prefix: str = "") -> dict[str, str | float | bool]:
    """Return nested JSON values by their path: `workload.parallel.data`; lists become text, absent values are left out.

    A tracker shows them beside each other, so that runs can be compared by them.
    """
    found: dict[str, str | float | bool] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            found |= plain_fields(value, f"{prefix}{name}.")
        elif isinstance(value, str | int | float):
            found[f"{prefix}{name}"] = value
        elif value:
            found[f"{prefix}{name}"] = str(value)
    return found
