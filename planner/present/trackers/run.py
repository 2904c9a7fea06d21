"""The interface of all experiment trackers: values at moments, texts, and the plan."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from planner.monitor.readings.events import Event, EventDetector
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import DEVICE_METRICS, HOST_METRICS, Metric
from planner.monitor.readings.sample import LATE, Readings, Sample, TypicalInterval
from planner.monitor.recording.export import utc_time
from planner.present.monitor.events import duration_text, event_title


def _with_units(metrics: tuple[Metric, ...], *units: str) -> frozenset[str]:
    return frozenset(metric.name for metric in metrics if metric.unit in units)


HOST_OWNER: Final = "host"
"""Owner of the host's quantities; cards are `gpu/0`, MIG instances `gpu/0/mig/1`, the plan's predictions `plan/0`."""
_STEPS_PER_SECOND: Final = 10
# Of samples further apart than this part of an interval, each is to have an interval of its own.
_RARE_FRACTION: Final = 0.5
# Samplers are early by less.
_JITTER_FRACTION: Final = 0.1
# What these count or name has no mean: of several readings, the last is kept.
_WITHOUT_MEAN: Final = ("count", "state", "J")
_LAST_KEPT: Final = _with_units((*DEVICE_METRICS, *HOST_METRICS), *_WITHOUT_MEAN)
# Bits are no quantity: their changes are events.
_LEFT_OUT: Final = _with_units(DEVICE_METRICS, "bits")
_ENERGY: Final = "energy_joules"


class TrackedMoment(NamedTuple):
    """Values at one time, by owner and quantity in the units of `metrics`; `seconds` are since the first sample.

    `values` are single readings, or means where several were merged; `peaks` are the maxima of the merged ones.
    `limits` are what a quantity is a share of: the card's memory, and its power limit.
    """

    wall_seconds: float
    seconds: float
    values: Mapping[str, Mapping[str, float]]
    peaks: Mapping[str, Mapping[str, float]] = {}
    limits: Mapping[str, Mapping[str, float]] = {}

    @property
    def step(self) -> int:
        """Return the number of tenths of a second since the first sample, the step on a tracker's axis."""
        return round(self.seconds * _STEPS_PER_SECOND)

    @property
    def value_count(self) -> int:
        """Return the number of values and peaks."""
        return sum(len(quantities) for group in (self.values, self.peaks) for quantities in group.values())

    def share(self, owner: str, quantity: str, value: float) -> float | None:
        """Return `value` as a fraction of the limit of this quantity, None if the limit is unknown."""
        limit = self.limits.get(owner, {}).get(quantity)
        return value / limit if limit else None


class TextNote(NamedTuple):
    """A text at a time, `seconds` after the first sample."""

    wall_seconds: float
    seconds: float
    text: str

    @property
    def step(self) -> int:
        """Return the step on a tracker's axis, as of a moment."""
        return round(self.seconds * _STEPS_PER_SECOND)


