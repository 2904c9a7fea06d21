"""Energy that cards used in a period: from the cards' own counters, or integrated from their power."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from planner.monitor.history import History
from planner.monitor.history.downsampling import Floats
from planner.monitor.readings.intervals import late_seconds
from planner.monitor.readings.inventory import Device


class UsedEnergy(NamedTuple):
    """Energy in joules; `is_estimated` if any part of it is integrated from reported power."""

    joules: float
    is_estimated: bool


def energy_used(history: History, devices: Iterable[Device], start: float, end: float) -> UsedEnergy | None:
    """Return the energy that `devices` used from `start` to `end` (monotonic seconds); None if no card's is known.

    **Formula** The sum of a counter's increases, or ∫ P dt by the trapezoidal rule, gaps excluded, without a counter.
    The energy of a MIG instance is part of its card's energy.
    """
    cards = (device.uuid for device in devices if device.mig_parent is None)
    known = [used for uuid in cards if (used := _energy_of_card(history, uuid, start, end)) is not None]
    if not known:
        return None
    return UsedEnergy(sum(used.joules for used in known), any(used.is_estimated for used in known))


def _energy_of_card(history: History, uuid: str, start: float, end: float) -> UsedEnergy | None:
    _, counted = _readings_between(history, uuid, "energy_joules", start, end)
    if len(counted) > 1:
        # A counter that falls was reset.
        return UsedEnergy(float(np.diff(counted).clip(min=0.0).sum()), is_estimated=False)
    times, watts = _readings_between(history, uuid, "power_watts", start, end)
    if len(watts) < 2:
        return None
    steps = np.diff(times)
    read = steps <= late_seconds(float(np.sort(steps)[len(steps) // 2]))
    return UsedEnergy(float((steps * (watts[1:] + watts[:-1]) / 2)[read].sum()), is_estimated=True)


def _readings_between(history: History, uuid: str, metric: str, start: float, end: float) -> tuple[Floats, Floats]:
    series = history.series(uuid, metric)
    first, stop = series.times.searchsorted((start, np.nextafter(end, np.inf))).tolist()
    return series.times[first:stop], series.values[first:stop]
