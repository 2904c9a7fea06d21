"""Summary of a recording or history: energy, cost, means, peaks, time slowed down, and diagnoses, per GPU."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from planner.base import Stop
from planner.monitor.diagnosis.tracker import VerdictTimeline
from planner.monitor.energy import card_energy
from planner.monitor.history import History
from planner.monitor.readings.events import EventKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import slowing_reasons
from planner.monitor.readings.protocols import Numbers, ReadingSeries, SeriesSource
from planner.monitor.readings.sample import Sample, late_seconds
from planner.monitor.recording.recording import MonitorRecording
from planner.units import JOULES_PER_KWH, SECONDS_PER_DAY

_LEAST_INTERVAL_SECONDS: Final = 5.0
# A diagnosis of a GPU takes a millisecond: with this many, a day of eight GPUs takes three seconds.
_MOST_DIAGNOSES: Final = 360
# Added to the recording's length, so that the history still has the first reading when the last is loaded.
_SLACK_SECONDS: Final = 60.0


class DiagnosedTime(NamedTuple):
    """A kind of verdict in a recording: its seconds, summed over the GPUs, the GPUs, and when it was first found."""

    kind: str
    seconds: float
    uuids: tuple[str, ...]
    first_wall_seconds: float


def diagnosed_history(recording: MonitorRecording, is_stopped: Stop = lambda: False) -> History:
    """Return the history of a recording with its diagnoses and marks; incomplete if `is_stopped` becomes true."""
    history = History(max(SECONDS_PER_DAY, recording.seconds + _SLACK_SECONDS))
    timeline, due = VerdictTimeline(history), float("-inf")
    interval = max(_LEAST_INTERVAL_SECONDS, recording.seconds / _MOST_DIAGNOSES)
    for update in recording:
        if is_stopped():
            break
        history.note(update)
        if history.end is not None and history.end >= due:
            due = history.end + interval
            timeline.diagnose(history, history.end)
    for mark in recording.marks:
        history.add_mark(mark.monotonic_seconds, mark.text)
    return history


def diagnosed_times(history: History) -> tuple[DiagnosedTime, ...]:
    """Return how long each kind of verdict lasted, the longest first; a lost GPU is not a span and not included."""
    if history.start is None or history.end is None:
        return ()
    found: dict[str, DiagnosedTime] = {}
    for event in history.events(history.start, history.end):
        if event.kind is not EventKind.DIAGNOSIS:
            continue
        end = history.end if event.ended is None else event.ended.monotonic_seconds
        before = found.get(event.what, DiagnosedTime(event.what, 0.0, (), event.began.wall_seconds))
        found[event.what] = before._replace(
            seconds=before.seconds + end - event.began.monotonic_seconds,
            uuids=tuple(dict.fromkeys((*before.uuids, event.uuid))),
        )
    return tuple(sorted(found.values(), key=lambda each: -each.seconds))


SUMMARIZED_METRICS: Final = (
    "utilization_fraction",
    "memory_controller_fraction",
    "memory_used_bytes",
    "power_watts",
    "temperature_celsius",
    "sm_clock_mhz",
)
"""Names of the quantities that are summarized by mean and peak."""
_NEEDED_METRICS: Final = frozenset((*SUMMARIZED_METRICS, "energy_joules", "clock_reasons"))


class Statistic(NamedTuple):
    """Mean over time and maximum of a quantity."""

    mean: float
    peak: float


@dataclass(frozen=True, slots=True)
class CardSummary:
    """Summary of one GPU over the `seconds` during which the GPU was read.

    `energy_joules` is from the GPU's own counter, or, if `is_estimated`, integrated from its power where the counter
    is missing or stands still; `usd` is the cost of this energy. `statistics` are by metric name, `slowed_seconds` by
    the name of the clock reason.
    """

    device: Device
    seconds: float
    energy_joules: float | None
    is_estimated: bool
    usd: float | None
    statistics: Mapping[str, Statistic]
    slowed_seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """Summary of all GPUs; energy and cost exclude the host. `diagnoses` are of a recording only."""

    cards: tuple[CardSummary, ...]
    usd_per_kwh: float | None
    diagnoses: tuple[DiagnosedTime, ...] = ()

    @property
    def energy_joules(self) -> float | None:
        """Return the total energy of all GPUs with known energy, None if there are none."""
        known = [card.energy_joules for card in self.cards if card.energy_joules is not None]
        return sum(known) if known else None

    @property
    def usd(self) -> float | None:
        """Return the cost of the energy in USD, None without a price."""
        return _energy_cost_usd(self.energy_joules, self.usd_per_kwh)

    def at_price(self, usd_per_kwh: float | None) -> "RecordingSummary":
        """Return the same summary with another energy price, in USD per kWh."""
        cards = (replace(card, usd=_energy_cost_usd(card.energy_joules, usd_per_kwh)) for card in self.cards)
        return replace(self, cards=tuple(cards), usd_per_kwh=usd_per_kwh)

    @property
    def is_estimated(self) -> bool:
        """Return whether any GPU's energy is integrated from reported power."""
        return any(card.is_estimated for card in self.cards)


