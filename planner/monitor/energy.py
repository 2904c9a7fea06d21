"""Energy that GPUs used in a period: from the GPUs' own counters, or integrated from their power."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from planner.monitor.history import History
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.protocols import ReadingSeries
from planner.monitor.readings.sample import late_seconds
from planner.monitor.series import Floats

# A counter is updated about every 100 ms (ml.energy, on measuring GPU energy).
_STANDING_SECONDS: Final = 2.0


class UsedEnergy(NamedTuple):
    """Energy in joules; `is_estimated` if any part of it is integrated from reported power."""

    joules: float
    is_estimated: bool


def energy_used(history: History, devices: Iterable[Device], start: float, end: float) -> UsedEnergy | None:
    """Return the energy that `devices` used from `start` to `end` (monotonic seconds); None if no GPU's is known.

    The energy of a MIG instance is part of its GPU's energy; see `card_energy`.
    """
    cards = [device.uuid for device in devices if device.mig_parent is None]
    found = (
        card_energy(history.series(uuid, "energy_joules"), history.series(uuid, "power_watts"), start, end)
        for uuid in cards
    )
    known = [used for used in found if used is not None]
    if not known:
        return None
    return UsedEnergy(sum(used.joules for used in known), any(used.is_estimated for used in known))


def card_energy(
    counter: ReadingSeries, power: ReadingSeries, start: float = -np.inf, end: float = np.inf
) -> UsedEnergy | None:
    """Return the energy of one GPU from `start` to `end`, from its counter and its power; None if it is not known.

    **Formula** The sum of the counter's increases. Without a counter, and while it stands still, ∫ P dt by the
    trapezoidal rule, gaps excluded.

    **Assumes** that a counter that does not grow for two seconds although the GPU draws power is broken, and that one
    that falls was reset.
    """
    counted = _Readings.between(counter, start, end)
    drawn = _Readings.between(power, start, end)
    if len(counted.values) < 2:
        return UsedEnergy(drawn.integral(), is_estimated=True) if len(drawn.values) > 1 else None
    filled = sum(drawn.within(*standing).integral() for standing in counted.standstills())
    return UsedEnergy(float(np.diff(counted.values).clip(min=0.0).sum()) + filled, is_estimated=filled > 0)


class _Readings(NamedTuple):
    times: Floats
    values: Floats

    @classmethod
    def between(cls, series: ReadingSeries, start: float, end: float) -> "_Readings":
        # A series of a recording is an array of its own, without methods to search it.
        return cls(np.asarray(series.times), np.asarray(series.values)).within(start, end)

    def within(self, start: float, end: float) -> "_Readings":
        first, stop = self.times.searchsorted((start, np.nextafter(end, np.inf))).tolist()
        return _Readings(self.times[first:stop], self.values[first:stop])

    def integral(self) -> float:
        """Return ∫ x dt, gaps excluded."""
        if len(self.times) < 2:
            return 0.0
        steps = np.diff(self.times)
        read = steps <= late_seconds(float(np.sort(steps)[len(steps) // 2]))
        return float((steps * (self.values[1:] + self.values[:-1]) / 2)[read].sum())

    def standstills(self) -> Iterator[tuple[float, float]]:
        """Return the periods of two seconds or more in which the value did not change."""
        changes = np.flatnonzero(np.diff(self.values)) + 1
        began, ended = self.times[np.append(0, changes)], self.times[np.append(changes - 1, -1)]
        is_long = ended - began >= _STANDING_SECONDS
        return zip(began[is_long].tolist(), ended[is_long].tolist(), strict=True)
