"""Runs of TensorBoard, as event files of our own."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from planner.errors import RecordingError
from planner.monitor.recording.files import file_exists_error, open_new, unwritable_error
from planner.present.trackers.event_file import EventFile, EventText, ScalarTag, scalar_tag
from planner.present.trackers.moments import TextNote, TrackedMoment
from planner.present.trackers.run import PROJECT, RunStart, TrackedPlan
from planner.units import GB, GIB

_UNITS: Final = {
    "_bytes_per_s": ("_GB_per_s", 1 / GB),
    "_bytes": ("_GiB", 1 / GIB),
    "_watts": ("_W", 1.0),
    "_joules": ("_kJ", 1e-3),
    "_celsius": ("_C", 1.0),
    "_mhz": ("_MHz", 1.0),
    "_fraction": ("", 1.0),
}
"""Endings of quantities with those of their tags and the factor. A GiB keeps its digits in 32 bits, bytes do not."""


class TensorBoardRun:
    """A run in its own folder, `FOLDER/NAME/events.out.tfevents.…`; fractions are from 0 to 1.

    Raises:
        RecordingError: If the folder has a run of this name already, or cannot be written.
    """

    interval_seconds = 1.0

    def __init__(self, folder: Path, start: RunStart) -> None:
        self.place = folder / start.name
        self._folder = folder
        if next(self.place.glob("*tfevents*"), None) is not None:
            raise file_exists_error(self.place)
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable_error(self.place, error) from error
        # TensorBoard reads the files of a run in the order of their names.
        path = self.place / f"events.out.tfevents.{max(0, int(start.wall_seconds)):010d}.{PROJECT}"
        self._stream = open_new(path)
        self._file = EventFile(self._stream, start.wall_seconds)
        self._tags: dict[tuple[str, str, bool], tuple[ScalarTag, float]] = {}

    @property
    def view_command(self) -> str:
        """Return the shell command that shows the run."""
        return shlex.join(("tensorboard", "--logdir", str(self._folder)))

    def add_values(self, moment: TrackedMoment) -> None:
        """Write the values of a moment.

        Raises:
            OSError: If the file cannot be written.
        """
        self._file.add_scalars(moment.wall_seconds, moment.step, self._scalars(moment))

    def _scalars(self, moment: TrackedMoment) -> Iterator[tuple[ScalarTag, float]]:
        tags = self._tags
        for is_peak, group in ((False, moment.values), (True, moment.peaks)):
            for owner, quantities in group.items():
                for name, value in quantities.items():
                    known = tags.get((owner, name, is_peak))
                    if known is None:
                        tag, factor = tensorboard_tag(owner, name)
                        known = scalar_tag(f"{tag}/max" if is_peak else tag), factor
                        tags[owner, name, is_peak] = known
                    yield known[0], value * known[1]

    def add_text(self, tag: str, note: TextNote) -> None:
        """Write a text, as Markdown, under `tag`.

        Raises:
            OSError: If the file cannot be written.
        """
        self._file.add_text(note.wall_seconds, note.step, EventText(tag, note.text))

    def add_plan(self, plan: TrackedPlan, note: TextNote) -> None:  # the text has all of it
        """Write the plan as text.

        Raises:
            OSError: If the file cannot be written.
        """
        self.add_text("plan", note)

    def flush(self) -> None:
        """Hand all events to the system.

        Raises:
            OSError: If the file cannot be written.
        """
        self._file.flush()

    def close(self, wall_seconds: float) -> None:  # an event file has no end
        """Close the file.

        Raises:
            RecordingError: If the file cannot be written.
        """
        try:
            self._stream.close()
        except OSError as error:
            raise RecordingError(self.place, f"cannot be written ({error.strerror or error})") from error


def tensorboard_tag(owner: str, quantity: str) -> tuple[str, float]:
    """Return the tag of a quantity, such as `gpu/0/memory_used_GiB`, and the factor to its unit."""
    for ending, (unit, factor) in _UNITS.items():
        if quantity.endswith(ending):
            return f"{owner}/{quantity.removesuffix(ending)}{unit}", factor
    return f"{owner}/{quantity}", 1.0