def summarize_recording(
    source: MonitorRecording | SeriesSource, usd_per_kwh: float | None = None, diagnosed: History | None = None
) -> RecordingSummary:
    """Summarize a recording or a history, at a price of energy in USD per kWh.

    `diagnosed` is the diagnosed history of the recording, if it is at hand: making it takes most of the time.

    **Formula** Energy is that of `card_energy`; means are ∫ x dt ÷ ∫ dt by the trapezoidal rule, gaps excluded.

    **Assumes** that power is what the driver reports: an A100 or H100 samples only a quarter of the time (arXiv
    2312.02741), so integrated energy is an estimate.
    """
    series = _RecordedSeries(source) if isinstance(source, MonitorRecording) else source
    # The energy of a MIG instance is part of its GPU's energy.
    cards = (_card_summary(device, series, usd_per_kwh) for device in series.inventory.devices)
    if diagnosed is None and isinstance(source, MonitorRecording):
        diagnosed = diagnosed_history(source)
    return RecordingSummary(tuple(cards), usd_per_kwh, diagnosed_times(diagnosed) if diagnosed else ())


class _ReadingColumn(NamedTuple):
    times: "array[float]"
    values: "array[float]"


class _RecordedSeries:
    """Readings of a recording as time series, including GPUs that were removed."""

    def __init__(self, recording: MonitorRecording) -> None:
        self._columns: dict[tuple[str, str], _ReadingColumn] = {}
        self._devices: dict[str, Device] = {}
        for update in recording:
            if isinstance(update, Inventory):
                self._devices |= {device.uuid: device for device in update.devices}
            else:
                self._note_sample(update)

    @property
    def inventory(self) -> Inventory:
        return Inventory(devices=tuple(self._devices.values()))

    def series(self, owner: str, metric: str) -> _ReadingColumn:
        return self._columns.get((owner, metric)) or _ReadingColumn(array("d"), array("d"))

    def _note_sample(self, sample: Sample) -> None:
        for uuid, readings in sample.devices.items():
            for name in _NEEDED_METRICS & readings.keys():
                reading = readings[name]
                if reading.value is None or reading.is_implausible:
                    continue
                column = self._columns.get((uuid, name))
                if column is None:
                    column = self._columns[uuid, name] = _ReadingColumn(array("d"), array("d"))
                if not column.times or sample.monotonic_seconds > column.times[-1]:
                    column.times.append(sample.monotonic_seconds)
                    column.values.append(reading.value)


def _card_summary(device: Device, source: SeriesSource, usd_per_kwh: float | None) -> CardSummary:
    series = {name: source.series(device.uuid, name) for name in SUMMARIZED_METRICS}
    integrals = {name: _time_integral(readings) for name, readings in series.items() if len(readings.values)}
    statistics = {name: _mean_and_peak(series[name].values, integral) for name, integral in integrals.items()}
    used = card_energy(source.series(device.uuid, "energy_joules"), series["power_watts"])
    joules = None if used is None else used.joules
    return CardSummary(
        device,
        max((integral.seconds for integral in integrals.values()), default=0.0),
        joules,
        used is not None and used.is_estimated,
        _energy_cost_usd(joules, usd_per_kwh),
        statistics,
        _slowed_seconds(source, device.uuid),
    )


class _TimeIntegral(NamedTuple):
    """Integral of a quantity over time, ∫ x dt, and the integrated time, ∫ dt."""

    area: float
    seconds: float


def _time_integral(readings: ReadingSeries) -> _TimeIntegral:
    late, area, seconds = _max_pause_seconds(readings.times), 0.0, 0.0
    points = zip(map(float, readings.times), map(float, readings.values), strict=True)
    for (start, first), (end, last) in pairwise(points):
        if end - start <= late:
            area += (end - start) * (first + last) / 2
            seconds += end - start
    return _TimeIntegral(area, seconds)


def _mean_and_peak(values: Numbers, integral: _TimeIntegral) -> Statistic:
    mean = integral.area / integral.seconds if integral.seconds else sum(map(float, values)) / len(values)
    return Statistic(mean, float(max(values)))


def _max_pause_seconds(times: Numbers) -> float:
    steps = [float(after) - float(before) for before, after in pairwise(times)]
    return late_seconds(sorted(steps)[len(steps) // 2]) if steps else 0.0


def _slowed_seconds(source: SeriesSource, uuid: str) -> dict[str, float]:
    """Return the seconds during which each clock reason slowed the GPU; a reason holds until the next reading."""
    bits, use = source.series(uuid, "clock_reasons"), source.series(uuid, "utilization_fraction")
    use_at = dict(zip(map(float, use.times), map(float, use.values), strict=True))
    late = _max_pause_seconds(bits.times)
    seconds_by_reason: dict[str, float] = {}
    for (start, value), (end, _) in pairwise(zip(map(float, bits.times), bits.values, strict=True)):
        if end - start <= late:
            for reason in slowing_reasons(int(value), use_at.get(start)):
                seconds_by_reason[reason.name] = seconds_by_reason.get(reason.name, 0.0) + end - start
    return seconds_by_reason


def _energy_cost_usd(energy_joules: float | None, usd_per_kwh: float | None) -> float | None:
    return None if energy_joules is None or usd_per_kwh is None else energy_joules / JOULES_PER_KWH * usd_per_kwh
