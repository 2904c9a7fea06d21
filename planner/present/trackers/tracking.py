"""Export of a recording to an experiment tracker, and of live readings while they are recorded."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from heapq import merge
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from time import time
from typing import Any, Final, NamedTuple, get_args

from planner.errors import PlannerError, RecordingError
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.recorder import PROGRAM_NAME
from planner.monitor.recording.recording import MonitorRecording, TimedUpdate
from planner.monitor.recording.records import RecordedMark, RecordedPlan
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.files import parse_plan
from planner.present.monitor.plan_on_cards import compare_plan_with_cards, match_cards
from planner.present.monitor.readings import driver_line
from planner.present.monitor.recording import recording_notes
from planner.present.plan.phrase import plan_phrase
from planner.present.trackers.run import (
    MomentStream,
    RunStart,
    TextNote,
    TrackedMoment,
    TrackedPlan,
    TrackerName,
    TrackerRun,
)

TRACKERS: Final[tuple[TrackerName, ...]] = get_args(TrackerName)
"""The trackers that a recording can be exported to."""
TRACKER_TITLES: Final[Mapping[TrackerName, str]] = {
    "tensorboard": "TensorBoard",
    "mlflow": "MLflow",
    "wandb": "Weights & Biases (offline)",
}
# The plan's predictions are constant; points at this pace draw a line also when the end is missing.
_PREDICTION_SECONDS: Final = 60.0
_MAX_QUEUED: Final = 9_000
_CLOSE_TIMEOUT_SECONDS: Final = 10.0
_TRACKER_BLOCKED: Final = "does not keep up with the readings"

TrackedItem = Inventory | Sample | RecordedMark | RecordedPlan


class TrackedRun(NamedTuple):
    """A written run: its folder or file, the number of its values, and the shell command that shows it."""

    place: Path
    values: int
    view_command: str


def export_to_tracker(
    recording: MonitorRecording,
    folder: Path,
    tracker: TrackerName,
    catalog: Catalog,
    *,
    plan: Mapping[str, Any] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> TrackedRun:
    """Write a recording with its plan as a run in `folder`; `plan` replaces the recorded one.

    A run that is stopped half-way keeps what was written.

    Raises:
        RecordingError: If the tracker's package is not installed, or the run cannot be written.
    """
    began = recording.header.wall_seconds if recording.first is None else recording.first.wall_seconds
    name = recording.path.name.removesuffix(recording.path.suffix) or "run"
    run = open_run(folder, tracker, RunStart(name, began, recording.header.program))
    tracking = Tracking(run, catalog)
    chosen = plan or recording.plan
    with _ended(tracking):
        if chosen is not None:
            tracking.note(RecordedPlan(chosen))
        for item in _in_order(recording):
            if is_stopped():
                break
            tracking.note(item)
        for note in recording_notes(recording):
            tracking.add_text("recording", note)
    return tracking.close()


@contextmanager
def _ended(tracking: "Tracking") -> Iterator[None]:
    """End the run, as far as the tracker allows, if writing it fails."""
    try:
        yield
    except (PlannerError, OSError):
        with suppress(PlannerError, OSError):
            tracking.close()
        raise


def open_run(folder: Path, tracker: TrackerName, start: RunStart) -> TrackerRun:
    """Begin a run of a tracker in `folder`.

    Raises:
        RecordingError: If the tracker's package is not installed, or the run cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise RecordingError(folder, "is not a folder", "Give a folder for the runs of the tracker.")
    # Each is loaded only when it is used.
    if tracker == "mlflow":
        from planner.present.trackers.mlflow import MlflowRun

        return MlflowRun(folder, start)
    if tracker == "wandb":
        from planner.present.trackers.wandb import WandbRun

        return WandbRun(folder, start)
    from planner.present.trackers.tensorboard import TensorBoardRun

    return TensorBoardRun(folder, start)


def _in_order(recording: MonitorRecording) -> Iterator[Inventory | Sample | RecordedMark]:
    """Yield updates and marks by their time; the file has each mark near its time, but not always in order."""
    marks = sorted(recording.marks, key=lambda mark: mark.monotonic_seconds)
    items: Iterable[TimedUpdate | RecordedMark] = merge(
        recording.timed(), marks, key=lambda item: item.monotonic_seconds
    )
    return (item.update if isinstance(item, TimedUpdate) else item for item in items)