class MomentStream:
    """Turns samples and inventories into moments, at most one per `interval_seconds`, and events as notes.

    Unknown and implausible readings are left out. The energy counter becomes the energy since the first sample, because
    trackers keep 24 bits of a number.
    """

    def __init__(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self._samples: list[Sample] = []
        self._start: float | None = None
        self._due = float("-inf")
        self._latest = float("-inf")
        self._labels: dict[str, str] = {}
        self._limits: dict[str, dict[str, float]] = {}
        self._energy_start: dict[str, float] = {}
        self._typical = TypicalInterval()
        self._detector = EventDetector(inf)  # until the interval of the samples is known, no pause is a gap

    def note(self, update: Inventory | Sample) -> tuple[TrackedMoment | None, tuple[TextNote, ...]]:
        """Add an update; return the moment that it completes, if any, and the events that it reveals."""
        if isinstance(update, Inventory):
            self._note_inventory(update)
            return None, tuple(map(self._event_note, self._detector.note_inventory(update)))
        if self._start is None:
            self._start = update.monotonic_seconds
        else:
            self._typical.note(update.monotonic_seconds - self._latest)
        moment = self.finish() if self._begins_interval(update.monotonic_seconds) else None
        self._samples.append(update)
        events = self._detector.note_sample(update)
        if self._typical.late_seconds < inf:
            self._detector.interval_seconds = self._typical.late_seconds / LATE
        return moment, tuple(map(self._event_note, events))

    def finish(self) -> TrackedMoment | None:
        """Return the moment of the samples that were not returned yet, None if there are none."""
        samples, self._samples = self._samples, []
        if not samples:
            return None
        if len(samples) == 1:
            return self._single(samples[0])
        return self._merged(samples)

    def seconds_at(self, monotonic_seconds: float) -> float:
        """Return the seconds from the first sample to a time, 0 before the first sample."""
        return 0.0 if self._start is None else max(0.0, monotonic_seconds - self._start)

    def owner(self, uuid: str) -> str:
        """Return the owner's name for a card, `gpu/0`; an unknown card is named by its UUID."""
        return self._labels.get(uuid) or f"gpu/{uuid}"

    def _begins_interval(self, now: float) -> bool:
        """Return whether a sample begins an interval: at its time or, where samples are rare, a little before it."""
        is_rare = now - self._latest > self._interval * _RARE_FRACTION
        self._latest = now
        if now < self._due - (self._interval * _JITTER_FRACTION if is_rare else 0.0):
            return False
        follows_clock = not is_rare and now - self._due < self._interval
        self._due = (self._due if follows_clock else now) + self._interval
        return True

    def _note_inventory(self, inventory: Inventory) -> None:
        owners = {device.uuid: f"gpu/{device.index}" for device in inventory.devices if device.mig_parent is None}
        for device in inventory.devices:
            self._labels[device.uuid] = owner = _owner(device, owners)
            total = device.fact("memory_total_bytes")
            if total is not None:
                self._limits.setdefault(owner, {})["memory_used_bytes"] = total

    def _single(self, sample: Sample) -> TrackedMoment:
        values = dict(self._owned_values(sample))
        return TrackedMoment(sample.wall_seconds, self.seconds_at(sample.monotonic_seconds), values, {}, self._limits)

    def _merged(self, samples: list[Sample]) -> TrackedMoment:
        """Return the means and peaks of several samples, dated by their middle."""
        columns: dict[str, dict[str, list[float]]] = {}
        for sample in samples:
            for owner, values in self._owned_values(sample):
                quantities = columns.setdefault(owner, {})
                for name, value in values.items():
                    quantities.setdefault(name, []).append(value)
        merged = {
            owner: {name: found[-1] if name in _LAST_KEPT else sum(found) / len(found) for name, found in named.items()}
            for owner, named in columns.items()
        }
        peaks = {
            owner: {name: max(found) for name, found in named.items() if len(found) > 1 and name not in _LAST_KEPT}
            for owner, named in columns.items()
        }
        middle = sum(sample.monotonic_seconds for sample in samples) / len(samples)
        wall = sum(sample.wall_seconds - samples[0].wall_seconds for sample in samples) / len(samples)
        return TrackedMoment(samples[0].wall_seconds + wall, self.seconds_at(middle), merged, peaks, self._limits)

    def _owned_values(self, sample: Sample) -> Iterator[tuple[str, dict[str, float]]]:
        for uuid, readings in sample.devices.items():
            owner, values = self.owner(uuid), _known_values(readings)
            if _ENERGY in values:
                values[_ENERGY] = self._energy_used(uuid, values[_ENERGY])
            if "power_limit_watts" in values:
                self._limits.setdefault(owner, {})["power_watts"] = values["power_limit_watts"]
            yield owner, values
        if sample.host:
            values = _known_values(sample.host)
            used, available = values.get("memory_used_bytes"), values.get("memory_available_bytes")
            if used is not None and available is not None:
                self._limits[HOST_OWNER] = {"memory_used_bytes": used + available}
            yield HOST_OWNER, values

    def _energy_used(self, uuid: str, counter: float) -> float:
        """Return the energy since a card's first sample, or since its driver was loaded anew."""
        if counter < self._energy_start.setdefault(uuid, counter):
            self._energy_start[uuid] = 0.0
        return counter - self._energy_start[uuid]

    def _event_note(self, event: Event) -> TextNote:
        at = event.began if event.ended is None or event.ended == event.began else event.ended
        text = event_title(event)
        if event.ended is not None and event.ended != event.began:
            text += f", lasted {duration_text(event.ended.monotonic_seconds - event.began.monotonic_seconds)}"
        card = f"{self.owner(event.uuid)}: " if event.uuid else ""
        return TextNote(at.wall_seconds, self.seconds_at(at.monotonic_seconds), f"{card}{text}")


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


def _known_values(readings: Readings) -> dict[str, float]:
    return {
        name: reading.value
        for name, reading in readings.items()
        if reading.value is not None and not reading.is_implausible and name not in _LEFT_OUT
    }


def _owner(device: Device, owners: Mapping[str, str]) -> str:
    if device.mig_parent is None:
        return f"gpu/{device.index}"
    return f"{owners.get(device.mig_parent, 'gpu')}/mig/{device.index}"
