"""The protocol of data sources is all that a summary needs."""

from types import SimpleNamespace

import pytest

from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.recording.summary import summarize_recording


class ListSource:
    """A source of readings in plain lists, which has only the members of `SeriesSource`."""

    inventory = Inventory(devices=(Device("GPU-a", "NVIDIA Test", 0),))

    def series(self, owner, metric):
        if (owner, metric) != ("GPU-a", "power_watts"):
            return SimpleNamespace(times=[], values=[])
        return SimpleNamespace(times=[0.0, 1.0, 2.0], values=[100.0, 200.0, 300.0])


def test_any_source_with_an_inventory_and_series_can_be_summarized():
    summary = summarize_recording(ListSource())
    assert (summary.energy_joules, summary.cards[0].seconds) == (pytest.approx(400.0), 2.0)