class Tracking:
    """Writes updates, marks and plans to a run, in the order in which they are noted."""

    def __init__(self, run: TrackerRun, catalog: Catalog) -> None:
        self._run, self._catalog = run, catalog
        self._stream = MomentStream(run.interval_seconds)
        self._inventory = Inventory()
        self._is_described = False
        self._plan: Mapping[str, Any] | None = None
        self._predictions: Mapping[str, Mapping[str, float]] = {}
        self._predicted_at = float("-inf")
        self._latest = TextNote(0.0, 0.0, "")
        self._values = 0

    def note(self, item: TrackedItem) -> None:
        """Write an update, a mark or a plan.

        Raises:
            RecordingError: If the tracker refuses it.
            OSError: If the run cannot be written.
        """
        if isinstance(item, RecordedPlan):
            self._plan = item.plan
            if self._is_described:
                self._add_plan(item.plan)
        elif isinstance(item, RecordedMark):
            at = self._stream.seconds_at(item.monotonic_seconds)
            self._run.add_text("marks", TextNote(item.wall_seconds, at, item.text))
        else:
            self._note_update(item)

    def add_text(self, tag: str, text: str) -> None:
        """Write a text at the time of the latest sample."""
        self._run.add_text(tag, self._latest._replace(text=text))

    def flush(self) -> None:
        """Write what is pending, so that it is kept if this process is killed."""
        self._run.flush()

    def close(self) -> TrackedRun:
        """Write what is pending and the end of the run.

        Raises:
            RecordingError: If the tracker refuses it.
        """
        if (moment := self._stream.finish()) is not None:
            self._add_moment(moment)
        self._add_predictions(self._latest.wall_seconds, self._latest.seconds)
        self._run.close(self._latest.wall_seconds)
        return TrackedRun(self._run.place, self._values, self._run.view_command)

    def _note_update(self, update: Inventory | Sample) -> None:
        if isinstance(update, Inventory):
            self._inventory = update
        moment, events = self._stream.note(update)
        if isinstance(update, Sample):
            at = self._stream.seconds_at(update.monotonic_seconds)
            self._latest = TextNote(update.wall_seconds, at, "")
            if not self._is_described:
                self._describe()
        if moment is not None:
            self._add_moment(moment)
        for event in events:
            self._run.add_text("events", event)

    def _describe(self) -> None:
        """Write, with the first sample, what is read, and the plan."""
        self._is_described = True
        cards = [f"- gpu/{card.index}: {card.name}" for card in self._inventory.devices if card.mig_parent is None]
        self.add_text("recording", "\n".join((*cards, f"- {driver_line(self._inventory)}")))
        if self._plan is not None:
            self._add_plan(self._plan)

    def _add_plan(self, fields: Mapping[str, Any]) -> None:
        plan = tracked_plan(fields, self._inventory, self._catalog)
        self._run.add_plan(plan, self._latest._replace(text=_plan_text(plan)))
        self._predictions, self._predicted_at = plan.predictions, float("-inf")

    def _add_moment(self, moment: TrackedMoment) -> None:
        if not moment.value_count:
            return
        self._run.add_values(moment)
        self._values += moment.value_count
        if moment.seconds - self._predicted_at >= _PREDICTION_SECONDS:
            self._add_predictions(moment.wall_seconds, moment.seconds)

    def _add_predictions(self, wall_seconds: float, seconds: float) -> None:
        if self._predictions and seconds > self._predicted_at:
            self._predicted_at = seconds
            self._run.add_values(TrackedMoment(wall_seconds, seconds, self._predictions))


class LiveTracking:
    """Writes live updates to a run from a thread of its own, so that a slow tracker does not delay the readings.

    Call `note` with the current inventory, then with every update. Call `close`, or use it as a context manager.

    Raises:
        RecordingError: If the tracker's package is not installed, or the run cannot be written.
    """

    def __init__(self, folder: Path, tracker: TrackerName, name: str, catalog: Catalog) -> None:
        self.folder = folder
        self._queue: Queue[TrackedItem | None] = Queue(_MAX_QUEUED)
        self._tracking = Tracking(open_run(folder, tracker, RunStart(name, time(), PROGRAM_NAME)), catalog)
        self._failure: str | None = None
        self.result: TrackedRun | None = None
        self._thread = Thread(target=self._write_until_closed, name="tracker", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Return the reason why the tracker failed, None if it did not."""
        return self._failure

    def note(self, item: TrackedItem) -> None:
        """Add an update, a mark or a plan."""
        if self._failure is None and self._thread.is_alive():
            try:
                self._queue.put_nowait(item)
            except Full:
                self._failure = _TRACKER_BLOCKED

    def close(self) -> None:
        """Write all that was noted, and the end of the run; `result` and `failure` say how it went."""
        try:
            self._queue.put(None, timeout=_CLOSE_TIMEOUT_SECONDS)
        except Full:
            self._failure = _TRACKER_BLOCKED
            return
        self._thread.join(_CLOSE_TIMEOUT_SECONDS)
        if self._thread.is_alive():
            self._failure = _TRACKER_BLOCKED

    def _write_until_closed(self) -> None:
        try:
            with _ended(self._tracking):
                while (item := self._queue.get()) is not None:
                    self._tracking.note(item)
                    if self._queue.empty():
                        self._tracking.flush()
            self.result = self._tracking.close()
        except PlannerError as error:
            self._failure = error.message
        except OSError as error:
            self._failure = error.strerror or str(error)


def _plan_text(plan: TrackedPlan) -> str:
    return f"{plan.sentence}\n\n```json\n{json.dumps(plan.fields, indent=2, ensure_ascii=False)}\n```"


def tracked_plan(fields: Mapping[str, Any], inventory: Inventory, catalog: Catalog) -> TrackedPlan:
    """Return a plan, given as JSON values, with its predictions for those cards of `inventory` that it is for.

    Of a plan that this version or its catalog cannot evaluate, the sentence says why.
    """
    try:
        evaluation = evaluate(parse_plan(json.dumps(fields), Path("plan")), catalog)
    except PlannerError as error:
        return TrackedPlan(f"The plan cannot be evaluated: {error.message}", fields)
    latest = Latest()
    latest.note_inventory(inventory)
    matches = match_cards(catalog.hardware, inventory.devices)
    expected = compare_plan_with_cards(evaluation, matches, latest).expected
    predictions = {}
    for device in inventory.devices:
        if (prediction := expected.get(device.uuid)) is not None:
            values = {"memory_bytes": float(prediction.memory_bytes)}
            if prediction.power_watts is not None:
                values["power_watts"] = prediction.power_watts
            predictions[f"plan/{device.index}"] = values
    return TrackedPlan(plan_phrase(evaluation, catalog), fields, predictions)
